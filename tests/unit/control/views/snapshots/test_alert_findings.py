"""Findings about alerts: who was told of what fires, and why something is not delivered."""

from dataclasses import replace

from control.alert_delivery.evaluate import reading_of
from control.alerts.alert import Alert, AlertStatus, Delivery
from control.alerts.readings import Match
from control.alerts.rules import AlertRule, parse_condition
from control.model.finding import Finding
from control.operations.bus.alert_records import AlertRecords, DeliveryReport
from control.views.next_steps import action_of
from control.views.snapshots.alert_findings import LATE_MS, alert_findings
from control.views.snapshots.snapshot import build_snapshot
from control.views.tables.findings import finding_row
from tests.unit.control.clusters import NOW_MS, broker, tables

REPORT = DeliveryReport(at_ms=NOW_MS, rules=3)
ALERT = Alert(
    rule="lag",
    cluster="prod",
    match=Match(subject="billing"),
    severity="critical",
    status=AlertStatus.FIRING,
    since_ms=NOW_MS - 9_000,
    fired_ms=NOW_MS - 5_000,
    deliveries={"slack": Delivery(fired_ms=1, last_ms=1)},
)


def _found(*alerts: Alert, report: DeliveryReport | None = REPORT) -> list[Finding]:
    records = AlertRecords(alerts={it.episode: it for it in alerts}, delivery=report)
    return list(alert_findings(records, cluster="prod", now_ms=NOW_MS))


def test_what_fires_on_this_cluster_is_one_finding_that_says_who_was_told() -> None:
    others = (replace(ALERT, cluster="test"), replace(ALERT, status=AlertStatus.PENDING))
    assert _found(*others) == []
    (finding,) = _found(ALERT)
    row = finding_row(finding, now_ms=NOW_MS)
    assert row.title.text == "1 alert firing"
    assert "lag (billing)" in row.reason.text
    assert "slack" in row.reason.text
    action = action_of(row)
    assert (action.form, action.given) == ("silence", (("rule", "lag"),))


def test_no_rule_rings_because_an_alert_rings() -> None:
    snapshot = build_snapshot(
        tables(brokers=[broker(1)]), version=1, now_ms=NOW_MS, operations=_found(ALERT)
    )
    rule = AlertRule(name="r", when="", condition=parse_condition("findings: -kind:nothing"))
    told = reading_of(snapshot, [rule], cluster="prod", at_ms=NOW_MS).rules["r"]
    assert any(it.kind == "alerts-firing" for it in snapshot.findings)
    assert not any("alerts-firing" in subject for subject in told.matches)


def test_a_process_that_says_nothing_delivers_nothing() -> None:
    (finding,) = _found(report=replace(REPORT, at_ms=NOW_MS - LATE_MS - 1))
    assert (finding.kind, finding.since_ms) == ("alerts-not-delivered", NOW_MS - LATE_MS - 1)
    assert _found(report=replace(REPORT, at_ms=0, rules=0)) == []
    assert _found(report=None) == []


def test_a_receiver_that_takes_nothing_is_named_with_its_reason() -> None:
    failing = replace(REPORT, failures={"slack": "503 {x}"}, failing_since_ms={"slack": 7})
    (finding,) = _found(report=failing)
    row = finding_row(finding, now_ms=NOW_MS)
    assert (row.label.text, finding.since_ms) == ("receiver slack", 7)
    assert "503 {x}" in row.reason.text
