"""Groups of the consumer protocol, driven by members that live, die, lose answers and come back.

By seed, with deadlines and topics that change. The records rebuild the group at any moment; no
partition has two holders among members that are not fenced; once all is calm everything is
assigned, evenly where all subscribe alike.
"""

import random
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

import pytest

from broker.coordinator.consumer.assignors import ASSIGNORS, Subscriber
from broker.coordinator.consumer.consumer_group import ConsumerGroup
from broker.coordinator.consumer.consumer_heartbeat import (
    ConsumerHeartbeat,
    HeartbeatAnswer,
    HeartbeatContext,
    heartbeat,
)
from broker.coordinator.consumer.consumer_member import Assigned, MemberState
from broker.coordinator.consumer.consumer_records import ConsumerKey
from broker.coordinator.consumer.consumer_replay import ConsumerReplay
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.groups.group_state import GroupState
from broker.coordinator.records import decode_key
from broker.metadata.image import PartitionImage, TopicImage
from tests.support.cases import case

SESSION_MS: Final = 45_000
REBALANCE_MS: Final = 60_000
STEPS: Final = 120
SEEDS: Final = range(60)
TOPICS: Final = ("a", "b", "c-1", "c-2")
REGEXES: Final = ("c-.*", "[ab]")


def topic_of(name: str, partitions: int) -> TopicImage:
    view = PartitionImage.__new__(PartitionImage)
    return TopicImage(
        name=name,
        topic_id=UUID(int=hash_of(name)),
        partitions=dict.fromkeys(range(partitions), view),
    )


def hash_of(name: str) -> int:
    return int.from_bytes(name.encode())


@dataclass(slots=True)
class Member:
    """A client: it owns what it was told last, and gives up what is gone from that."""

    member_id: str
    instance_id: str | None
    topics: frozenset[str] | None
    regex: str | None
    epoch: int = 0
    owned: dict[UUID, frozenset[int]] = field(default_factory=dict)
    has_heard: bool = True
    """After a lost answer it tells everything, as Kafka's clients do."""

    def request(self, *, is_full: bool) -> ConsumerHeartbeat:
        told = ConsumerHeartbeat(
            member_id=self.member_id,
            epoch=self.epoch,
            instance_id=self.instance_id,
            owned=dict(self.owned),
            client_id="c",
            client_host="/h",
        )
        if not is_full and self.has_heard and self.epoch > 0:
            return told
        return replace(
            told, topics=self.topics, regex=self.regex, rebalance_timeout_ms=REBALANCE_MS
        )

    def take(self, answer: HeartbeatAnswer) -> None:
        if answer.error in (
            CoordinatorError.FENCED_MEMBER_EPOCH, CoordinatorError.UNKNOWN_MEMBER_ID
        ):  # fmt: skip
            self.epoch, self.owned = 0, {}
        elif answer.error is CoordinatorError.NONE:
            self.epoch = answer.epoch
            if answer.assignment is not None:
                self.owned = dict(answer.assignment)


class Scene:
    """A group, its log and its clients."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.now_ms = 0
        self.topics = {name: topic_of(name, dice.randrange(1, 6)) for name in TOPICS[:2]}
        self.group = ConsumerGroup(group_id="g", session_timeout_ms=SESSION_MS)
        self.log: dict[bytes, bytes | None] = {}
        self.clients: list[Member] = []
        self.made = 0

    def context(self) -> HeartbeatContext:
        return HeartbeatContext(
            topics=self.topics, now_ms=self.now_ms, wall_ms=self.now_ms, metadata_offset=7,
            size_max=9, resolve=self._resolve,
        )  # fmt: skip

    def _resolve(self, regex: str) -> frozenset[str]:
        starts = {"c-.*": ("c-",), "[ab]": ("a", "b")}[regex]
        return frozenset(name for name in self.topics if name.startswith(starts))

    def write(self) -> None:
        for key, value in self.group.take_records():
            self.log[key] = value
        self.group.check_invariants()

    def beat(self, client: Member, *, is_heard: bool = True, is_full: bool = False) -> None:
        answer = heartbeat(self.group, client.request(is_full=is_full), self.context())
        self.write()
        client.has_heard = is_heard
        if is_heard:
            client.take(answer)

    def join(self) -> None:
        self.made += 1
        is_by_regex = self.dice.random() < 0.3
        client = Member(
            f"m{self.made}",
            f"i{self.made}" if self.dice.random() < 0.3 else None,
            None if is_by_regex else frozenset(self.dice.sample(TOPICS, self.dice.choice((1, 2)))),
            self.dice.choice(REGEXES) if is_by_regex else None,
        )
        self.clients.append(client)
        self.beat(client)

    def leave(self) -> None:
        client = self.clients.pop(self.dice.randrange(len(self.clients)))
        is_for_a_while = client.instance_id is not None and self.dice.random() < 0.5
        epoch = -2 if is_for_a_while else -1
        heartbeat(self.group, replace(client.request(is_full=False), epoch=epoch), self.context())
        self.write()
        if is_for_a_while:
            self.made += 1
            self.clients.append(replace(client, member_id=f"m{self.made}", epoch=0, owned={}))

    def reload(self) -> None:
        """Another node reads the log."""
        replay = ConsumerReplay()
        for key, value in self.dice.sample([*self.log.items()], len(self.log)):
            decoded = decode_key(key)
            assert isinstance(decoded, ConsumerKey)
            if value is not None:
                replay.apply(decoded, value)
        before, found = self.group, replay.finish()
        after = found.get("g") or ConsumerGroup(group_id="g", session_timeout_ms=SESSION_MS)
        assert after.members == before.members
        assert after.holders == before.holders
        assert (after.epoch, after.target_epoch) == (before.epoch, before.target_epoch)
        assert {k: v for k, v in after.target.items() if v} == {
            k: v for k, v in before.target.items() if v
        }
        after.start_clocks(SESSION_MS, self.now_ms)
        self.group = after

    def change_topics(self) -> None:
        name = self.dice.choice(TOPICS)
        known = self.topics.get(name)
        if known is not None and self.dice.random() < 0.4:
            del self.topics[name]
        else:
            self.topics[name] = topic_of(name, (0 if known is None else len(known.partitions)) + 2)
        self.group.is_stale = True

    def step(self) -> None:
        dice = self.dice
        self.now_ms += dice.choice((0, 100, 3_000, 20_000))
        match dice.randrange(12):
            case 0 | 1 if len(self.clients) < 7:
                self.join()
            case 2 if self.clients:
                self.leave()
            case 3 if self.clients:
                self.clients.pop(dice.randrange(len(self.clients)))  # it dies unheard
            case 4:
                self.reload()
            case 5:
                self.change_topics()
            case 6:
                self.group.time_passed(self.now_ms)
                self.write()
            case _ if self.clients:
                client = dice.choice(self.clients)
                self.beat(client, is_heard=dice.random() < 0.8, is_full=dice.random() < 0.2)
        self.check_owned()

    def check_owned(self) -> None:
        """Members that are not fenced never own what another one of them owns."""
        owned = [
            (topic, number)
            for client in self.clients
            if (known := self.group.members.get(client.member_id)) is not None
            and client.epoch in (known.epoch, known.previous_epoch)
            for topic, numbers in client.owned.items()
            for number in numbers
        ]
        assert len(owned) == len(set(owned)), "two own a partition"

    def calm_down(self) -> None:
        """Everyone lives and is heard until nothing changes any more."""
        for _ in range(40):
            self.now_ms += 5_000
            for client in self.clients:
                self.beat(client, is_full=client.epoch == 0)
            self.group.time_passed(self.now_ms)
            self.write()
            self.check_owned()

    def check_end(self) -> None:
        group = self.group
        assert group.members.keys() == {client.member_id for client in self.clients}
        expected = GroupState.STABLE if self.clients else GroupState.EMPTY
        assert group.state is expected
        wanted = {
            (self.topics[name].topic_id, number)
            for member in group.members.values()
            for name in group.topics_of(member) & self.topics.keys()
            for number in self.topics[name].partitions
        }
        assert {(topic, p) for topic, held in group.holders.items() for p in held} == wanted
        for client in self.clients:
            assert client.owned == group.members[client.member_id].assigned
            assert group.members[client.member_id].state is MemberState.STABLE


def test_whatever_happens_everything_is_assigned_once_in_the_end() -> None:
    for seed in SEEDS:
        with case(seed):
            scene = Scene(random.Random(seed))
            for _ in range(STEPS):
                scene.step()
            scene.calm_down()
            scene.check_end()
            scene.reload()


def _parts(assignor: str, members: dict[str, Subscriber], topics: dict[UUID, int]) -> list[int]:
    made = ASSIGNORS[assignor](members, topics)
    pairs = [(topic, p) for part in made.values() for topic, ps in part.items() for p in ps]
    asked = {it for member in members.values() for it in member.topics if it in topics}
    assert sorted(pairs) == sorted((it, p) for it in asked for p in range(topics[it]))
    assert all(part.keys() <= members[member_id].topics for member_id, part in made.items())
    return [sum(map(len, part.values())) for part in made.values()]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_assignors_give_everything_to_subscribers(assignor: str) -> None:
    for seed in range(100):
        with case(seed):
            dice = random.Random(seed)
            topics = {UUID(int=number): dice.randrange(1, 9) for number in range(1, 5)}
            members = {
                f"m{number}": Subscriber(
                    topics=frozenset(dice.sample([*topics, UUID(int=99)], dice.randrange(1, 4))),
                    current={},
                )
                for number in range(dice.randrange(1, 6))
            }
            _parts(assignor, members, topics)


def test_uniform_is_even_and_moves_no_more_than_it_must() -> None:
    for seed in range(100):
        with case(seed):
            dice = random.Random(seed)
            topics = {UUID(int=number): dice.randrange(1, 9) for number in range(1, 4)}
            everything = frozenset(topics)
            current: dict[str, Assigned] = {}
            for count in (1, 3, 2, 5, 4):
                members = {
                    f"m{number}": Subscriber(
                        topics=everything, current=current.get(f"m{number}", {})
                    )
                    for number in range(count)
                }
                sizes = _parts("uniform", members, topics)
                assert max(sizes) - min(sizes) <= 1
                made = ASSIGNORS["uniform"](members, topics)
                quota = -(-sum(topics.values()) // count)
                for member_id, before in current.items():
                    if member_id in made:
                        kept = sum(
                            len(ps & made[member_id].get(t, frozenset()))
                            for t, ps in before.items()
                        )
                        assert kept >= min(sum(map(len, before.values())), quota - 1)
                current = made


def test_range_gives_runs_and_alike_topics_alike() -> None:
    one, other = UUID(int=1), UUID(int=2)
    members = {it: Subscriber(topics=frozenset({one, other}), current={}) for it in ("x", "y", "z")}
    made = ASSIGNORS["range"](members, {one: 7, other: 7})
    assert [sorted(made[it][one]) for it in "xyz"] == [[0, 1, 2], [3, 4], [5, 6]]
    assert all(part[one] == part[other] for part in made.values())
