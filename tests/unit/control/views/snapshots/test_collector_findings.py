"""The collector's word as findings."""

from dataclasses import replace
from pathlib import Path

from control.collector.report_writer import BrokerReport, MissingRight, WatchReport
from control.model.status import Severity
from control.operations.catalogue import MOVE_OPERATIONS, OPERATIONS
from control.views.format import phrase
from control.views.snapshots.collector_findings import SILENT_MS, watch_findings
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import build_snapshot
from control.views.snapshots.store import StoreReader

BROKER = BrokerReport(
    broker=1, requests_per_s=1, rows_per_s=1, sent_bytes_per_s=1, received_bytes_per_s=1
)
FINE = WatchReport(
    cluster="c",
    bootstrap="b:1",
    at_ms=10_000,
    interval_ms=1_000,
    is_partial=False,
    brokers=(BROKER,),
)
RIGHT = MissingRight(
    api="DescribeLogDirs",
    operation="DESCRIBE",
    resource="cluster",
    text="no right {to} describe",
    acl="kafka-acls --add",
    since_ms=5,
)


def test_a_collector_that_works_is_no_finding() -> None:
    assert list(watch_findings(FINE, now_ms=11_000)) == []


def test_a_silent_collector_is_all_that_can_be_said() -> None:
    lost = replace(FINE, failure="nobody answers")
    (finding,) = watch_findings(lost, now_ms=10_001 + SILENT_MS)
    assert finding.kind == "collector-silent"


def test_a_cluster_that_is_away_is_critical_and_a_broker_alone_a_warning() -> None:
    failing = replace(BROKER, failing_since_ms=1_000, failure="refused {x}")
    report = replace(FINE, failure="nobody answers", brokers=(failing,))
    away, broker = watch_findings(report, now_ms=10_000)
    assert (away.severity, broker.severity) == (Severity.CRITICAL, Severity.WARNING)
    assert broker.subject == "brokers/1"
    assert phrase(broker.reason, broker.facts) == "refused {x}"
    fresh = replace(BROKER, failing_since_ms=9_000, failure="refused")
    assert not list(watch_findings(replace(FINE, brokers=(fresh,)), now_ms=10_000))


def test_missing_rights_and_what_operations_lack_reach_the_snapshot() -> None:
    report = replace(
        FINE, is_partial=True, missing_rights=(RIGHT,), denied_operations={"elect": "ALTER"}
    )
    snapshot = build_snapshot({}, version=1, now_ms=10_500, watch=report)
    (finding,) = [item for item in snapshot.findings if item.kind.startswith("right-missing")]
    assert finding.title == "the view may be partial"
    assert "kafka-acls" in finding.next_step
    assert finding.since_ms == 5
    (notice,) = [item for item in snapshot.findings if item.kind == "operations-denied"]
    assert phrase(notice.reason, notice.facts) == "elect needs ALTER"
    assert snapshot.denied_words("elect") == "✖ not allowed here: it needs ALTER"
    told = replace(report, grants={"elect": "kafka-acls.sh A"}, grant_all=("kafka-acls.sh B",))
    snapshot = build_snapshot({}, version=1, now_ms=10_500, watch=told)
    assert snapshot.denied_words("elect").endswith("; grant it: kafka-acls.sh A")
    (notice,) = [item for item in snapshot.findings if item.kind == "operations-denied"]
    assert notice.next_step.endswith("kafka-acls.sh B")
    assert build_snapshot({}, version=1, now_ms=10_500).denied_operations == {}


def test_where_nothing_may_be_changed_every_form_is_refused_with_the_reason(
    tmp_path: Path,
) -> None:
    report = replace(FINE, denied_operations={"elect": "ALTER", "browse": "READ on topics"})
    snapshot = build_snapshot({}, version=1, now_ms=10_500, watch=report, is_read_only=True)
    assert snapshot.denied_operations.keys() - {"browse"} == {
        it.FORM.name for it in (*OPERATIONS, *MOVE_OPERATIONS)
    }
    assert snapshot.denied_words("elect").startswith("✖ read-only here")
    assert "READ on topics" in snapshot.denied_words("browse"), "it changes nothing"
    feed = SnapshotFeed(StoreReader(str(tmp_path)), is_read_only=True)
    assert feed.current.denied_words("produce"), "before there is a figure as well"
