"""Committed offsets of one group, and which of them have outlived their use. Pure.

An offset expires (KIP-186, KIP-211; Kafka's OffsetExpirationConditionImpl):

| the group                                 | an offset expires `retention` after                 |
|-------------------------------------------|-----------------------------------------------------|
| never had members (only commits)          | its own commit                                      |
| is Empty                                  | the group became Empty (and was committed before)   |
| is a running consumer group               | its commit, if nobody subscribes to its topic       |
| runs any other protocol                   | never                                               |
| has the consumer protocol (KIP-848)       | its commit, if nobody subscribes to its topic       |

An explicit expiry in the record (OffsetCommit up to v4) wins over all of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.groups.consumer_protocol import PROTOCOL_TYPE, subscribed_topics
from broker.coordinator.groups.group_state import ClassicGroup, GroupState
from broker.coordinator.records import NO_EXPIRY_MS, CommittedOffset

TopicPartition = tuple[str, int]
AnyGroup = ClassicGroup | ConsumerGroup


class StoredOffset(NamedTuple):
    """A committed offset and where its record lies in __consumer_offsets. A tuple, since one
    request may store thousands at a stretch."""

    committed: CommittedOffset
    log_offset: int


@dataclass(slots=True)
class GroupOffsets:
    """The newest committed offset per partition; the log's order decides what is newest."""

    stored: dict[TopicPartition, StoredOffset] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.stored)

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        """The committed offset, or None."""
        found = self.stored.get((topic, partition))
        return None if found is None else found.committed

    def put(self, key: TopicPartition, committed: CommittedOffset, log_offset: int) -> None:
        """Keep a durable commit unless a later one is already here."""
        current = self.stored.get(key)
        if current is None or current.log_offset <= log_offset:
            self.stored[key] = StoredOffset(committed=committed, log_offset=log_offset)

    def remove(self, key: TopicPartition) -> None:
        """Forget one partition."""
        self.stored.pop(key, None)

    def by_topic(self) -> Mapping[str, list[int]]:
        """Topic -> its partitions that have an offset, sorted."""
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.stored):
            topics.setdefault(topic, []).append(partition)
        return topics


@dataclass(slots=True, kw_only=True)
class GroupEntry:
    """A group and its offsets; `deadline_ms` is when its timer is armed for."""

    group: AnyGroup
    offsets: GroupOffsets = field(default_factory=GroupOffsets)
    deadline_ms: int | None = None

    def expired_offsets(self, *, wall_ms: int, retention_ms: int) -> list[TopicPartition]:
        """Partitions whose offsets have outlived their use."""
        in_use = group_subscription(self.group)
        return [
            key
            for key, stored in self.offsets.stored.items()
            if _expiry_ms(self.group, key[0], stored.committed, in_use, retention_ms) <= wall_ms
        ]

    @property
    def is_obsolete(self) -> bool:
        """No members and nothing committed: only a tombstone is left to write."""
        is_idle = self.group.state is GroupState.EMPTY and not self.offsets
        is_awaited = isinstance(self.group, ClassicGroup) and bool(self.group.roster.pending)
        return is_idle and not is_awaited


def group_subscription(group: AnyGroup) -> frozenset[str] | None:
    """Topics that members of a running consumer group ask for; None when that is unknown."""
    if isinstance(group, ConsumerGroup):
        return group.subscription()
    if group.protocol_type != PROTOCOL_TYPE or group.protocol_name is None:
        return None
    if group.state is not GroupState.STABLE:
        return None
    topics: set[str] = set()
    for member in group.roster:
        subscribed = subscribed_topics(member.metadata(group.protocol_name))
        if subscribed is None:
            return None
        topics |= subscribed
    return frozenset(topics)


_NEVER_MS = 1 << 62


def _expiry_ms(
    group: AnyGroup,
    topic: str,
    committed: CommittedOffset,
    in_use: frozenset[str] | None,
    retention_ms: int,
) -> int:
    if committed.expire_ms != NO_EXPIRY_MS:
        return committed.expire_ms
    if group.state is GroupState.EMPTY:
        empty_since_ms = group.state_ms if group.protocol_type else -1
        return max(empty_since_ms, committed.commit_ms) + retention_ms
    if in_use is not None and topic not in in_use:
        return committed.commit_ms + retention_ms
    return _NEVER_MS
