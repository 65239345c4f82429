"""The report of a move from history that the metrics job has kept: each file and the command."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition
from spark_metrics.window.aggregates import AggregatesReader
from tests.contract.operations_rig import ExecutorProcess, topic_with_data, unique
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.metrics_job import MetricsJob
from tests.support.settle import eventually

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

FROM: Final = (101, 102)
TO: Final = (103, 102)
RECORDS: Final = 3_000
BEFORE, DURING, AFTER = 40, 2_000, 7
"""Lag of the partition that moves."""
BESIDE: Final = 500
"""Lag of the one that stays, all the time."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.fixture
def job(cluster: LocalCluster, tmp_path: Path) -> Iterator[MetricsJob]:
    """Its store lies where the command line looks for it."""
    job = MetricsJob(cluster.bootstrap, tmp_path / "data")
    job.start()
    try:
        job.wait_ready()
        yield job
    finally:
        job.close()


class Commits:
    """Commits of one group, repeated so that history has them."""

    def __init__(self, admin: KafkaAdmin, topic: str) -> None:
        self._admin, self._topic = admin, topic
        self.group, self.lag = unique("readers"), BEFORE

    async def commit(self) -> None:
        lags = {0: self.lag, 1: BESIDE}
        keys = {TopicPartition(self._topic, n): RECORDS - lag for n, lag in lags.items()}
        await self._admin.groups.commit_offsets(self.group, keys)

    @asynccontextmanager
    async def repeated(self) -> AsyncIterator[None]:
        async def repeat() -> None:
            while True:
                await self.commit()
                await asyncio.sleep(0.5)

        await self.commit()
        task = asyncio.create_task(repeat())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def kept(self, reader: AggregatesReader) -> list[int | None]:
        """Lags of the partition that moves, in history."""
        now = reader.now()
        if now is None or not now.tables["brokers"].num_rows:
            return []
        cluster = now.tables["brokers"]["cluster"][0].as_py()
        told = reader.commit_history(
            cluster=cluster, group_id=self.group, partition=0, since_ms=0, until_ms=1 << 45
        )
        return [lag for lag in told["lag"].to_pylist() if lag is not None]


@pytest.mark.soak
async def test_a_report_has_the_lag_of_groups_before_during_and_after(
    cluster: LocalCluster, job: MetricsJob, tmp_path: Path
) -> None:
    at, reader = cluster.bootstrap, AggregatesReader(job.store)
    cli = CommandLine(bootstrap=at, bus=at, folder=tmp_path)
    async with KafkaAdmin.to(at) as admin:
        topic = await topic_with_data(admin, dict.fromkeys(range(2), FROM), records=RECORDS)
        commits = Commits(admin, topic)
        plan = {"topic": topic, "partition": 0, "replicas": list(TO)}
        (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": [plan]}))

        async def has_kept(lag: int) -> bool:
            return lag in await asyncio.to_thread(commits.kept, reader)

        with ExecutorProcess(bus=at, log=tmp_path / "executor.err") as executor:
            await asyncio.to_thread(executor.wait_until_said, "ready")
            async with commits.repeated():
                await eventually(lambda: has_kept(BEFORE), True, timeout_s=60)
                words = ("reassign", "plan.json", "--throttle", "150KiB", "--yes")
                moving = cli.start(*words, "--reason", "report")
                await asyncio.to_thread(cli.wait_until_moving, reason="report")
                commits.lag = DURING
                await eventually(lambda: has_kept(DURING), True, timeout_s=60)
                refused = await asyncio.to_thread(cli.run, "moves", "report", status=2)
                assert "no reassignment has ended" in refused
                await asyncio.to_thread(cli.end_of, moving)
                commits.lag = AFTER
                await eventually(lambda: has_kept(AFTER), True, timeout_s=60)
        report = await asyncio.to_thread(cli.json, "moves", "report")
        _check_document(report, commits)
        shown = await asyncio.to_thread(cli.run, "moves", "report", report["operation_id"])
        _check_markdown(shown, commits)
        said = await asyncio.to_thread(cli.run, "moves", "report", "-o", "move.html")
    assert report["operation_id"] in said
    assert said.strip().endswith("move.html")
    page = (tmp_path / "move.html").read_text()
    assert re.search(rf"<td>{commits.group}</td>\s*<td>not moved</td>", page)
    assert "<script" not in page


def _check_document(report: dict[str, Any], commits: Commits) -> None:
    assert (report["outcome"], report["reason"]) == ("done", "report")
    assert (report["partitions"], report["partitions_done"]) == (1, 1)
    assert report["copied_bytes"] >= RECORDS * 1_000
    (group,) = report["groups"]
    moved, stayed = group["moved"], group["stayed"]
    assert group["group_id"] == commits.group
    assert (moved["before"]["mean"], moved["before"]["most"]) == (BEFORE, BEFORE)
    assert moved["during"]["most"] == DURING
    assert moved["after"]["mean"] < moved["during"]["mean"]
    for span in ("before", "during", "after"):
        assert (stayed[span]["mean"], stayed[span]["most"]) == (BESIDE, BESIDE)


def _check_markdown(shown: str, commits: Commits) -> None:
    assert shown.startswith("# Move mv-")
    (moved,) = [row for row in shown.splitlines() if row.startswith(f"| {commits.group} | moved")]
    before, during, after = (cell.strip() for cell in moved.split("|")[3:6])
    assert before.startswith(f"{BEFORE} / {BEFORE} / ")
    assert " / 2,000 / " in during
    assert after != "no history"
