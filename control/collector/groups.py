"""Groups of one coordinator: who is due to be read, and what was read last. Pure.

A group whose offsets move, or whose state changed, is read in every turn; one that stands still
is read when its last reading is ``IDLE_AGE_MS`` old at most, spread so that not all fall due
together. Rows always carry the time of their own reading.
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from broker.metrics_schema import NO_COMMIT, CommitSample, GroupSample, Row
from control.kafka.acl import NO_BITS, common_bits
from control.kafka.ports import GroupDescription, ListedGroup
from control.model.ids import TopicPartition

IDLE_AGE_MS: Final = 5_000
DESCRIBE_AGE_MS: Final = 5_000
ACTIVE_FOR_MS: Final = 10_000
"""How long after its last movement a group counts as active."""
STATE_EMPTY: Final = "Empty"
CLASSIC: Final = "classic"
SHARE: Final = "share"


@dataclass(slots=True, kw_only=True)
class GroupState:
    """One group as last read."""

    group_id: str
    kind: str
    state: str
    listed_ms: int
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    lags: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Of a share group, as far as its broker tells them."""
    offsets_ms: int = 0
    moved_ms: int = 0
    members: int = 0
    protocol: str = ""
    epochs: tuple[int | None, int | None] = (None, None)
    """Of the group and of its assignment."""
    owners: Mapping[TopicPartition, str] = field(default_factory=dict)
    described_ms: int = 0
    is_denied: bool = False
    """We may not describe it: its offsets and members cannot be read."""
    bits: int = NO_BITS
    """Of the operations that we may do with it."""
    judged_ms: int = 0
    """When they were asked for."""

    @property
    def described_as(self) -> str:
        """The type whose request describes it: brokers before 3.8 tell none."""
        return self.kind or CLASSIC

    @property
    def idle_age_ms(self) -> int:
        """From half to all of IDLE_AGE_MS, fixed by the group's name."""
        half = IDLE_AGE_MS // 2
        return half + zlib.crc32(self.group_id.encode()) % half

    @property
    def held(self) -> Mapping[TopicPartition, int]:
        """Committed offsets, and ``NO_COMMIT`` of what members own without one; nothing before
        the offsets were read."""
        if not self.offsets_ms:
            return {}
        missing = [key for key in self.owners if key not in self.offsets]
        return {**self.offsets, **dict.fromkeys(missing, NO_COMMIT)} if missing else self.offsets


class GroupImages:
    """Groups that one broker coordinates."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupState] = {}

    def take_listed(self, listed: Iterable[ListedGroup], now_ms: int) -> None:
        """All groups of the coordinator; others are gone or moved away."""
        groups = {}
        for group in listed:
            known = self.groups.get(group.group_id)
            if known is None:
                known = GroupState(
                    group_id=group.group_id,
                    kind=group.group_type.lower(),
                    state=group.state,
                    listed_ms=now_ms,
                    moved_ms=now_ms,
                )
            if group.state and group.state != known.state:
                known.state, known.moved_ms, known.described_ms = group.state, now_ms, 0
            known.listed_ms = now_ms
            groups[group.group_id] = known
        self.groups = groups

    def due_offsets(self, now_ms: int, *, of_share: bool = False) -> list[str]:
        """Groups whose offsets are to be read now: share groups, or all others."""
        return [
            group.group_id
            for group in self.groups.values()
            if (group.kind == SHARE) is of_share
            and (
                now_ms - group.offsets_ms >= group.idle_age_ms
                or (now_ms - group.moved_ms < ACTIVE_FOR_MS and not group.is_denied)
            )
        ]

    def due_descriptions(self, now_ms: int, *, kind: str) -> list[str]:
        """Groups of a type with members, to be described now."""
        return [
            group.group_id
            for group in self.groups.values()
            if group.described_as == kind
            and (group.state != STATE_EMPTY or group.members)
            and now_ms - group.described_ms >= DESCRIBE_AGE_MS
        ]

    def due_rights(self, *, kind: str, most: int) -> list[str]:
        """Groups without members, to be asked what we may do with them: who waits longest first.
        Those with members are described anyway."""
        some = [
            group
            for group in self.groups.values()
            if group.described_as == kind and group.state == STATE_EMPTY
        ]
        some.sort(key=lambda group: group.judged_ms)
        return [group.group_id for group in some[:most]]

    def take_rights(self, group_id: str, bits: int, now_ms: int) -> None:
        """Notes our rights on a group; NO_BITS where the broker does not tell."""
        group = self.groups.get(group_id)
        if group is not None:
            group.bits, group.judged_ms = bits, now_ms

    def take_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        now_ms: int,
        lags: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Committed offsets, or start offsets and lags of a share group, answered at ``now_ms``."""
        group, told = self.groups.get(group_id), lags or {}
        if group is None:
            return
        if (offsets, told) != (group.offsets, group.lags) and group.offsets_ms:
            group.moved_ms = now_ms
        group.offsets, group.lags, group.offsets_ms = offsets, told, now_ms
        group.is_denied = False

    def take_denied(self, group_id: str, now_ms: int) -> None:
        """We may not read it; asked again when it would be due as an idle one."""
        group = self.groups.get(group_id)
        if group is not None:
            group.is_denied, group.offsets_ms, group.described_ms = True, now_ms, now_ms
            group.offsets, group.lags, group.owners, group.members = {}, {}, {}, 0

    def take_description(self, found: GroupDescription, now_ms: int) -> None:
        """Members and what they own."""
        group = self.groups.get(found.group_id)
        if group is None:
            return
        group.state, group.protocol = found.state, found.protocol
        group.members, group.described_ms = len(found.members), now_ms
        group.epochs = (found.group_epoch, found.assignment_epoch)
        group.owners = {key: m.member_id for m in found.members for key in m.assignment}
        if group.kind == SHARE:
            group.owners = _shared(found)

    @property
    def commits(self) -> int:
        """Groups, and what they have committed or own, as far as it is known."""
        return sum(1 + len(group.held) for group in self.groups.values())

    @property
    def bits(self) -> int:
        """Rights that we have on every group here, as far as they are known."""
        return common_bits(group.bits for group in self.groups.values())

    def denied(self) -> list[str]:
        """Groups that we may not describe."""
        return sorted(group.group_id for group in self.groups.values() if group.is_denied)

    def rows(self) -> Iterable[Row]:
        """Every group, every offset that was read, and what members own without one."""
        for group in self.groups.values():
            yield GroupSample(
                group_id=group.group_id,
                state=group.state or "Unknown",
                members=group.members,
                read_ms=group.listed_ms,
                protocol=group.protocol,
                group_type=group.kind,
                group_epoch=group.epochs[0],
                assignment_epoch=group.epochs[1],
            )
            for key, offset in group.held.items():
                yield CommitSample(
                    group_id=group.group_id,
                    topic=key.topic,
                    partition=key.partition,
                    committed_offset=offset,
                    read_ms=group.offsets_ms,
                    member_id=group.owners.get(key),
                    told_lag=group.lags.get(key),
                )


def _shared(found: GroupDescription) -> dict[TopicPartition, str]:
    """Readers of each partition: members of a share group read the same ones. A single one is
    named, more are counted."""
    readers: dict[TopicPartition, list[str]] = {}
    for member in found.members:
        for key in member.assignment:
            readers.setdefault(key, []).append(member.member_id)
    return {key: ids[0] if len(ids) == 1 else f"{len(ids)} members" for key, ids in readers.items()}
