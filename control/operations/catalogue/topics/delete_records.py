"""Delete the records of a topic up to an offset or a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.collector.rights import AclOperation, Lacking
from control.kafka.ports import ConfigResource, ConfigScope
from control.model.ids import TopicPartition, partition_numbers
from control.model.moments import MOMENT_FORMS, TimeError
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
    parse_target,
    read_bounds,
)
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.errors import InvalidInputError
from control.operations.protected_topics import check_topic, doubts

BEFORE_HELP: Final = f"an offset, latest (all records), or a time: {MOMENT_FORMS}"


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
        for number in self.partitions:
            key = TopicPartition(self.topic, number)
            _require_inside(key, bounds[key], target)
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
            command=replace(self, offsets=offsets),
            changes=tuple(changes),
            summary=f"{self.topic}: {lost} deleted in {where}",
            notes=("they are gone for good, also for groups that have not read them",
                   *doubts(self.topic)),
            facts=tuple(sorted((key, each.first) for key, each in bounds.items())),
        )  # fmt: skip

    async def perform(self, context: OperationContext) -> Done:
        """Move the log start offsets."""
        low = await context.admin.offsets.delete_records(self.offsets)
        words = f"records deleted in {counted(len(low), 'partition')} of {self.topic}"
        return Done(words=words, view="topic", params={"topic": self.topic})

    async def _require_delete_policy(self, admin: KafkaAdmin) -> None:
        resource = ConfigResource(scope=ConfigScope.TOPIC, name=self.topic)
        (policy,) = await admin.describe_configs(resource, ["cleanup.policy"])
        if "delete" not in (policy.value or ""):
            words = f"{self.topic} is compacted only (cleanup.policy={policy.value})"
            raise InvalidInputError({"topic": f"{words}: Kafka deletes none of its records"})


def _require_inside(key: TopicPartition, log: LogBounds, target: OffsetTarget) -> None:
    if target.kind is TargetKind.OFFSET and target.value > log.end:
        raise InvalidInputError({"before": f"{key} ends at {log.end:,}, before {target.value:,}"})


def _change(key: TopicPartition, first: int, then: int) -> Change:
    lost = counted(then - first, "offset")
    return Change(str(key), first, then, f"{key}: begins at {first:,} → {then:,} ({lost} deleted)")
