"""Delete a group with its committed offsets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from control.kafka.acl import AclOperation, Lacking
from control.model.units import counted
from control.operations.catalogue.fields import GROUP, REASON
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.groups.group_offsets import GroupOffsets
from control.operations.catalogue.operation import Change, Done, Effect, Operation, OperationContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup(Operation):
    """Consumers that come back begin where ``auto.offset.reset`` says."""

    FORM: ClassVar[OperationForm] = OperationForm(
        name="delete_group",
        key="G",
        title="Delete a group",
        help="its committed offsets are lost; its consumers must be stopped",
        submit_label="Delete",
        is_destructive=True,
        confirmation=Confirmation.TYPED,
        fields=(GROUP, REASON),
    )
    RIGHTS: ClassVar[Lacking] = ((AclOperation.DELETE, "group"),)

    group: str

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """The command of a form's checked fields."""
        return cls(group=fields["group"], reason=fields["reason"])

    @property
    def what(self) -> str:
        """For the journal."""
        return f"delete group {self.group}"

    @property
    def thing(self) -> str:
        """The group."""
        return self.group

    async def preview(self, context: OperationContext) -> Effect[Self]:
        """The commits that are lost.

        :raises GroupActiveError: it has members.
        :raises InvalidInputError: there is no such group.
        """
        group = await GroupOffsets.of(context.admin, self.group, must_exist=True)
        await group.require_no_members()
        committed = await group.read()
        commits = counted(len(committed), group.word)
        lost = (
            Change(str(key), offset, None, f"{key}: {group.word} {offset:,} is lost")
            for key, offset in sorted(committed.items())
        )
        whole = Change("group", group.group, None, f"{group.group} and {commits} are deleted")
        return Effect(
            command=replace(self, group=group.group),
            changes=(whole, *lost),
            summary=whole.line,
            facts=tuple(sorted(committed.items())),
        )

    async def perform(self, context: OperationContext) -> Done:
        """Delete it."""
        await context.admin.groups.delete_group(self.group)
        return Done(words=f"{self.group} is deleted", view="groups")
