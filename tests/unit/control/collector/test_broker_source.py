"""One broker of a watched cluster that answers in part: what is unknown keeps its last known value
and its age, and is never a zero or a "no commit"."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest

from broker.metrics_schema import NO_COMMIT, CommitSample, LogDirSample
from control.collector.image import ClusterImage
from control.collector.rights import Gap, Gaps
from control.collector.source import BrokerSource
from control.kafka.connection import apis
from control.kafka.connection.wire import KafkaWire
from control.kafka.errors import UnreachableError
from control.model.ids import TopicPartition
from tests.unit.control.kafka.scripted_cluster import ScriptedCluster

A: Final = TopicPartition("orders", 0)
B: Final = TopicPartition("orders", 1)


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={"orders": {0: (1,), 1: (1,)}}) as found:
        found.on(apis.LIST_GROUPS, listed("consumer"))
        found.on(apis.DESCRIBE_GROUPS, {"groups": (classic(),)})
        yield found


@pytest.fixture
async def source(cluster: ScriptedCluster) -> AsyncIterator[BrokerSource]:
    wire = KafkaWire(cluster.settings(attempts_max=1))
    await wire.live_nodes()
    yield BrokerSource(1, wire, ClusterImage(), Gaps(lambda: 0))
    await wire.close()


def listed(protocol: str, state: str = "Stable") -> dict[str, Any]:
    group = {"group_id": "g", "protocol_type": protocol, "group_state": state,
             "group_type": "classic"}  # fmt: skip
    return {"error_code": 0, "groups": (group,)}


def classic(code: int = 0) -> dict[str, Any]:
    return {"group_id": "g", "error_code": code, "group_state": "Stable", "members": (),
            "protocol_type": "consumer", "protocol_data": "range"}  # fmt: skip


def commits(*offsets: tuple[int, int], code: int = 0) -> dict[str, Any]:
    partitions = tuple(
        {"partition_index": n, "committed_offset": offset, "error_code": error, "metadata": "",
         "committed_leader_epoch": -1}
        for n, (offset, error) in enumerate(offsets)
    )  # fmt: skip
    topics = ({"name": "orders", "partitions": partitions},)
    return {"groups": ({"group_id": "g", "error_code": code, "topics": topics},)}


def told(source: BrokerSource) -> dict[int, int]:
    rows = [row for row in source.groups.rows() if isinstance(row, CommitSample)]
    return {row.partition: row.committed_offset for row in rows}


async def read(source: BrokerSource) -> None:
    """As in a turn in which the group's offsets are due."""
    for group in source.groups.groups.values():
        group.offsets_ms = min(group.offsets_ms, 1)
    await source.read_groups()


async def test_a_commit_that_cannot_be_told_stays_what_it_was(
    cluster: ScriptedCluster, source: BrokerSource
) -> None:
    cluster.on(apis.OFFSET_FETCH, commits((7, 0), (9, 0)))
    await read(source)
    assert told(source) == {0: 7, 1: 9}
    cluster.on(apis.OFFSET_FETCH, commits((8, 0), (-1, 88)))
    await read(source)
    assert told(source) == {0: 8, 1: 9}
    cluster.on(apis.OFFSET_FETCH, commits((8, 0), (-1, 0)))
    await read(source)
    assert told(source) == {0: 8}
    assert NO_COMMIT not in told(source).values()


@pytest.mark.parametrize("code", [14, 15, 16, -1])
async def test_a_coordinator_that_loads_forgets_nothing(
    cluster: ScriptedCluster, source: BrokerSource, code: int
) -> None:
    cluster.on(apis.OFFSET_FETCH, commits((7, 0), (9, 0)))
    await read(source)
    before = source.groups.groups["g"].offsets_ms
    source.groups.groups["g"].offsets_ms = before
    cluster.on(apis.OFFSET_FETCH, commits(code=code))
    await source.read_groups()
    assert told(source) == {0: 7, 1: 9}
    assert source.groups.groups["g"].offsets_ms == before
    cluster.on(apis.LIST_GROUPS, {"error_code": code, "groups": ()})
    await source.read_groups()
    assert told(source) == {0: 7, 1: 9}


async def test_a_group_that_we_may_not_describe_has_no_figures(
    cluster: ScriptedCluster, source: BrokerSource
) -> None:
    cluster.on(apis.OFFSET_FETCH, commits((7, 0)))
    await read(source)
    cluster.on(apis.OFFSET_FETCH, commits(code=30))
    await read(source)
    assert told(source) == {}
    assert source.groups.denied() == ["g"]
    cluster.on(apis.OFFSET_FETCH, commits((8, 0)))
    await read(source)
    assert source.groups.denied() == []


async def test_older_brokers_are_asked_one_group_at_a_time(
    cluster: ScriptedCluster, source: BrokerSource
) -> None:
    cluster.served[apis.OFFSET_FETCH.key] = (2, 7)
    whole = commits((7, 0), (-1, 0))["groups"][0]
    cluster.on(apis.OFFSET_FETCH, {"error_code": 0, "topics": whole["topics"]})
    wire = KafkaWire(cluster.settings())
    await wire.live_nodes()
    older = BrokerSource(1, wire, ClusterImage(), Gaps(lambda: 0))
    try:
        await read(older)
    finally:
        await wire.close()
    assert told(older) == {0: 7}
    assert {asked.version for asked in cluster.requests(apis.OFFSET_FETCH)} == {7}


@pytest.mark.parametrize(
    "answer", [{"error_code": 31, "results": ()}, {"error_code": 0, "results": ()}]
)
async def test_sizes_that_we_may_not_read_are_a_gap_and_no_zero(
    cluster: ScriptedCluster, answer: dict[str, Any]
) -> None:
    gaps, image = Gaps(lambda: 0), ClusterImage()
    wire = KafkaWire(cluster.settings())
    await wire.live_nodes()
    asked = BrokerSource(1, wire, image, gaps)
    try:
        cluster.on(apis.DESCRIBE_LOG_DIRS, answer)
        assert await asked.read_logs() is None
        assert [it.gap for it in gaps.all()] == [Gap.LOG_DIRS]
        assert 1 not in image.logs
        partition = {"partition_index": 0, "partition_size": 5, "offset_lag": 0,
                     "is_future_key": False}  # fmt: skip
        moving = {**partition, "partition_index": 1, "is_future_key": True}
        good = {"error_code": 0, "log_dir": "/a", "total_bytes": 100, "usable_bytes": 40,
                "topics": ({"name": "orders", "partitions": (partition, moving)},)}  # fmt: skip
        failed = {"error_code": 56, "log_dir": "/b", "topics": ()}
        cluster.on(apis.DESCRIBE_LOG_DIRS, {"error_code": 0, "results": (good, failed)})
        logs = await asked.read_logs()
        assert logs is not None
        assert logs.sizes == {A: 5}
        assert (logs.total_bytes, logs.usable_bytes) == (100, 40), "without the failed one"
        assert logs.directories == (
            LogDirSample(path="/a", total_bytes=100, usable_bytes=40, size_bytes=10, replicas=2),
            LogDirSample(path="/b", is_failed=True),
        )
        same = {**good, "log_dir": "/z", "topics": ()}
        cluster.on(apis.DESCRIBE_LOG_DIRS, {"error_code": 0, "results": (good, same)})
        logs = await asked.read_logs()
        assert logs is not None
        assert (logs.total_bytes, logs.usable_bytes) == (100, 40), "one file system counts once"
        assert gaps.all() == ()
        untold = {**good, "log_dir": "/c", "total_bytes": -1, "usable_bytes": -1}
        cluster.on(apis.DESCRIBE_LOG_DIRS, {"error_code": 0, "results": (good, untold)})
        logs = await asked.read_logs()
        assert logs is not None
        assert (logs.total_bytes, len(logs.directories)) == (None, 2)
    finally:
        await wire.close()


async def test_a_broker_that_is_gone_is_the_callers_matter(
    cluster: ScriptedCluster, source: BrokerSource
) -> None:
    cluster.on(apis.OFFSET_FETCH, commits((7, 0)))
    await read(source)
    cluster.stop(1)
    with pytest.raises(UnreachableError):
        await source.read_groups()
    assert told(source) == {0: 7}
