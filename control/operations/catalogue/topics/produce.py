"""Produce test messages: the form, the job that its fields mean, and its run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

from control.kafka.acl import AclOperation, Lacking
from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.producer import ACKS, COMPRESSIONS, ProducerOptions
from control.messages.keys import KeySpecError
from control.messages.partitioners import KeyRule
from control.messages.produce_progress import ProduceProgress
from control.messages.produce_session import (
    KeyAndValue,
    ProduceJob,
    ProduceSession,
    RecordSource,
)
from control.messages.templates import TemplateError
from control.messages.topic_limits import TopicLimits
from control.model.units import counted
from control.operations import checks
from control.operations.catalogue.fields import REASON, TOPIC
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError
from control.operations.protected_topics import check_topic

PRODUCE: Final = OperationForm(
    name="produce",
    key="P",
    title="Produce messages",
    help="send test messages and see where they land",
    submit_label="Send",
    confirmation=Confirmation.NONE,
    view="produce",
    fields=(
        TOPIC,
        FormField(
            name="key",
            label="Key",
            keeps_blanks=True,
            help="text; {n} counts; seq, uniform:100, zipf:100 choose; empty: none",
        ),
        FormField(
            name="value",
            label="Value",
            kind=FieldKind.LONG_TEXT,
            keeps_blanks=True,
            default='{"n": {n}}',
            help="{n} {key} {ms} {now} {uuid} {random:1-6} {pad:100}",
        ),
        FormField(name="is_tombstone", label="Tombstone", kind=FieldKind.FLAG, help="null value"),
        FormField(
            name="partition",
            label="Partition",
            kind=FieldKind.NUMBER,
            help="empty: the key rule chooses",
            check=checks.whole(0, checks.PARTITIONS_MAX),
        ),
        FormField(
            name="rule",
            label="Key rule",
            kind=FieldKind.CHOICE,
            default=KeyRule.MURMUR2.value,
            choices=tuple(rule.value for rule in KeyRule),
        ),
        FormField(name="headers", label="Headers", help="name=value, …", check=checks.headers),
        FormField(
            name="count",
            label="Count",
            kind=FieldKind.NUMBER,
            default="1",
            check=checks.whole(1, 10_000_000),
        ),
        FormField(
            name="rate",
            label="Per second",
            kind=FieldKind.NUMBER,
            help="empty: as fast as acknowledged",
            check=checks.positive_number,
        ),
        FormField(
            name="acks",
            label="Acks",
            kind=FieldKind.CHOICE,
            default="all",
            choices=tuple(ACKS),
        ),
        FormField(
            name="compression",
            label="Compression",
            kind=FieldKind.CHOICE,
            default="none",
            choices=COMPRESSIONS,
        ),
        REASON,
    ),
)


class ProduceRun:
    """A hold on one run: how far it is, and a way to stop it."""

    def __init__(self, listen: Callable[[ProduceProgress], object] = lambda _: None) -> None:
        self.listen = listen
        self._session: ProduceSession | None = None
        self._is_stopped = False
        self._last: ProduceProgress | None = None

    def begin(self, session: ProduceSession) -> None:
        """From here on ``session`` sends."""
        self._session = session
        if self._is_stopped:
            session.stop()

    def end(self) -> None:
        """Keeps the last progress: the session has ended."""
        if self._session is not None:
            self._last = self._session.progress(is_done=True)

    def stop(self) -> None:
        """Stops sending."""
        self._is_stopped = True
        if self._session is not None:
            self._session.stop()

    @property
    def progress(self) -> ProduceProgress | None:
        """Counts of records sent and acknowledged; None: it has not begun."""
        if self._last is not None or self._session is None:
            return self._last
        return self._session.progress()


@dataclass(frozen=True, slots=True, kw_only=True)
class Produce(Operation):
    """Sends what its job says until that is done, or its run is stopped."""

    FORM: ClassVar[OperationForm] = PRODUCE
    RIGHTS: ClassVar[Lacking] = ((AclOperation.WRITE, "topic"),)
    IS_KEPT: ClassVar[bool] = False

    job: ProduceJob
    source: RecordSource | None = None
    """In the place of the job's records, keys, value and count."""
    run: ProduceRun = field(default_factory=ProduceRun, compare=False)

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(job=produce_job(fields), reason=fields["reason"])

    @classmethod
    def of_form(cls, values: Mapping[str, str], records: Sequence[KeyAndValue]) -> Self:
        """The command of a form as typed, or of the records of a file where there are any.

        :raises InvalidInputError: a wrong field.
        """
        asked = cls.of(cls.FORM.parse(values))
        return replace(asked, job=replace(asked.job, records=tuple(records)))

    @property
    def what(self) -> str:
        """For the journal."""
        return f"produce to {self.job.topic}"

    @property
    def outcome(self) -> Mapping[str, int]:
        """How many records were acknowledged, in how many partitions, and how many failed."""
        progress = self.run.progress
        if progress is None:
            return {}
        return {
            "partitions": len(progress.per_partition),
            "acknowledged": progress.acked,
            "failed": progress.failed,
            **({"unanswered": progress.unanswered} if progress.unanswered else {}),
        }

    @property
    def shortfall(self) -> str:
        """That it was stopped, or how many records failed, for the journal; empty: neither."""
        progress = self.run.progress
        if progress is None or not (progress.is_stopped or progress.failed):
            return ""
        acked = f"{progress.acked:,} of {counted(progress.total, 'record')} acknowledged"
        return f"stopped: {acked}" if progress.is_stopped else f"{acked}: {progress.errors[0]}"

    def check(self) -> None:
        """:raises ProtectedTopicError: its owner could not read such records."""
        check_topic("produce", self.job.topic)

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """How many records are sent; whether there is such a topic is not asked.

        :raises InvalidInputError: a key or value that describes nothing.
        """
        self._session(context.admin.wire.settings)
        records: int | str = self.job.total if self.source is None else "as they come"
        told = counted(records, "record") if isinstance(records, int) else f"records {records}"
        words = f"{told} to {self.job.topic}"
        return Effect(command=self, changes=(Change("records", None, records, words),))

    async def perform(self, context: OperationContext) -> Done:
        """Send, and tell the run how far it is."""
        session = self._session(context.admin.wire.settings)
        self.run.begin(session)
        try:
            async for progress in session.run():
                self.run.listen(progress)
        finally:
            self.run.end()
        acked = counted(session.progress().acked, "record")
        words = f"{acked} of {self.job.topic} acknowledged"
        return Done(words=words, view="topic", params={"topic": self.job.topic})

    def within(self, limits: TopicLimits) -> str:
        """The limits in words, once the first record was judged by them.

        :raises InvalidInputError: a key or value that describes nothing.
        :raises KafkaPortError: the topic does not have the partition, or would not take the record.
        """
        record = self._session("").first_record(limits)
        limits.check(record, self.job.options.compression)
        partitions = counted(limits.partitions, "partition")
        most = limits.most_bytes
        takes = "" if most is None else f" and takes at most {most:,} bytes (max.message.bytes)"
        return f"{self.job.topic} has {partitions}{takes}"

    def _session(self, settings: KafkaSettings | str) -> ProduceSession:
        try:
            return ProduceSession(settings, self.job, source=self.source)
        except KeySpecError as error:
            raise InvalidInputError({"key": str(error)}) from error
        except TemplateError as error:
            raise InvalidInputError({"value": str(error)}) from error


def produce_job(fields: Mapping[str, str]) -> ProduceJob:
    """The job of checked values of the produce form."""
    is_tombstone = checks.is_on(fields["is_tombstone"])
    return ProduceJob(
        topic=fields["topic"],
        value=None if is_tombstone else fields["value"],
        keys=fields["key"] or None,
        partition=int(fields["partition"]) if fields["partition"] else None,
        rule=KeyRule(fields["rule"]),
        count=int(fields["count"]),
        rate=float(fields["rate"]) if fields["rate"] else None,
        headers=checks.header_pairs(fields["headers"]),
        options=ProducerOptions(acks=fields["acks"], compression=fields["compression"]),
    )
