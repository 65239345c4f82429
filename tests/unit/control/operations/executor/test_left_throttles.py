"""Throttles that nobody needs are found; those of running moves are not."""

from typing import Any

from control.kafka.ports import ConfigResource, ConfigScope
from control.model.watched_cluster import Site
from control.operations.bus.events import EventKind
from control.operations.executor.throttles.left_throttles import (
    RunningMoves,
    SetThrottle,
    read_left_throttles,
)
from control.operations.executor.throttles.throttle_record import (
    ALL_REPLICAS,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
)
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
    return {it.name: it for it in await read_left_throttles(known, running)}


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
