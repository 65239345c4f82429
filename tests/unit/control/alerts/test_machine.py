"""Cases that random histories do not reach: pauses, clocks, rules that go, limits."""

from dataclasses import replace

from control.alerts.alert import Alert, AlertStatus, Delivery
from control.alerts.machine import ALERTS_MAX, GAP_MS, AlertMachine, ReceiverRules, Tell
from control.alerts.readings import Match, Reading, RuleReading
from control.alerts.rules import AlertRule, parse_condition
from control.alerts.silences import Matcher, Silence

START_MS = 1_700_000_000_000
RULE = AlertRule(
    name="r", when="", condition=parse_condition("groups: lag>1 for 20s"), receivers=("x",)
)
AT_ONCE = replace(RULE, condition=parse_condition("groups: lag>1"), resolve_after_ms=0)


def _machine(*rules: AlertRule, refresh_ms: int | None = None) -> AlertMachine:
    return AlertMachine(rules or [RULE], {"x": ReceiverRules(refresh_ms=refresh_ms)})


def _reading(at_ms: int, *subjects: str, is_known: bool = True) -> Reading:
    matches = {it: Match(subject=it) for it in subjects}
    told = RuleReading(matches=matches, is_known=is_known)
    return Reading(cluster="c", at_ms=at_ms, rules={"r": told})


def _kinds(machine: AlertMachine, at_ms: int) -> list[Tell]:
    return [it.kind for it in machine.due((), at_ms)]


def test_a_pause_without_readings_counts_for_nothing() -> None:
    machine = _machine()
    machine.handle(_reading(START_MS, "a"))
    machine.handle(_reading(START_MS + GAP_MS + 1, "a"))
    assert [it.status for it in machine.alerts.values()] == [AlertStatus.PENDING]


def test_a_clock_that_is_set_back_neither_fires_nor_holds_an_alert_back() -> None:
    machine = _machine()
    machine.handle(_reading(START_MS, "a"))
    machine.handle(_reading(START_MS - 3_600_000, "a"))
    assert _kinds(machine, START_MS) == []
    for second in range(21):
        machine.handle(_reading(START_MS - 3_600_000 + 1_000 * second, "a"))
    assert [it.status for it in machine.alerts.values()] == [AlertStatus.FIRING]


def test_nothing_known_of_a_table_changes_nothing() -> None:
    machine = _machine(AT_ONCE)
    machine.handle(_reading(START_MS, "a"))
    machine.handle(_reading(START_MS + 1_000, is_known=False))
    assert _kinds(machine, START_MS) == [Tell.FIRES]


def test_alerts_of_a_rule_that_is_gone_are_resolved_with_those_who_heard_of_them() -> None:
    machine = _machine(replace(AT_ONCE, name="other"))
    known = Alert(
        rule="r", cluster="c", match=Match(subject="a"), severity="warning", since_ms=START_MS,
        status=AlertStatus.FIRING, fired_ms=START_MS,
        deliveries={"x": Delivery(fired_ms=START_MS, last_ms=START_MS)},
    )  # fmt: skip
    machine.load([known, replace(known, match=Match(subject="b"), deliveries={})])
    machine.end_unwatched(("c",), START_MS + 1)
    (telling,) = machine.due((), START_MS + 1)
    assert (telling.kind, telling.alert.subject) == (Tell.RESOLVES, "a")
    assert "rule" in telling.alert.why_resolved
    machine.take([telling], START_MS + 2)
    machine.forget_told((), START_MS + 2)
    assert not machine.alerts


def test_rows_beyond_the_limit_are_counted_and_open_ones_stay() -> None:
    machine = _machine(AT_ONCE)
    names = [f"g{number}" for number in range(ALERTS_MAX + 5)]
    machine.handle(_reading(START_MS, *names))
    assert (len(machine.alerts), machine.left_out["r", "c"]) == (ALERTS_MAX, 5)


def test_a_silence_keeps_back_the_beginning_and_never_the_end() -> None:
    machine = _machine(AT_ONCE)
    silence = Silence(id="s", matcher=Matcher(), from_ms=0, until_ms=START_MS + 10_000)
    machine.handle(_reading(START_MS, "a"))
    assert machine.due((silence,), START_MS) == []
    first = machine.due((silence,), START_MS + 10_000)
    machine.take(first, START_MS + 10_000)
    machine.handle(_reading(START_MS + 11_000))
    later = replace(silence, until_ms=START_MS + 90_000)
    assert [it.kind for it in machine.due((later,), START_MS + 11_000)] == [Tell.RESOLVES]


def test_an_alertmanager_is_told_again_in_spite_of_a_silence() -> None:
    """It would resolve by itself what it does not hear of."""
    machine = _machine(AT_ONCE, refresh_ms=60_000)
    machine.handle(_reading(START_MS, "a"))
    machine.take(machine.due((), START_MS), START_MS)
    silence = Silence(id="s", matcher=Matcher(), from_ms=0, until_ms=START_MS * 2)
    due = machine.due((silence,), START_MS + 60_000)
    assert [it.kind for it in due] == [Tell.REPEATS]
