"""Reset a group's committed offsets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from control.kafka.acl import AclOperation, Lacking
from control.model.ids import TopicPartition, partition_numbers
from control.model.offset_range import partition_names
from control.model.units import counted
from control.operations.catalogue.fields import (
    GROUP,
    PARTITIONS,
    REASON,
    TOPIC,
    named_partitions,
    partition_words,
)
from control.operations.catalogue.forms import Confirmation, FieldKind, FormField, OperationForm
from control.operations.catalogue.groups.group_offsets import GroupOffsets
from control.operations.catalogue.groups.offset_lines import (
    FORM,
    OffsetLinesError,
    read_offset_lines,
)
from control.operations.catalogue.groups.offset_targets import (
    TARGET_HELP,
    OffsetTarget,
    TargetKind,
    moved_notes,
    parse_target,
    read_bounds,
    require_inside,
    target_problem,
)
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext
from control.operations.checks import is_on
from control.operations.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOffsets(Operation):
    """The frozen command carries the offsets of the preview: records that are produced between
    preview and confirmation change nothing."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="reset_offsets",
        key="O",
        title="Reset a group's offsets",
        help="the group's consumers must be stopped",
        submit_label="Preview",
        confirmation=Confirmation.TYPED,
        fields=(
            GROUP,
            replace(TOPIC, is_required=False, help="empty: every topic that the group committed"),
            PARTITIONS,
            FormField(
                name="to",
                label="To",
                default="latest",
                is_required=True,
                help=TARGET_HELP,
                check=target_problem,
            ),
            FormField(
                name="lines",
                label="Or offsets",
                kind=FieldKind.LONG_TEXT,
                help=f"{FORM} in each line, as `groups export` writes them; in place of To",
            ),
            FormField(
                name="creates",
                label="Create it",
                kind=FieldKind.FLAG,
                help="where there is no group of this name",
            ),
            REASON,
        ),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.READ, "topic"), (AclOperation.READ, "group"))

    group: str
    topic: str
    """Empty: every topic that the group committed."""
    to: str
    """A target as ``parse_target`` takes it."""
    creates: bool = False
    """Whether there may be no such group yet."""
    partitions: tuple[int, ...] = ()
    """Empty: every partition."""
    lines: str = ""
    """Offsets of partitions, in place of ``to``; topic and partitions say which of them."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Of the frozen command: what is committed."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(
            group=fields["group"],
            topic=fields["topic"],
            to=fields["to"],
            partitions=partition_numbers(fields["partitions"]),
            lines=fields["lines"],
            creates=is_on(fields["creates"]),
            reason=fields["reason"],
        )

    @property
    def what(self) -> str:
        """For the journal."""
        topic = self.topic or "all its topics"
        to = "given offsets" if self.lines else self.to
        return f"reset {self.group} on {partition_words(topic, self.partitions)} to {to}"

    @property
    def thing(self) -> str:
        """The group."""
        return self.group

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """Each partition's commit (start offset of a share group) now and then, inside its log. A
        shift leaves partitions without one as they are.

        :raises InvalidInputError: no such group or partition, one whose log is not known, or an
            offset that one of the logs lacks.
        :raises GroupActiveError: the group has members.
        """
        if self.partitions and not self.topic:
            raise InvalidInputError({"topic": "is needed, for partitions are named"})
        group = await GroupOffsets.of(
            context.admin, self.group, must_exist=not self.creates,
            otherwise=". To make a new group, tick Create it (`--create`)",
        )  # fmt: skip
        await group.require_no_members()
        committed = await group.read()
        then, told = await self._then(context, committed)
        offsets = {
            key: offset
            for key, offset in then.items()
            if offset is not None and offset != committed.get(key)
        }
        left = [key for key, offset in then.items() if offset is None]
        return Effect(
            command=replace(self, group=group.group, offsets=offsets),
            changes=tuple(
                _change(key, committed.get(key), offset, group.word)
                for key, offset in sorted(offsets.items())
            ),
            notes=(
                *((_left_words(left, group.word),) if left else ()),
                *told,
                *group.notes,
            ),
            facts=tuple((key, committed.get(key)) for key in sorted(then)),
        )

    async def _then(
        self, context: OperationContext, committed: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int | None], tuple[str, ...]]:
        """Offsets by partition (None: it stays without one), and lines about those moved."""
        if self.lines:
            return await self._given(context)
        target = parse_target(self.to)
        bounds = await read_bounds(context.admin, await self._keys(context, committed), target)
        require_inside("to", target, bounds)
        then = {key: each.resolved(target, committed.get(key)) for key, each in bounds.items()}
        return then, moved_notes(target, bounds, committed)

    async def _given(
        self, context: OperationContext
    ) -> tuple[dict[TopicPartition, int | None], tuple[str, ...]]:
        try:
            lines = read_offset_lines(self.lines, self.group.strip())
        except OffsetLinesError as error:
            raise InvalidInputError({"lines": str(error)}) from error
        given = {
            key: offset
            for key, offset in lines.items()
            if self.topic in ("", key.topic)
            and (not self.partitions or key.partition in self.partitions)
        }
        if not given:
            where = partition_words(self.topic, self.partitions)
            raise InvalidInputError({"lines": f"none is of {where}"})
        for topic in await context.admin.topics(sorted({key.topic for key in given})):
            named_partitions(topic, [key.partition for key in given if key.topic == topic.name])
        bounds = await read_bounds(context.admin, given, OffsetTarget(TargetKind.OFFSET))
        then = {
            key: each.resolved(OffsetTarget(TargetKind.OFFSET, given[key]))
            for key, each in bounds.items()
        }
        moved = [key for key, offset in then.items() if offset != given[key]]
        words = f"outside the log, so the nearest end is set: {partition_names(moved)}"
        return then, (words,) if moved else ()

    async def _keys(
        self, context: OperationContext, committed: Iterable[TopicPartition]
    ) -> list[TopicPartition]:
        if self.topic:
            (topic,) = await context.admin.topics([self.topic])
            return named_partitions(topic, self.partitions)
        names = sorted({key.topic for key in committed})
        if not names:
            raise InvalidInputError({"topic": f"is needed: {self.group} has committed nothing"})
        topics = await context.admin.topics(names, leaves_out_unknown=True)
        return [partition.key for topic in topics for partition in topic.partitions]

    async def perform(self, context: OperationContext) -> Done:
        """Set the offsets, unless a member came."""
        group = await GroupOffsets.of(context.admin, self.group)
        await group.require_no_members()
        await group.set(self.offsets)
        words = f"{self.group} is reset on {counted(len(self.offsets), 'partition')}"
        return Done(words=words, view="group", params={"group": self.group})


def _change(key: TopicPartition, before: int | None, after: int, word: str) -> Change:
    now = f"no {word}" if before is None else f"{before:,}"
    again = "" if before is None else _again(after - before)
    return Change(str(key), before, after, f"{key}: {now} → {after:,}{again}")


def _again(shift: int) -> str:
    if shift > 0:
        return f" ({counted(shift, 'record')} will be skipped)"
    return f" ({counted(-shift, 'record')} will be re-read)"


def _left_words(partitions: list[TopicPartition], word: str) -> str:
    left = counted(len(partitions), "partition")
    return f"{left} without a {word} left alone: {partition_names(partitions)}"
