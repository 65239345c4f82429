"""Throttles that nobody needs are found; those of running moves are not."""

import asyncio
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.errors import RefusedError, UnreachableError
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from control.model.watched_cluster import Site
from control.move.events import EventKind
from control.move.throttle import (
    ALL_REPLICAS,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
)
from control.operations.catalogue.brokers.clear_throttles import ClearThrottles
from control.operations.errors import PartlyDoneError
from control.operations.executor.throttles.left_throttles import (
    LISTS_SHARE,
    LeftThrottles,
    RunningMoves,
    SetThrottle,
)
from tests.support.phrases import lacking
from tests.unit.control.operations.conftest import PassS
from tests.unit.control.operations.executor.test_throttle_of_move import RATE, keeper_on
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    key_of,
)

A = change("a")
SITE = Site("c:1")
OTHER = key_of("b", 0)


def broker(number: int) -> ConfigResource:
    return ConfigResource(scope=ConfigScope.BROKER, name=str(number))


def topic(name: str) -> ConfigResource:
    return ConfigResource(scope=ConfigScope.TOPIC, name=name)


async def left(cluster: FakeCluster, *contexts: FakeContext) -> dict[str, SetThrottle]:
    known: Any = cluster
    states = [context.state() for context in contexts]
    running = RunningMoves.of(states, await cluster.list_reassignments(), site=SITE)
    return {it.name: it for it in await LeftThrottles(known).read(running)}


async def test_what_another_tool_left_is_told_with_broker_topic_and_value() -> None:
    cluster = FakeCluster({A.key: FROM})
    assert await left(cluster) == {}
    cluster.configs = {
        broker(1): {LEADER_RATE: str(8 << 20)},
        topic("a"): {LEADER_REPLICAS: ",".join(f"{n}:1" for n in range(5))},
    }
    found = await left(cluster)
    assert {name: it.words for name, it in found.items()} == {
        f"broker 1 {LEADER_RATE}": "8.0 MiB/s",
        f"topic a {LEADER_REPLICAS}": "0:1, 1:1, 2:1 and 2 more",
    }
    assert all(it.left is None for it in found.values())


async def test_what_a_move_of_ours_has_set_is_not_left_until_it_is_gone() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    await keeper.begin_wave([A.key])
    assert await left(cluster, context) == {}
    assert len(await left(cluster)) == 8, "without the bus nobody would know"
    cluster.configs[topic("a")][FOLLOWER_REPLICAS] += ",7:4"
    (found,) = (await left(cluster, context)).values()
    assert (found.config, found.left) == (FOLLOWER_REPLICAS, "0:3")
    cluster.configs[broker(4)] = {LEADER_RATE: "5"}
    assert f"broker 4 {LEADER_RATE}" in await left(cluster, context)
    context.told(EventKind.THROTTLE_REMOVED, "gone")
    assert len(await left(cluster, context)) == 9


async def test_what_somebody_elses_running_move_needs_is_not_left() -> None:
    cluster = FakeCluster({A.key: FROM, OTHER: (1, 2)})
    cluster.begin(OTHER, (3, 2))
    cluster.configs = {broker(n): dict.fromkeys(RATES, "9") for n in (1, 2, 3, 4)}
    cluster.configs |= {
        topic("b"): {LEADER_REPLICAS: "0:1,5:1", FOLLOWER_REPLICAS: ALL_REPLICAS},
        topic("a"): {LEADER_REPLICAS: ALL_REPLICAS},
    }
    found = await left(cluster)
    assert {name: it.left for name, it in found.items()} == {
        **{f"broker 4 {name}": None for name in RATES},
        f"topic b {LEADER_REPLICAS}": "0:1",
        f"topic a {LEADER_REPLICAS}": None,
    }


async def test_what_one_broker_refuses_to_clear_holds_up_no_other() -> None:
    admin: Any = FakeCluster({A.key: FROM})
    admin.configs = {broker(n): {LEADER_RATE: "9"} for n in (1, 2)}
    admin.configs |= {topic("a"): {LEADER_REPLICAS: "0:1"}}
    context: Any = SimpleNamespace(admin=admin)
    clear = ClearThrottles(throttles=tuple((await left(admin)).values()))
    refused = RefusedError(ErrorCode.cluster_authorization_failed, what="changing configs of 1")
    admin.removal_refusals = {1: refused}
    with pytest.raises(PartlyDoneError) as told:
        await clear.perform(context)
    assert not lacking(str(told.value), "2 throttles cleared", "broker 1")
    assert await left(admin) == {f"broker 1 {LEADER_RATE}": clear.throttles[0]}
    with pytest.raises(RefusedError):
        await ClearThrottles(throttles=clear.throttles[:1]).perform(context)


class CountedCluster(FakeCluster):
    """Counts the topics that are asked for their lists; each takes a second."""

    def __init__(self, *names: str, pass_s: PassS) -> None:
        super().__init__({key_of(name, 0): FROM for name in names})
        self.asked_topics = 0
        self._pass_s = pass_s

    async def describe_many_configs(
        self, resources: Iterable[ConfigResource], names: Iterable[str] | None = None
    ) -> Mapping[ConfigResource, tuple[ConfigEntry, ...]]:
        asked = list(resources)
        topics = sum(it.scope is ConfigScope.TOPIC for it in asked)
        self.asked_topics += topics
        self._pass_s(float(topics))()
        return await super().describe_many_configs(asked, names)


async def test_rounds_read_what_has_lists_and_all_topics_now_and_then(pass_s: PassS) -> None:
    cluster: Any = CountedCluster("a", "b", "c", pass_s=pass_s)
    cluster.configs = {topic("a"): {LEADER_REPLICAS: "0:1"}}
    found, running = LeftThrottles(cluster), RunningMoves()
    asked = []
    for _ in range(3):
        before = cluster.asked_topics
        assert [it.resource for it in await found.read(running)] == [topic("a")]
        asked.append(cluster.asked_topics - before)
    assert asked == [3, 1, 1]

    cluster.configs = {topic("b"): {LEADER_REPLICAS: "0:1"}, broker(1): {LEADER_RATE: "9"}}
    assert [it.resource for it in await found.read(running)] == [broker(1)], "rates each time"
    pass_s(3 / LISTS_SHARE)()
    assert [it.resource for it in await found.read(running)] == [broker(1), topic("b")]


async def test_more_lists_than_a_round_reads_are_all_told_and_read_by_turns(
    pass_s: PassS, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{LeftThrottles.__module__}.TOPICS_MAX", 1)
    cluster: Any = CountedCluster("a", "b", pass_s=pass_s)
    cluster.configs = {topic(name): {LEADER_REPLICAS: "0:1"} for name in "ab"}
    found, running = LeftThrottles(cluster), RunningMoves()
    for _ in range(3):
        told = [it.resource for it in await found.read(running)]
        assert told == [topic("a"), topic("b")], "in the same order each time"
    cluster.configs = {}
    assert [len(await found.read(running)) for _ in range(2)] == [1, 0]


class SilentCluster(FakeCluster):
    """Some brokers never answer."""

    silent = frozenset({1})

    async def describe_configs(
        self, resource: ConfigResource, names: Iterable[str] | None = None
    ) -> tuple[ConfigEntry, ...]:
        if resource.scope is ConfigScope.BROKER and int(resource.name) in self.silent:
            await asyncio.Event().wait()
        return await super().describe_configs(resource, names)


async def test_a_silent_broker_is_named_and_holds_up_no_other() -> None:
    cluster: Any = SilentCluster({A.key: FROM})
    cluster.configs = {broker(n): {LEADER_RATE: "9"} for n in (1, 2)}
    found = LeftThrottles(cluster, rates_within_s=0.05)
    assert [it.resource for it in await found.read(RunningMoves())] == [broker(2)]
    assert found.silent == ("1",)
    cluster.silent = frozenset(cluster.alive)
    with pytest.raises(UnreachableError):
        await found.read(RunningMoves())
