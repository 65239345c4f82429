"""Samples of a real node of one: what it writes, how often, and what cannot stop it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from broker.config.broker_config import BrokerConfig
from broker.coordinator.offsets.offset_manager import CommitRequested
from broker.coordinator.records import CommittedOffset
from broker.metadata.image import PartitionImage
from broker.metrics.delivery import BATCH_BYTES_MAX, DeliveryError, build_batches
from broker.metrics.pace import Pace, interval_for
from broker.metrics.reporter import MetricsReporter
from broker.metrics.samples import FULL_MS, Repeats, pick_partition, read_disk_space
from broker.metrics_schema import (
    METRICS_TOPIC,
    Envelope,
    SampleRecord,
    UnchangedCommit,
    UnchangedReplica,
    decode_record,
    encode_round,
)
from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch, iter_batch_headers, iter_records
from broker.server.node import Node
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports

NODE_ID = 101


def _config(directory: Path) -> BrokerConfig:
    client, controller = free_ports(2)
    return BrokerConfig.from_properties(
        {
            "node.id": str(NODE_ID),
            "cluster.id": "samples",
            "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
            "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller}",
            "log.dirs": str(directory),
            "offsets.topic.num.partitions": "2",
            "partiscope.metrics.interval.ms": "100",
        }
    )


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(_config(tmp_path / "data"))
    await node.start(asyncio.Event())
    yield node
    await node.stop()


def _services(node: Node) -> Any:
    assert node._parts is not None
    return node._parts.services


def _records(node: Node) -> list[SampleRecord]:
    """Everything in the metrics topic, in the order of writing."""
    found = []
    for index in range(3):
        replica = _services(node).replicas.partition(METRICS_TOPIC, index)
        if replica is None:
            continue
        log = replica.log
        data = memoryview(log.read_bytes(0, max_bytes=1 << 24, max_offset=log.log_end_offset))
        for header, position in iter_batch_headers(data):
            batch = data[position : position + header.size_bytes]
            found += [decode_record(record.value or b"") for record in iter_records(batch)]
    return sorted(found, key=lambda record: record.envelope.round_ms)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110  # the log has no event to wait for
            await asyncio.sleep(0.02)


async def _commit(node: Node) -> None:
    committed = CommittedOffset(offset=2, commit_ms=5)
    services = _services(node)
    await services.controller.ensure_internal_topic("__consumer_offsets")
    await _until(lambda: services.groups.views.list_groups() == [])
    await services.groups.offsets.commit(
        CommitRequested(
            group_id="g",
            member_id="",
            group_instance_id=None,
            generation_id=-1,
            offsets={("t", 0): committed},
        )
    )


async def _create_and_fill(node: Node) -> None:
    await _create(node)
    await _fill(node)


async def _create(node: Node) -> None:
    services = _services(node)
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    config = {"name": "min.insync.replicas", "value": "1"}
    message = codec.build_request(19, 7, topics=[{**topic, "configs": [config]}], timeout=5000)
    answer = await services.controller.submit(19, 7, message)
    assert answer.topics[0].error_code == 0
    await _until(lambda: services.replicas.partition("t", 0) is not None)


async def _fill(node: Node) -> None:
    batch = build_batch([NewRecord(value=b"x" * 100, timestamp=1)] * 3)
    result = await _services(node).replicas.append_and_wait("t", 0, batch)
    assert result.error is None


async def test_a_round_says_what_the_node_knows(node: Node) -> None:
    await _create_and_fill(node)
    await _commit(node)
    seen: list[SampleRecord] = []

    def is_told() -> bool:
        seen[:] = [r for r in _records(node) if r.commits]
        rows = [row for r in _records(node) for row in r.replicas if row.topic == "t"]
        return any(row.log_points for row in rows) and bool(seen)

    await _until(is_told)
    record = seen[0]
    assert (record.envelope.cluster, record.envelope.broker) == ("samples", NODE_ID)
    assert record.envelope.broker_epoch == _services(node).metadata.broker_epoch
    told = [row for r in _records(node) for row in r.replicas if row.topic == "t"]
    row = next(row for row in told if row.high_watermark == 3)
    assert (row.leader, row.leader_epoch, list(row.replicas), list(row.isr)) == (
        101,
        0,
        [101],
        [101],
    )
    assert (row.log_start_offset, row.high_watermark, row.log_end_offset) == (0, 3, 3)
    log = _services(node).replicas.partition("t", 0).log
    assert (row.size_bytes, row.segments, row.min_isr) == (log.size_bytes, 1, 1)
    assert list(row.segment_bytes or ()) == [log.size_bytes]
    assert list(row.segment_offsets or ()) == [it.base_offset for it in log.segments()]
    assert row.retention_ms == 7 * 86_400_000
    points = next(list(row.log_points) for row in reversed(told) if row.log_points)
    assert points == [0, 1, 3, 1], "offsets and timestamps of its log, not in every round"
    (commit,) = record.commits
    assert (commit.group_id, commit.topic, commit.committed_offset) == ("g", "t", 2)
    (group,) = record.groups
    assert (group.group_id, group.state, group.members) == ("g", "Empty", 0)
    (broker,) = record.brokers
    assert (broker.id, broker.is_controller, broker.fenced) == (NODE_ID, True, False)
    assert broker.disk_total_bytes is not None
    assert 0 < (broker.disk_usable_bytes or 0) <= broker.disk_total_bytes


async def test_what_has_not_changed_is_not_told_in_full_again(node: Node) -> None:
    await _create_and_fill(node)
    await _commit(node)

    def repeats() -> list[Any]:
        rows = [row for r in _records(node) for row in r.unchanged if row.topic == "t"]
        return rows if {type(row) for row in rows} == {UnchangedReplica, UnchangedCommit} else []

    await _until(lambda: bool(repeats()))
    full = {row.read_ms for r in _records(node) for row in r.replicas}
    full |= {row.read_ms for r in _records(node) for row in r.commits}
    assert {row.since_ms for row in repeats()} <= full


def test_what_was_not_asked_for_in_a_round_is_forgotten() -> None:
    repeats = Repeats()
    assert repeats.since("a", 1, 0) is None
    assert repeats.since("a", 1, 1_000) == 0
    assert repeats.since("a", 2, 2_000) is None, "it has changed"
    assert repeats.since("a", 2, 2_000 + FULL_MS) is None, "it is told in full now and then"
    repeats.end_round()
    repeats.end_round()
    assert repeats.since("a", 2, 40_000) is None


async def test_rounds_follow_each_other_at_the_interval(node: Node) -> None:
    await _until(lambda: len(_records(node)) >= 5)
    rounds = [record.envelope for record in _records(node)]
    assert all(a.round_ms < b.round_ms for a, b in pairwise(rounds))
    assert {(e.interval_ms, e.part, e.parts) for e in rounds} == {(100, 0, 1)}


async def test_the_topic_keeps_an_hour(node: Node) -> None:
    await _until(lambda: METRICS_TOPIC in _services(node).metadata.image.topics)
    image = _services(node).metadata.image
    assert len(image.topics[METRICS_TOPIC].partitions) == 3
    (configs,) = [c for resource, c in image.configs.items() if resource.name == METRICS_TOPIC]
    assert configs["retention.ms"] == "3600000"


async def test_failures_are_counted_and_the_rounds_go_on(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = node._reporter
    assert isinstance(reporter, MetricsReporter)
    await _until(lambda: reporter.counters.rounds_written > 0)
    directory = _services(node).groups.views

    def refuse() -> None:
        raise RuntimeError("no groups today")

    with monkeypatch.context() as patch:
        patch.setattr(directory, "readings", refuse)
        await _until(lambda: reporter.counters.rounds_failed >= 3)
    written = reporter.counters.rounds_written
    await _until(lambda: reporter.counters.rounds_written > written)
    complaints = [r for r in caplog.records if "no groups today" in r.getMessage()]
    assert len(complaints) == 1


async def test_a_log_that_was_sampled_empty_has_its_times_as_soon_as_it_is_written_to(
    node: Node,
) -> None:
    def rows() -> list[Any]:
        return [row for r in _records(node) for row in r.replicas if row.topic == "t"]

    await _create(node)
    await _until(lambda: bool(rows()))
    await _fill(node)
    await _until(lambda: any(row.log_points for row in rows()))


async def test_what_a_lost_round_looked_up_in_logs_is_told_by_the_next(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporter = node._reporter
    assert isinstance(reporter, MetricsReporter)
    await _until(lambda: reporter.counters.rounds_written > 0)

    async def refuse(*_: Any, **__: Any) -> None:
        raise DeliveryError("the leader is elsewhere")

    with monkeypatch.context() as patch:
        patch.setattr(reporter._delivery, "write", refuse)
        await _create_and_fill(node)
        failed = reporter.counters.rounds_failed
        await _until(lambda: reporter.counters.rounds_failed >= failed + 2)

    def is_told() -> bool:
        rows = [row for r in _records(node) for row in r.replicas if row.topic == "t"]
        return any(row.log_points for row in rows)

    await _until(is_told)


@pytest.mark.parametrize(
    ("cpu_s", "rows", "interval_ms"),
    [
        (0.0, 0, 1_000),
        (0.1, 30_000, 1_000),
        (0.11, 30_000, 1_500),
        (1.0, 30_000, 10_000),
        (0.1, 60_001, 1_500),
        (0.1, 300_000, 5_000),
    ],
)
def test_the_interval_grows_with_what_a_round_costs(
    cpu_s: float, rows: int, interval_ms: int
) -> None:
    found = interval_for(1_000, round_cpu_s=cpu_s, cpu_percent=10, rows=rows, rows_per_s=60_000)
    assert found == interval_ms


async def test_a_sampler_stays_below_its_share_of_a_core(node: Node) -> None:
    """Its rounds, made to cost 10 ms a step, come so much further apart, and say so."""
    reporter = node._reporter
    assert isinstance(reporter, MetricsReporter)
    await _until(lambda: reporter.counters.rounds_written > 0)
    ticks = iter(range(1 << 30))
    reporter.pace = Pace(100, cpu_percent=5, rows_per_s=60_000, cpu_s=lambda: next(ticks) / 100)
    before = reporter.counters.rounds_written
    await _until(lambda: reporter.counters.rounds_written >= before + 4)
    envelopes = [record.envelope for record in _records(node)]
    told = [it for it in envelopes if it.interval_ms > 100]
    assert told
    for earlier, later in pairwise(told):
        assert later.round_ms - earlier.round_ms >= 0.9 * earlier.interval_ms
    steps = 4
    assert min(it.interval_ms for it in told) >= steps * 10 / 0.05


def _partitions(*leaders: int) -> dict[int, PartitionImage]:
    return {
        index: PartitionImage(
            topic_id=UUID(int=1),
            topic=METRICS_TOPIC,
            partition=index,
            replicas=(leader,),
            isr=(leader,),
            leader=leader,
        )
        for index, leader in enumerate(leaders)
    }


def test_a_node_writes_where_it_leads_and_stays_there() -> None:
    assert pick_partition(_partitions(7, 5, 5), 5, None) == 1
    assert pick_partition(_partitions(7, 5, 5), 5, 2) == 2
    assert pick_partition(_partitions(7, 8, 5), 5, 1) == 2
    assert pick_partition(_partitions(7, 8, 9), 5, 1) == 2


def test_batches_are_bounded() -> None:
    values = [bytes(400_000)] * 5
    batches = list(build_batches(values, round_ms=1))
    counts = [sum(1 for _ in iter_records(batch)) for batch in batches]
    assert counts == [2, 2, 1]
    assert all(len(batch) < BATCH_BYTES_MAX for batch in batches)


def test_an_empty_round_is_still_a_sign_of_life() -> None:
    envelope = Envelope(cluster="c", broker=1, broker_epoch=1, round_ms=1, interval_ms=1)
    (value,) = encode_round(envelope, [])
    assert decode_record(value).envelope == envelope


def test_a_directory_that_is_gone_has_no_disk_space(tmp_path: Path) -> None:
    assert read_disk_space(str(tmp_path / "gone")) is None
