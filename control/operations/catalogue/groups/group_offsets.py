"""Offsets of a group of any type: a share group has start offsets in the place of commits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition, other_names
from control.operations.errors import GroupActiveError, InvalidInputError

SHARE: Final = "share"
DELIVERED_AGAIN: Final = (
    "a share group keeps no other offset: what its members acknowledged beyond the start is "
    "delivered again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsets:
    """Reads and changes the offsets of one group."""

    admin: KafkaAdmin
    group: str
    group_type: str
    """As its coordinator tells; empty: there is no such group yet, or it does not tell."""

    @classmethod
    async def of(
        cls, admin: KafkaAdmin, group: str, *, must_exist: bool = False, otherwise: str = ""
    ) -> "GroupOffsets":
        """Those of a group. Blanks around its name are part of it where there is such a group.

        :raises InvalidInputError: it does not exist though it ``must_exist``, with what can be done
            ``otherwise``; or it has no name.
        """
        types = {it.group_id: it.group_type.lower() for it in await admin.groups.list_groups()}
        group = group if group in types else group.strip()
        if not group:
            raise InvalidInputError({"group": "is needed"})
        if must_exist and group not in types:
            words = f"there is no group {group}; {other_names(group, types)}{otherwise}"
            raise InvalidInputError({"group": words})
        return cls(admin=admin, group=group, group_type=types.get(group, ""))

    @property
    def is_share(self) -> bool:
        """It is a share group."""
        return self.group_type == SHARE

    @property
    def word(self) -> str:
        """Names one of its offsets."""
        return "start offset" if self.is_share else "commit"

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines that a preview of a change adds."""
        return (DELIVERED_AGAIN,) if self.is_share else ()

    async def read(self) -> Mapping[TopicPartition, int]:
        """Those that are known."""
        groups = self.admin.groups
        if not self.is_share:
            return await groups.committed_offsets(self.group)
        told = await groups.share_offsets(self.group)
        return {key: it.start for key, it in told.items() if it.start is not None}

    async def set(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Set these.

        :raises RefusedError: the group is active, a partition is unknown.
        """
        groups = self.admin.groups
        setting = groups.alter_share_offsets if self.is_share else groups.commit_offsets
        await setting(self.group, offsets)

    async def delete(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget these; of a share group all of their topics.

        :raises RefusedError: a member still reads them.
        """
        groups = self.admin.groups
        if self.is_share:
            await groups.delete_share_offsets(self.group, {key.topic for key in partitions})
        else:
            await groups.delete_offsets(self.group, partitions)

    async def require_no_members(self, *, of_topic: str | None = None) -> None:
        """Refuse a group whose members run, or read ``of_topic``: they commit for themselves.

        :raises GroupActiveError: it has such members.
        """
        listed = {it.group_id for it in await self.admin.groups.list_groups()}
        if self.group not in listed:
            return
        described = await self.admin.groups.describe_group(self.group)
        members = [
            f"{it.client_id} on {it.client_host}"
            for it in described.members
            if of_topic is None or any(key.topic == of_topic for key in it.assignment)
        ]
        if members:
            raise GroupActiveError(self.group, members, of_topic=of_topic)
