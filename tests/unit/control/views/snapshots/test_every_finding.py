"""The whole list of findings: ids that stay, causes, next steps that lead somewhere."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from control.alerts.alert import Alert, AlertStatus
from control.alerts.readings import Match
from control.collector.report_writer import BrokerReport, MissingRight, WatchReport
from control.model.consequences import gathered
from control.model.finding import Finding, each_of
from control.model.finding_rules import Evidence, find_all
from control.model.freshness import Freshness
from control.model.job_health import find_damaged_history
from control.move.events import EventKind
from control.operations.bus.alert_records import AlertRecords, DeliveryReport
from control.views.next_steps import action_of
from control.views.paths import parse_path
from control.views.snapshots.alert_findings import alert_findings
from control.views.snapshots.collector_findings import watch_findings
from control.views.snapshots.feed import _unexpected, _unreadable
from control.views.snapshots.findings_by_kind import by_kind
from control.views.snapshots.operation_findings import operation_findings
from control.views.snapshots.transaction_findings import TOLD_MAX, transaction_findings
from control.views.tables.findings import finding_row
from spark_metrics.window.aggregates import StoreUnreadableError
from tests.unit.control import clusters
from tests.unit.control.clusters import MIB, NOW_MS
from tests.unit.control.operations.fake_cluster import FakeContext, change, command_of
from tests.unit.control.views.snapshots.test_operation_findings import throttles
from tests.unit.control.views.snapshots.test_transaction_findings import held, transaction

ROOT: Final = Path(__file__).resolve().parents[5]
SOURCES: Final = (ROOT / "control" / "model", ROOT / "control" / "views" / "snapshots")
HEALTH: Final = {"batch_id": 1, "records": 9, "newest_round_ms": 1, "written_ms": NOW_MS}
FULL: Final = {"disk_total_bytes": 1_000, "disk_usable_bytes": 50}


def _find(fresh: Freshness | None = None, **rows: list[dict[str, Any]]) -> list[Finding]:
    evidence = Evidence.gather(clusters.snapshot(**rows), now_ms=NOW_MS, fresh=fresh)
    found = gathered(find_all(evidence), evidence)
    return [it for item in found for it in (item, *item.consequences)]


def _partitions(more: int) -> list[Finding]:
    short = {"isr": [1], "min_isr": 2}
    rows = [
        row
        for n in range(1 + more)
        for row in (
            clusters.partition("off", n, [1, 2], leader=-1),
            clusters.partition("under", n, [1, 2], **short),
            clusters.partition("at", n, [1, 2], isr=[1], min_isr=1),
            clusters.partition("lacks", n, [1, 2, 3], isr=[1, 2], min_isr=1),
            clusters.partition("second", n, [1, 2], leader=2),
        )
    ]
    return _find(partitions=rows)


def _brokers(more: int) -> list[Finding]:
    dirs = [
        clusters.log_dir("/a", total_bytes=100, usable_bytes=9 - more, replicas=1),
        clusters.log_dir("/b", total_bytes=1_000, usable_bytes=500, replicas=1),
        clusters.log_dir("/c", is_failed=True),
        clusters.log_dir("/d", is_cordoned=True, total_bytes=3_000, usable_bytes=2_000),
    ]
    fills = {"disk_total_bytes": 1_000 * MIB, "disk_usable_bytes": 500 * MIB}
    rate = {"in_bytes_per_s": 1.0 * MIB, "retention_ms": -1, "size_bytes": 900 * MIB}
    return _find(
        brokers=[
            clusters.broker(1, is_fenced=True),
            clusters.broker(2, host="", port=-1),
            clusters.broker(3, **{**FULL, "disk_usable_bytes": 50 - more}),
            clusters.broker(4, directories=dirs),
            clusters.broker(5, sampled_ms=NOW_MS - 30_000 - more),
            clusters.broker(6, clock_skew_ms=45_000 + more),
            clusters.broker(7, clock_skew_ms=0, **fills),
        ],
        partitions=[clusters.partition("t", 0, [2, 1]), clusters.partition("u", 0, [7], **rate)],
    )


def _skew(more: int) -> list[Finding]:
    """By bytes, by replicas and by leaders another broker is the worst."""
    rows = [clusters.partition("t", n, [1 + n % 2, 3], size_bytes=MIB) for n in range(24)]
    rows += [clusters.partition("big", n, [4], size_bytes=(900 + more) * MIB) for n in range(2)]
    return _find(brokers=[clusters.broker(n) for n in (1, 2, 3, 4)], partitions=rows)


def _skewed_leaders(more: int) -> list[Finding]:
    rows = [clusters.partition("t", n, [1, 2], isr=[1, 2]) for n in range(12 + more)]
    return _find(brokers=[clusters.broker(1), clusters.broker(2)], partitions=rows)


def _groups(more: int) -> list[Finding]:
    words = ("STALL", "STOP", "REWIND")
    commits = [clusters.commit(f"g-{it}", "t", 0, status=it, lag=10 + more) for it in words]
    lost = clusters.commit("lost", "u", 0, committed_offset=5, lag=95)
    beyond = clusters.commit("beyond", "t", 0, committed_offset=900 + more, lag=0, status="BEYOND")
    return _find(
        brokers=[clusters.broker(1)],
        partitions=[
            clusters.partition("t", 0, [1]),
            clusters.partition("u", 0, [1], log_start_offset=50),
        ],
        commits=[*commits, lost, beyond],
        groups=[clusters.group(it["group_id"]) for it in (*commits, lost, beyond)],
    )


def _verdict_lost(more: int) -> list[Finding]:
    """The only leader of what groups read is down."""
    groups = [f"g-{n}" for n in range(1 + more)]
    return _find(
        brokers=[clusters.broker(1), clusters.broker(3, is_fenced=True)],
        partitions=[clusters.partition("t", 0, [3], leader=-1, isr=[3])],
        commits=[clusters.commit(it, "t", 0, status=None, lag=5) for it in groups],
        groups=[clusters.group(it) for it in groups],
    )


def _all_silent(more: int) -> list[Finding]:
    return _find(brokers=[clusters.broker(1, sampled_ms=NOW_MS - 90_000 - more)])


def _late(more: int) -> list[Finding]:
    rows = clusters.snapshot(brokers=[clusters.broker(1, sampled_ms=NOW_MS - 90_000 - more)])
    return [*find_all(Evidence.gather(rows, now_ms=NOW_MS, answering=frozenset({1})))]


def _job(more: int) -> list[Finding]:
    slow = {"batch_ms": 9_000 + more, "delay_ms": 60_000 + more}
    bad = {"bad_records": 1, "bad_records_total": 4 + more, "lost_records_total": 2 + more}
    health = {**HEALTH, **slow, **bad}
    files = {f"history/{n}": "spoilt" for n in range(1 + more)}
    return [*_find(health=[health]), *find_damaged_history(files)]


def _store(more: int) -> list[Finding]:
    error = StoreUnreadableError("the store", why=f"{more} bytes", what_next="look at it")
    return [_unreadable(error, now_ms=NOW_MS), _unexpected(ValueError(str(more)), now_ms=NOW_MS)]


def _collector(more: int) -> list[Finding]:
    broker = BrokerReport(
        broker=1, requests_per_s=1, rows_per_s=1, sent_bytes_per_s=1, received_bytes_per_s=1,
        failing_since_ms=1_000, failure=f"refused {more}",
    )  # fmt: skip
    right = MissingRight(
        api="X", operation="DESCRIBE", resource="cluster", text="no right", acl="acl", since_ms=5
    )
    report = WatchReport(
        cluster="c", bootstrap="b:1", at_ms=10_000, interval_ms=1_000, is_partial=False,
        brokers=(broker,), failure=f"nobody answers {more}", missing_rights=(right,),
        denied_operations={"elect": "ALTER", **({"produce": "WRITE"} if more else {})},
    )  # fmt: skip
    late_ms = 10_000_000 + more
    return [*watch_findings(report, now_ms=11_000), *watch_findings(report, now_ms=late_ms)]


def _operations(more: int) -> list[Finding]:
    context = FakeContext(command_of(change("a")))
    context.told(EventKind.INTERFERED, f"removed {more}", changed=["x"])
    return [*operation_findings([context.state()], throttles(1 + more))]


def _transactions(more: int) -> list[Finding]:
    known = [
        transaction(f"t{n:02}", since_ms=100 - more, held=(held(0, 1 + more),))
        for n in range(TOLD_MAX + more)
    ]
    orphan = transaction(None, since_ms=5 + more, held=(held(3, 9 + more, first=17),))
    return [*transaction_findings([*known, orphan], now_ms=NOW_MS)]


def _alerts(more: int) -> list[Finding]:
    firing = [
        Alert(
            rule="lag", cluster="prod", match=Match(subject=f"g{n}"), severity="critical",
            status=AlertStatus.FIRING, since_ms=5, fired_ms=5,
        )
        for n in range(1 + more)
    ]  # fmt: skip
    report = DeliveryReport(at_ms=NOW_MS, rules=1, failures={"slack": f"{more}"})
    records = AlertRecords(alerts={it.episode: it for it in firing}, delivery=report)
    silent = AlertRecords(delivery=replace(report, at_ms=NOW_MS - 900_000 - more))
    return [
        *alert_findings(records, cluster="prod", now_ms=NOW_MS),
        *alert_findings(silent, cluster="prod", now_ms=NOW_MS),
    ]


SCENES: Final[tuple[Callable[[int], list[Finding]], ...]] = (
    _partitions, _brokers, _skew, _skewed_leaders, _groups, _verdict_lost, _all_silent, _late,
    _job, _store, _collector, _operations, _transactions, _alerts,
)  # fmt: skip


def _declared() -> Iterator[str]:
    """Kinds in the source; one that is put together stands as its fixed beginning and ``*``."""
    for path in sorted(it for folder in SOURCES for it in folder.glob("*.py")):
        tree = ast.parse(path.read_text())
        constants = {
            node.target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                named = [it.value for it in node.keywords if it.arg == "kind"]
                if node.func.id == "Finding" and named:
                    yield from _kinds(named[0], constants)
                elif node.func.id == "_finding":
                    yield from _kinds(node.args[0], constants)


def _kinds(node: ast.expr, constants: dict[str, Any]) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from (*_kinds(node.body, constants), *_kinds(node.orelse, constants))
    elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        yield f"{node.values[0].value!s}*"
    elif isinstance(node, ast.Name) and node.id in constants:
        yield str(constants[node.id])


def test_the_scenes_hold_every_kind_that_the_source_declares() -> None:
    told = {it.kind for scene in SCENES for it in scene(0)}
    declared = {*_declared()}
    assert len(declared) > 25
    for kind in sorted(declared):
        prefix = kind.removesuffix("*")
        assert any(it.startswith(prefix) if kind != prefix else it == kind for it in told), kind
    partitions = {"offline", "under-min-isr", "at-min-isr", "under-replicated", "not-preferred"}
    groups = {f"group-{it}" for it in ("LOST", "BEYOND", "STALL", "STOP", "REWIND")}
    assert told >= partitions | groups | {"skew-bytes", "skew-leaders"}


@pytest.mark.parametrize("scene", SCENES)
def test_an_id_stays_while_figures_and_words_change(
    scene: Callable[[int], list[Finding]],
) -> None:
    before, after = ([it.id for it in scene(more)] for more in (0, 1))
    assert before
    assert sorted(before) == sorted(after)
    assert len(set(before)) == len(before), "no two have one id"


@pytest.mark.parametrize("scene", SCENES)
def test_each_has_a_cause_and_a_next_step_that_leads_somewhere(
    scene: Callable[[int], list[Finding]],
) -> None:
    for finding in (*scene(0), *by_kind([*scene(0), *scene(1)])):
        row = finding_row(finding, now_ms=NOW_MS)
        for cell in (row.label, row.title, row.reason, row.next_step):
            assert cell.text, finding.id
            assert "{" not in cell.text, (finding.id, cell)
        action = action_of(row)
        assert row.key == finding.id
        assert action.form or action.path or finding.operation == "outside", finding.id
        parse_path(action.path)


def test_findings_of_one_kind_on_several_brokers_are_one_with_the_brokers_under_it() -> None:
    full = [clusters.broker(n, **{**FULL, "disk_usable_bytes": 50 + n}) for n in (3, 1, 12)]
    down = [clusters.broker(n, is_fenced=True, sampled_ms=n) for n in (20, 21)]
    alone = clusters.broker(30, host="", port=-1)
    rows = [clusters.partition("t", 0, [20, 3]), clusters.partition("u", 0, [21, 1], isr=[1])]
    evidence = Evidence.gather(
        clusters.snapshot(brokers=[*full, *down, alone], partitions=rows), now_ms=NOW_MS
    )
    each = gathered(find_all(evidence), evidence)
    found = {it.kind: it for it in by_kind(each)}
    disk, fenced = found["disk"], found["broker-fenced"]
    row = finding_row(disk, now_ms=NOW_MS)
    assert (disk.id, row.label.text, row.title.text) == (
        "disk", "brokers 1, 3, 12", "disk 95 % full at worst",
    )  # fmt: skip
    assert [it.path for it in row.parts] == ["brokers/1", "brokers/12", "brokers/3"]
    assert "relieve_brokers=1,3,12" in action_of(row).path
    assert (fenced.label, fenced.since_ms) == ("brokers 20, 21", 20)
    assert finding_row(fenced, now_ms=NOW_MS).title.text == "fenced or down"
    assert {it.kind for it in fenced.consequences} >= {"at-min-isr"}
    assert found["broker-no-address"].parts == ()
    assert {it.id for it in each_of(found.values())} == {it.id for it in each}
