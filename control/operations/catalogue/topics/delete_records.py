"""Delete the records of a topic up to an offset or a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

from control.kafka.acl import AclOperation, Lacking
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import KafkaPortError, UnreachableError
from control.kafka.ports import ConfigResource, ConfigScope
from control.model.ids import TopicPartition, partition_numbers
from control.model.moments import MOMENT_FORMS, TimeError
from control.model.offset_range import partition_names
from control.model.units import counted
from control.operations.catalogue.fields import (
    PARTITIONS,
    REASON,
    TOPIC,
    named_partitions,
    partition_words,
)
from control.operations.catalogue.forms import Confirmation, FormField, OperationForm
from control.operations.catalogue.groups.offset_targets import (
    LogBounds,
    OffsetTarget,
    TargetKind,
    moved_notes,
    parse_target,
    read_bounds,
    require_inside,
)
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError, PartlyDoneError
from control.operations.protected_topics import check_topic, doubts

BEFORE_HELP: Final = f"an offset, latest (all records), or a time: {MOMENT_FORMS}"

GONE: Final = "they are gone for good, also for groups that have not read them"
NOT_DELETED, NOT_KNOWN = "not deleted", "no answer: deleted or not"
NAMED_MAX: Final = 100
"""Partitions whose new beginnings an error tells; the preview names all."""


def before_problem(text: str) -> str | None:
    """Why a text does not say before what records are deleted; None: it does."""
    try:
        kind = parse_target(text).kind
    except TimeError:
        return BEFORE_HELP
    return BEFORE_HELP if kind in (TargetKind.SHIFT, TargetKind.EARLIEST) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecords(Operation):
    """Moves log start offsets; brokers free whole segments some time later."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="delete_records",
        key="K",
        title="Delete records of a topic",
        help="those before an offset or a time; they are gone for good",
        submit_label="Delete",
        is_destructive=True,
        confirmation=Confirmation.TYPED,
        fields=(
            TOPIC,
            PARTITIONS,
            FormField(
                name="before",
                label="Before",
                is_required=True,
                help=BEFORE_HELP,
                check=before_problem,
            ),
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.DELETE, "topic"),)

    topic: str
    before: str
    """A target as ``parse_target`` takes it; its own record stays."""
    partitions: tuple[int, ...] = ()
    """Empty: every partition."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Of the frozen command: the new log start offsets."""
    left: dict[TopicPartition, str] = field(default_factory=dict, compare=False)
    """Partitions that are not known to be done, and what is known of them."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(
            topic=fields["topic"],
            before=fields["before"],
            partitions=partition_numbers(fields["partitions"]),
            reason=fields["reason"],
        )

    @property
    def what(self) -> str:
        """For the journal."""
        where = partition_words(self.topic, self.partitions)
        return f"delete records of {where} before {self.before}"

    @property
    def thing(self) -> str:
        """The topic."""
        return self.topic

    @property
    def outcome(self) -> Mapping[str, str]:
        """Partitions whose records were not deleted, or nobody knows."""
        return {str(key): words for key, words in sorted(self.left.items())}

    def check(self) -> None:
        """:raises ProtectedTopicError: Kafka, or Partiscope, keeps its own state there."""
        check_topic("delete_records", self.topic)

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """How many offsets each log loses.

        :raises InvalidInputError: no such partition, an offset beyond the end, a compacted topic.
        """
        (topic,) = await context.admin.topics([self.topic])
        keys = named_partitions(topic, self.partitions)
        await self._require_delete_policy(context.admin)
        target = parse_target(self.before)
        bounds = await read_bounds(context.admin, keys, target)
        begun = _begun_after(target, bounds)
        require_inside("before", target, {key: bounds[key] for key in bounds.keys() - begun})
        offsets = {
            key: offset
            for key, each in bounds.items()
            if (offset := each.resolved(target) or 0) > each.first
        }
        changes = (
            _change(key, bounds[key].first, offset) for key, offset in sorted(offsets.items())
        )
        lost = counted(sum(then - bounds[key].first for key, then in offsets.items()), "offset")
        where = counted(len(offsets), "partition")
        return Effect(
            command=replace(self, offsets=offsets, left={}),
            changes=tuple(changes),
            summary=f"{self.topic}: {lost} deleted in {where}",
            notes=(*_left_notes(begun), *moved_notes(target, bounds, {}),
                   *([GONE] if offsets else []), *doubts(self.topic)),
            facts=tuple(sorted((key, each.first) for key, each in bounds.items())),
        )  # fmt: skip

    async def perform(self, context: OperationContext) -> Done:
        """Move the log start offsets, one partition after the other.

        :raises PartlyDoneError: some partitions refused it.
        """
        refused: dict[TopicPartition, KafkaPortError] = {}
        self.left.update(dict.fromkeys(self.offsets, NOT_DELETED))
        for key, offset in sorted(self.offsets.items()):
            self.left[key] = NOT_KNOWN
            try:
                await context.admin.offsets.delete_records({key: offset})
            except KafkaPortError as error:
                refused[key] = error
                if not isinstance(error, UnreachableError):
                    self.left[key] = NOT_DELETED
            else:
                del self.left[key]
        done = sorted(self.offsets.keys() - refused.keys())
        if refused and not done:
            raise next(iter(refused.values()))
        if refused:
            words = (
                f"records of {self.topic} are deleted in {len(done)} of {len(self.offsets)} "
                f"partitions: {_begins_words(done, self.offsets)}"
            )
            raise PartlyDoneError(words, [f"{key}: {error}" for key, error in refused.items()])
        words = f"records deleted in {counted(len(done), 'partition')} of {self.topic}"
        return Done(words=words, view="topic", params={"topic": self.topic})

    async def _require_delete_policy(self, admin: KafkaAdmin) -> None:
        resource = ConfigResource(scope=ConfigScope.TOPIC, name=self.topic)
        (policy,) = await admin.describe_configs(resource, ["cleanup.policy"])
        if "delete" not in (policy.value or ""):
            words = f"{self.topic} is compacted only (cleanup.policy={policy.value})"
            raise InvalidInputError({"topic": f"{words}: Kafka deletes none of its records"})


def _begun_after(
    target: OffsetTarget, bounds: Mapping[TopicPartition, LogBounds]
) -> set[TopicPartition]:
    """Partitions that have lost their records before this offset already."""
    if target.kind is not TargetKind.OFFSET:
        return set()
    return {key for key, log in bounds.items() if log.first > target.value}


def _begins_words(done: Sequence[TopicPartition], offsets: Mapping[TopicPartition, int]) -> str:
    """``orders-0 begins at 7, orders-2 at 9``."""
    told = ", ".join(f"{key} begins at {offsets[key]:,}" for key in done[:NAMED_MAX])
    more = len(done) - NAMED_MAX
    return f"{told} and {more:,} more" if more > 0 else told


def _left_notes(begun: set[TopicPartition]) -> tuple[str, ...]:
    return (f"begun after it already, so left alone: {partition_names(begun)}",) if begun else ()


def _change(key: TopicPartition, first: int, then: int) -> Change:
    lost = counted(then - first, "offset")
    return Change(str(key), first, then, f"{key}: begins at {first:,} → {then:,} ({lost} deleted)")
