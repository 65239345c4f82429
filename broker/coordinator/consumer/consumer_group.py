"""A consumer group: members, the target that was assigned, and who holds what. Pure.

Each step changes the state and adds the records that tell of it; whoever drives the group appends
them and answers once they are durable. `consumer_heartbeat` has the steps of a request.

| state       | when                                                   |
|-------------|--------------------------------------------------------|
| Empty       | no members                                             |
| Assigning   | the group's epoch is newer than the target's           |
| Reconciling | some member does not have its part of the target yet   |
| Stable      | all have it                                            |

Source: KIP-848, ConsumerGroup and TargetAssignmentBuilder of Kafka's group-coordinator.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from broker.coordinator.consumer.assignors import ASSIGNORS, Subscriber
from broker.coordinator.consumer.consumer_member import (
    LEAVE_STATIC_EPOCH,
    NOTHING,
    Assigned,
    ConsumerMember,
    MemberState,
)
from broker.coordinator.consumer.consumer_records import (
    CURRENT,
    GROUP,
    MEMBER,
    REGEX,
    TARGET,
    TARGET_EPOCH,
    ConsumerKey,
    KeyValue,
    current_record,
    group_record,
    member_record,
    target_epoch_record,
    target_record,
)
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_state import GroupState
from broker.metadata.image import TopicImage

Topics = Mapping[str, TopicImage]
USUAL_ASSIGNOR: Final = next(iter(ASSIGNORS))


@dataclass(slots=True, kw_only=True)
class ConsumerGroup:
    """One group. Deadlines are in the clock of the events."""

    group_id: str
    session_timeout_ms: int
    epoch: int = 0
    metadata_hash: int = 0
    """Of the topics that the target was made for."""
    target_epoch: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    target: dict[str, Assigned] = field(default_factory=dict)
    regexes: dict[str, frozenset[str]] = field(default_factory=dict)
    holders: dict[UUID, dict[int, str]] = field(default_factory=dict)
    """Who holds each partition, by topic."""
    session_ends_ms: dict[str, int] = field(default_factory=dict)
    revocation_ends_ms: dict[str, int] = field(default_factory=dict)
    is_stale: bool = True
    """Topics may have changed since they were looked at."""
    records: list[KeyValue] = field(default_factory=list)

    protocol_type: str = "consumer"
    state_ms: int = -1
    """Offsets of such a group expire by their own age."""

    @property
    def state(self) -> GroupState:
        """As ListGroups and ConsumerGroupDescribe show it."""
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        are_there = all(it.is_reconciled_to(self.target_epoch) for it in self.members.values())
        return GroupState.STABLE if are_there else GroupState.RECONCILING

    @property
    def assignor(self) -> str:
        """The one that most members ask for, else the usual one."""
        asked = Counter(it.assignor for it in self.members.values() if it.assignor)
        return min(asked, key=lambda it: (-asked[it], it)) if asked else USUAL_ASSIGNOR

    @property
    def deadline_ms(self) -> int | None:
        """When a session or a revocation next ends."""
        ends = (*self.session_ends_ms.values(), *self.revocation_ends_ms.values())
        return min(ends, default=None)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Names that it subscribes to, those of its regular expression included."""
        return member.topics | self.regexes.get(member.regex, frozenset())

    def subscription(self) -> frozenset[str]:
        """Topics that any member subscribes to."""
        return frozenset(name for it in self.members.values() for name in self.topics_of(it))

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member of an instance."""
        members = self.members.values()
        return next((it for it in members if it.instance_id == instance_id), None)

    def check_epoch(self, member_id: str, epoch: int) -> CoordinatorError:
        """Whether a member may commit or read offsets."""
        member = self.members.get(member_id)
        if member is None:
            return CoordinatorError.UNKNOWN_MEMBER_ID
        is_newest = epoch == member.epoch
        return CoordinatorError.NONE if is_newest else CoordinatorError.STALE_MEMBER_EPOCH

    def put(self, member: ConsumerMember) -> None:
        """Take a member in, or in its new state; writes nothing."""
        self._release(member.member_id)
        self.members[member.member_id] = member
        for topic, partitions in member.held.items():
            self.holders.setdefault(topic, {}).update(dict.fromkeys(partitions, member.member_id))

    def _release(self, member_id: str) -> None:
        known = self.members.get(member_id)
        for topic, partitions in () if known is None else known.held.items():
            by_partition = self.holders[topic]
            for partition in partitions:
                del by_partition[partition]
            if not by_partition:
                del self.holders[topic]

    def is_free(self, topic: UUID, partition: int) -> bool:
        """Whether no member holds a partition."""
        return partition not in self.holders.get(topic, NOTHING)

    def write_member(self, member: ConsumerMember) -> None:
        """Take in what it subscribes to."""
        self.put(member)
        self.records.append(member_record(self.group_id, member))

    def write_current(self, member: ConsumerMember) -> None:
        """Take in what it has."""
        self.put(member)
        self.records.append(current_record(self.group_id, member))

    def remove(self, member_id: str) -> None:
        """A member is gone: others get what it had."""
        self._drop(member_id)
        self._drop_regexes()
        self.bump_epoch()

    def _drop(self, member_id: str) -> None:
        self._release(member_id)
        del self.members[member_id]
        self.target.pop(member_id, None)
        self.session_ends_ms.pop(member_id, None)
        self.revocation_ends_ms.pop(member_id, None)
        keys = (ConsumerKey(kind, self.group_id, member_id) for kind in (CURRENT, TARGET, MEMBER))
        self.records += (key.tombstone for key in keys)

    def replace_static(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """Another process of the same instance has what the old one had."""
        target = self.target.get(old.member_id, NOTHING)
        self._drop(old.member_id)
        member = replace(
            old, member_id=member_id, epoch=0, previous_epoch=0,
            state=MemberState.STABLE, revoking=NOTHING,
        )  # fmt: skip
        self.target[member_id] = target
        self.write_member(member)
        self.records.append(target_record(self.group_id, member_id, target))
        self.write_current(member)
        return member

    def leave_for_a_while(self, member: ConsumerMember) -> None:
        """A static member will come back: nobody gets what it has."""
        away = replace(member, epoch=LEAVE_STATIC_EPOCH, state=MemberState.STABLE, revoking=NOTHING)
        self.revocation_ends_ms.pop(member.member_id, None)
        self.write_current(away)

    def resolve(self, regex: str, topics: frozenset[str], record: KeyValue) -> bool:
        """Remember which topics an expression names; whether that is new."""
        is_new = self.regexes.get(regex) != topics
        if is_new:
            self.regexes[regex] = topics
            self.records.append(record)
        return is_new

    def _drop_regexes(self) -> None:
        used = {member.regex for member in self.members.values()}
        for regex in self.regexes.keys() - used:
            del self.regexes[regex]
            self.records.append(ConsumerKey(REGEX, self.group_id, regex).tombstone)

    def refresh(self, topics: Topics) -> bool:
        """Look at the topics; whether the target must be made anew for them."""
        self.is_stale = False
        found = hash_of(topics, self.subscription())
        has_changed = found != self.metadata_hash
        self.metadata_hash = found
        return has_changed

    def bump_epoch(self) -> None:
        """Members or topics have changed: a new target is due."""
        self.epoch += 1
        self.records.append(group_record(self.group_id, self.epoch, self.metadata_hash))

    def maybe_assign(self, topics: Topics) -> None:
        """Make the target of the newest epoch."""
        if self.target_epoch >= self.epoch:
            return
        subscribed = {name: topics[name] for name in self.subscription() if name in topics}
        ids = {name: it.topic_id for name, it in subscribed.items()}
        counts = {it.topic_id: len(it.partitions) for it in subscribed.values()}
        members = {
            member.member_id: Subscriber(
                topics=frozenset(ids[it] for it in self.topics_of(member) if it in ids),
                current=self.target.get(member.member_id, NOTHING),
                instance_id=member.instance_id,
            )
            for member in self.members.values()
        }
        made = ASSIGNORS[self.assignor](members, counts)
        for member_id, target in made.items():
            if target != self.target.get(member_id):
                self.records.append(target_record(self.group_id, member_id, target))
        self.target = made
        self.target_epoch = self.epoch
        self.records.append(target_epoch_record(self.group_id, self.epoch))

    def renew_session(self, member_id: str, now_ms: int) -> None:
        """It lives."""
        self.session_ends_ms[member_id] = now_ms + self.session_timeout_ms

    def time_passed(self, now_ms: int) -> None:
        """Takes out members that were silent for too long or keep what they must give up."""
        ends = (self.session_ends_ms, self.revocation_ends_ms)
        late = {it for by_member in ends for it, end in by_member.items() if end <= now_ms}
        for member_id in sorted(late):
            self.remove(member_id)

    def tombstones(self) -> list[KeyValue]:
        """Delete all of an empty group."""
        keys = [ConsumerKey(REGEX, self.group_id, regex) for regex in self.regexes]
        keys += [ConsumerKey(kind, self.group_id) for kind in (TARGET_EPOCH, GROUP)]
        return [key.tombstone for key in keys]

    def start_clocks(self, session_timeout_ms: int, now_ms: int) -> None:
        """Read from the log: every deadline counts from now on."""
        self.session_timeout_ms = session_timeout_ms
        for member_id, member in self.members.items():
            self.renew_session(member_id, now_ms)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self.revocation_ends_ms[member_id] = now_ms + member.rebalance_timeout_ms

    def take_records(self) -> list[KeyValue]:
        """Records that are to be written; they are handed out once."""
        taken, self.records = self.records, []
        return taken

    def check_invariants(self) -> None:
        """Raise AssertionError when the parts contradict each other."""
        held = [
            (topic, partition)
            for member in self.members.values()
            for topic, partitions in member.held.items()
            for partition in partitions
        ]
        assert len(held) == len(set(held)), "a partition with two holders"
        holders = {(topic, p) for topic, by_partition in self.holders.items() for p in by_partition}
        assert set(held) == holders, "holders are out of step"
        assert self.target.keys() <= self.members.keys(), "a target of nobody"
        assert self.target_epoch <= self.epoch, "a target of the future"


def hash_of(topics: Topics, names: Iterable[str]) -> int:
    """A number that changes when a topic of these comes, goes or gets partitions."""
    told = [
        f"{it} {topics[it].topic_id} {len(topics[it].partitions)}" for it in names if it in topics
    ]
    if not told:
        return 0
    return int.from_bytes(hashlib.blake2b("\n".join(sorted(told)).encode(), digest_size=8).digest())
