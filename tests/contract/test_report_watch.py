"""A screen hears collectors by a connection that lasts, says when it cannot, and hears again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from control.collector.delivery import Delivery
from control.collector.report_writer import WatchReport
from control.kafka.connection.settings import KafkaSettings
from control.model.ids import ClusterId
from control.views.snapshots.collector_findings import SILENT_MS, ReportWatch, watch_findings
from tests.support.cluster import LocalCluster
from tests.support.settle import until

pytestmark = pytest.mark.thorough

ROUNDS = 4
MINE, OTHER = ClusterId("mine"), ClusterId("other")


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[LocalCluster]:
    """A broker of its own, which may be stopped."""
    with LocalCluster(tmp_path / "bus", brokers=1) as cluster:
        yield cluster


@pytest.fixture
def watch(bus: LocalCluster) -> Iterator[ReportWatch]:
    watch = ReportWatch(bus.bootstrap)
    yield watch
    watch.stop()


async def test_it_hears_each_report_by_one_connection_and_says_when_the_bus_is_away(
    bus: LocalCluster, watch: ReportWatch
) -> None:
    settings = KafkaSettings(bootstrap=bus.bootstrap)
    assert watch.newest(MINE) is None, "nobody collects yet"
    async with Delivery(settings) as delivery:
        await delivery.write_report(_report(OTHER, 1))
        await delivery.write_report(_report(MINE, 1))
        await until(lambda: _heard(watch) == 1)
        before = _connections(bus)
        for at_ms in range(2, 2 + ROUNDS):
            await delivery.write_report(_report(MINE, at_ms))
            await until(lambda at_ms=at_ms: _heard(watch) == at_ms)  # type: ignore[misc]
        assert _connections(bus) == before, "each report by a connection of its own"
    (node,) = bus.ids
    bus.stop()
    await until(lambda: _trouble(watch))
    last = watch.newest(MINE)
    assert last is not None
    (finding,) = watch_findings(last, now_ms=last.at_ms + SILENT_MS + 1)
    assert finding.title == "is not heard"
    bus.start_node(node)
    bus.wait_ready()
    async with Delivery(settings) as delivery:
        await delivery.write_report(_report(MINE, 9))
    await until(lambda: _heard(watch) == 9 and not _trouble(watch))
    other = watch.newest(OTHER)
    assert other is not None
    assert other.at_ms == 1


def _report(cluster: ClusterId, at_ms: int) -> WatchReport:
    return WatchReport(
        cluster=cluster, bootstrap="b:1", at_ms=at_ms, interval_ms=1_000, is_partial=False
    )


def _heard(watch: ReportWatch) -> int:
    report = watch.newest(MINE)
    return report.at_ms if report else 0


def _trouble(watch: ReportWatch) -> str:
    report = watch.newest(MINE)
    return (report and report.unheard) or ""


def _connections(bus: LocalCluster) -> set[str]:
    """Our ends of those to the broker, open or just closed."""
    ports = {f":{port:04X}" for port in bus.ports.values()}
    lines = Path("/proc/self/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    ends = [line.split()[1:3] for line in lines]
    return {ours for ours, theirs in ends if theirs[-5:] in ports}
