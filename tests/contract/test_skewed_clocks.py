"""A broker whose clock is 45 s ahead (libfaketime): the lags of the groups that it coordinates."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition
from control.views.format import phrase
from control.views.snapshots.snapshot import build_snapshot
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import ready_admin
from tests.support.metrics_job import MetricsJob
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(400)]
SKEWED: Final = 102
AHEAD_S: Final = 45
RATE: Final = 60
BEHIND: Final = 3_000
WATCHED_S: Final = 60.0
RECENT_MS: Final = 5_000
"""What was committed before the job began to watch lags more."""


def library() -> Path:
    """Debian's package ``faketime``."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    assert found, "`apt-get install faketime` provides it"
    return found[0]


class Skewed(LocalCluster):
    """One of its brokers lives in the future."""

    def start_node(self, node_id: int) -> None:
        """With another clock for one of them."""
        fake = {
            "LD_PRELOAD": str(library()),
            "FAKETIME": f"+{AHEAD_S}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        before = dict(os.environ)
        os.environ.update(fake if node_id == SKEWED else {})
        try:
            super().start_node(node_id)
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def produced(bootstrap: str) -> Iterator[None]:
    stop = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        while not stop.wait(0.1):
            for _ in range(RATE // 10):
                producer.produce("t", b"x", partition=0)
            producer.poll(0)
        producer.flush(WAIT_S)

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(WAIT_S)


async def groups_by_coordinator(bootstrap: str) -> dict[int, str]:
    """A group of each broker."""
    async with KafkaAdmin.to(bootstrap) as admin:
        found: dict[int, str] = {}
        for number in range(60):
            found.setdefault(await admin.groups.coordinator(f"g{number}"), f"g{number}")
        return found


async def commit(bootstrap: str, groups: list[str]) -> None:
    """Every group stands ``BEHIND`` records before the end."""
    key = TopicPartition("t", 0)
    async with KafkaAdmin.to(bootstrap) as admin:
        end = (await admin.offsets.list_offsets([key]))[key].offset
        for group in groups:
            await admin.groups.commit_offsets(group, {key: end - BEHIND})


def test_lag_is_right_from_the_first_figures_on(tmp_path: Path) -> None:
    with Skewed(tmp_path / "cluster", first_id=101) as cluster:
        admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
        for future in admin.create_topics([NewTopic("t", 1, 3)]).values():
            future.result(WAIT_S)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for _ in range(2 * BEHIND):
            producer.produce("t", b"x", partition=0)
        assert producer.flush(WAIT_S) == 0
        groups = asyncio.run(groups_by_coordinator(cluster.bootstrap))
        job = MetricsJob(cluster.bootstrap, tmp_path / "job")
        with produced(cluster.bootstrap):
            asyncio.run(commit(cluster.bootstrap, list(groups.values())))
            job.start()
            try:
                job.wait_ready()
                watch(job, cluster.bootstrap, groups)
            finally:
                job.close()


def watch(job: MetricsJob, bootstrap: str, groups: dict[int, str]) -> None:
    """For longer than the skew every lag stays what it is; then the clock is named."""
    reader = AggregatesReader(job.store)
    until_s = time.monotonic() + WATCHED_S
    seen = 0
    while time.monotonic() < until_s:
        asyncio.run(commit(bootstrap, list(groups.values())))
        time.sleep(1.0)
        now = reader.now()
        assert now is not None
        rows = {row["group_id"]: row for row in now.tables["commits"].to_pylist()}
        for broker, group in groups.items():
            row: dict[str, Any] | None = rows.get(group)
            if row is None or row["lag"] is None:
                continue
            if row["read_ms"] - row["commit_ms"] > RECENT_MS:
                continue
            seen += broker == SKEWED
            story = f"{group} of broker {broker}: {row}"
            assert row["lag"] == pytest.approx(BEHIND, abs=6 * RATE), story
            assert abs(row["read_ms"] - time.time() * 1_000) < 15_000, story
    assert seen > WATCHED_S / 4

    def finding() -> list[str]:
        now = reader.now()
        assert now is not None
        made = build_snapshot(now.tables, version=1, now_ms=time.time_ns() // 1_000_000)
        clocks = [it for it in made.findings if it.kind == "clock"]
        return [f"{it.label}: {phrase(it.title, it.facts)}" for it in clocks]

    wait_until(
        lambda: finding() in ([f"broker {SKEWED}: clock {n} s ahead"] for n in (44, 45, 46)),
        "the clock is named",
        story=lambda: str(finding()),
    )
