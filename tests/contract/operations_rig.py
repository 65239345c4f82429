"""Executors as processes, topics with data, and what a cluster shows of throttles."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic, OffsetSpec
from control.messages.produce_session import ProduceJob, ProduceSession
from control.model.ids import TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.move.journal_lines import lines_of_state
from control.move.state import OperationState
from control.move.throttle import RATES, REPLICA_LISTS
from control.operations.bus.client import OperationsClient
from control.views.snapshots.feed import SnapshotFeed
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tui.app import PartiscopeApp
from tui.journal_watch import JournalWatch
from tui.terminal_session import Services

ROOT: Final = Path(__file__).resolve().parents[2]
VALUE_BYTES: Final = 1000


async def ours() -> None:
    """Proves that no other executor owns the operations: there is none."""


def unique(stem: str) -> str:
    """A name that no other test uses."""
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def variants(cases: Sequence[Any]) -> list[Any]:
    """The first case for every change, the others for `make test-all`."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [cases[0], *(pytest.param(*row, marks=pytest.mark.thorough) for row in rows[1:])]


@dataclass
class ExecutorProcess:
    """`partiscope executor` as a process; a context manager that ends it gracefully."""

    bus: str
    log: Path
    watched: str = ""
    """Address of a cluster beside the bus that its settings name; empty: none."""
    process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.log.open("ab") as err:
            self.process = subprocess.Popen(
                (sys.executable, "-m", "partiscope", "executor", "--bus", self.bus),
                stdout=err,
                stderr=err,
                env={
                    **os.environ,
                    "PYTHONUNBUFFERED": "1",
                    **({"PARTISCOPE_BOOTSTRAP": self.watched} if self.watched else {}),
                },
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(signal.SIGTERM)

    def end(self, number: int) -> int:
        """Send a signal and wait; the exit status."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            return process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def said(self) -> str:
        """Everything it printed."""
        return self.log.read_text()

    def wait_until_said(self, text: str) -> None:
        """Until it printed `text`."""
        wait_until(lambda: text in self.said(), f"said {text!r}", story=self.said)


@contextmanager
def two_executors(bus: str, directory: Path) -> Iterator[tuple[ExecutorProcess, ExecutorProcess]]:
    """One that runs the operations, and one that waits for it to end."""
    with ExecutorProcess(bus=bus, log=directory / "first.err") as first:
        first.wait_until_said("ready")
        with ExecutorProcess(bus=bus, log=directory / "second.err") as second:
            second.wait_until_said("waiting: another executor runs the operations")
            yield first, second


async def topic_with_data(
    admin: KafkaAdmin, placement: Mapping[int, tuple[int, ...]], *, records: int
) -> str:
    """A topic placed by hand, with `records` of VALUE_BYTES each, evenly spread."""
    name = unique("moved")
    await admin.create_topic(NewTopic(name=name, assignment=placement))
    for partition in placement:
        await add_data(admin, TopicPartition(name, partition), records=records)
    return name


async def add_data(admin: KafkaAdmin, key: TopicPartition, *, records: int) -> None:
    """So many records of VALUE_BYTES each."""
    value = f"{{pad:{VALUE_BYTES}}}"
    job = ProduceJob(topic=key.topic, value=value, partition=key.partition, count=records)
    done = await ProduceSession(admin.wire.settings, job).run_to_end()
    assert done.acked == records, done


async def placement_of(admin: KafkaAdmin, topic: str) -> dict[int, tuple[int, ...]]:
    """Replicas by partition."""
    (metadata,) = await admin.topics([topic])
    return {p.partition: p.replicas for p in metadata.partitions}


async def leaders_of(admin: KafkaAdmin, topic: str) -> dict[int, int]:
    """Leader by partition."""
    (metadata,) = await admin.topics([topic])
    return {p.partition: p.leader for p in metadata.partitions}


async def end_offsets(admin: KafkaAdmin, topic: str) -> dict[int, int]:
    """High watermarks by partition."""
    (metadata,) = await admin.topics([topic])
    keys = [TopicPartition(topic, p.partition) for p in metadata.partitions]
    found = await admin.offsets.list_offsets(keys, OffsetSpec.LATEST)
    return {key.partition: at.offset for key, at in found.items()}


async def throttles(admin: KafkaAdmin, topic: str) -> dict[str, str]:
    """Every throttle that is set: on the topic, and on any broker."""
    resources = [ConfigResource(scope=ConfigScope.TOPIC, name=topic)]
    for broker in (await admin.describe_cluster()).brokers:
        resources.append(ConfigResource(scope=ConfigScope.BROKER, name=str(broker.id)))
    found = {}
    for resource in resources:
        for entry in await admin.describe_configs(resource):
            is_throttle = entry.name in (*RATES, *REPLICA_LISTS)
            if is_throttle and entry.value and not entry.is_default:
                found[f"{resource.name} {entry.name}"] = entry.value
    return found


async def watch_until(
    client: OperationsClient,
    operation_id: str,
    is_so: Callable[[OperationState], bool],
    *,
    then: Callable[[], Awaitable[None]] | None = None,
) -> OperationState:
    """The first state that is so."""
    async for state in client.watch(operation_id):
        if is_so(state):
            if then is not None:
                await then()
            return state
    lines = "\n".join(line.what for line in lines_of_state(state))
    raise AssertionError(f"{operation_id} ended before:\n{lines}")


@contextmanager
def terminal_on(
    address: str,
    store: Path,
    *,
    path: str = "overview",
    is_production: bool = False,
    outages: str = "",
) -> Iterator[PartiscopeApp]:
    """The terminal on a cluster, which is its own bus; the store has what the test put there."""
    reader = AggregatesReader(str(store))
    feed = SnapshotFeed(reader)
    name = "prod" if is_production else ""
    watched = WatchedCluster(
        name=name, bootstrap=address, is_production=is_production, outages=outages
    )
    journal = JournalWatch(address)
    services = Services(feed=feed, history=reader, watched=watched, bus=address, journal=journal)
    try:
        yield PartiscopeApp(services, path=path)
    finally:
        feed.stop()
        journal.stop()
