"""Delete a group's committed offsets of one topic."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from control.kafka.acl import AclOperation, Lacking
from control.model.ids import TopicPartition
from control.model.units import counted
from control.operations.catalogue.fields import GROUP, REASON, TOPIC
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.groups.group_offsets import GroupOffsets
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOffsets(Operation):
    """For a topic that the group does not read any more: its old commits show lag for ever."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="delete_offsets",
        key="U",
        title="Delete a group's offsets of a topic",
        help="for a topic that the group has stopped reading",
        submit_label="Delete",
        is_destructive=True,
        confirmation=Confirmation.TYPED,
        fields=(GROUP, TOPIC, REASON),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.DELETE, "group"), (AclOperation.READ, "topic"))

    group: str
    topic: str
    partitions: tuple[TopicPartition, ...] = ()
    """Of the frozen command: those with a commit."""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(group=fields["group"], topic=fields["topic"], reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return f"delete offsets of {self.group} on {self.topic}"

    @property
    def thing(self) -> str:
        """The group."""
        return self.group

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The commits that are deleted; the topic need not exist any more.

        :raises GroupActiveError: members read the topic, or it is a share group with members.
        """
        group = await GroupOffsets.of(context.admin, self.group)
        await group.require_no_members(of_topic=None if group.is_share else self.topic)
        committed = await group.read()
        here = {key: at for key, at in sorted(committed.items()) if key.topic == self.topic}
        return Effect(
            command=replace(self, group=group.group, partitions=tuple(here)),
            changes=tuple(
                Change(str(key), offset, None, f"{key}: {group.word} {offset:,} is deleted")
                for key, offset in here.items()
            ),
            facts=tuple(here.items()),
        )

    async def perform(self, context: OperationContext) -> Done:
        """:raises RefusedError: a member still reads the topic (GROUP_SUBSCRIBED_TO_TOPIC)."""
        group = await GroupOffsets.of(context.admin, self.group)
        await group.delete(self.partitions)
        commits = counted(len(self.partitions), group.word)
        words = f"{commits} of {self.group} on {self.topic} deleted"
        return Done(words=words, view="group", params={"group": self.group})
