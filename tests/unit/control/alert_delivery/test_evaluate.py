"""Rules judged by a snapshot: known to match, known not to match, unknown."""

from typing import Any

import pytest

from control.alert_delivery.evaluate import check_rule, reading_of
from control.alerts.readings import Match, RuleReading
from control.alerts.rules import AlertRule, RuleError, parse_condition
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from tests.unit.control.clusters import NOW_MS, broker, commit, group, partition, tables


def _snapshot(**rows: Any) -> OperatorSnapshot:
    usual: dict[str, Any] = {"brokers": [broker(1)], "partitions": [partition("orders", 0, [1])]}
    return build_snapshot(tables(**{**usual, **rows}), version=1, now_ms=NOW_MS)


def _lagging(lag: int | None, **known: Any) -> OperatorSnapshot:
    return _snapshot(
        groups=[group("billing")], commits=[commit("billing", "orders", 0, lag=lag, **known)]
    )


def _read(
    snapshot: OperatorSnapshot,
    when: str,
    *,
    opened: tuple[str, ...] = (),
    at_ms: int = NOW_MS,
    keeps_words: bool = False,
) -> RuleReading:
    rule = AlertRule(name="r", when=when, condition=parse_condition(when))
    check_rule(rule)
    opens = {"r": {it: Match(subject=it, words="as before") for it in opened}}
    return reading_of(
        snapshot,
        [rule],
        cluster="c",
        at_ms=at_ms,
        open_matches=opens,
        keeps_words=keeps_words,
    ).rules["r"]


def test_rows_of_open_alerts_may_keep_their_words_and_nothing_else_changes() -> None:
    groups = ("billing", "late", "new")
    snapshot = _snapshot(
        groups=[group(it) for it in groups],
        commits=[commit(it, "orders", 0, lag=9 if it == "late" else 7_000) for it in groups],
    )
    opened = ("billing", "late")
    anew = _read(snapshot, "groups: lag>5k", opened=opened)
    kept = _read(snapshot, "groups: lag>5k", opened=opened, keeps_words=True)
    assert anew.matches.keys() == kept.matches.keys() == {"billing", "new"}
    assert (kept.unknown, kept.left_out) == (anew.unknown, anew.left_out)
    assert kept.matches["billing"].words == "as before"
    assert kept.matches["new"] == anew.matches["new"]
    assert "7,000" in anew.matches["billing"].words


def test_a_row_that_matches_is_told_with_its_figures() -> None:
    told = _read(_lagging(7_000, committed_offset=93_000, end_offset=100_000), "groups: lag>5k")
    match = told.matches["billing"]
    assert match.path == "groups/billing"
    assert "7,000" in match.words


def test_an_unknown_lag_keeps_an_alert_open_and_opens_none() -> None:
    snapshot = _lagging(None, end_offset=None)
    assert not _read(snapshot, "groups: lag>5k").matches
    assert _read(snapshot, "groups: lag>5k", opened=("billing",)).unknown == {"billing"}


def test_a_negated_term_is_unknown_where_its_figure_is() -> None:
    """The screens' filter shows such a row, since not to know is not to exceed."""
    assert not _read(_lagging(None, end_offset=None), "groups: -lag>5k").matches


def test_another_term_that_rules_the_row_out_is_known() -> None:
    snapshot = _lagging(None, end_offset=None)
    told = _read(snapshot, "groups: lag>5k group:payments", opened=("billing",))
    assert not told.unknown


def test_a_group_whose_commits_are_gone_has_not_caught_up() -> None:
    snapshot = _lagging(None, committed_offset=None)
    assert _read(snapshot, "groups: lag>5k", opened=("billing",)).unknown == {"billing"}


def test_a_row_that_is_gone_does_not_match() -> None:
    told = _read(_snapshot(), "groups: lag>5k", opened=("billing",))
    assert told.is_known
    assert not told.unknown


def test_old_figures_are_unknown_and_their_findings_stay() -> None:
    later = NOW_MS + 3_600_000
    snapshot = _lagging(7_000)
    assert not _read(snapshot, "groups: lag>1", at_ms=later).is_known
    told = _read(snapshot, "findings: kind:disk", opened=("disk broker 1",), at_ms=later)
    assert told.unknown == {"disk broker 1"}


def test_partitions_of_one_kind_are_one_alert_however_many_they_are() -> None:
    short = [partition("orders", number, [1, 2], isr=[1], min_isr=1) for number in range(3)]
    for count in (1, 3):
        snapshot = _snapshot(brokers=[broker(1), broker(2)], partitions=short[:count])
        told = _read(snapshot, "findings: kind:at-min-isr")
        assert list(told.matches) == ["at-min-isr"]


def test_a_finding_that_a_plan_mends_leads_to_it() -> None:
    brokers = [broker(1), broker(2)]
    uneven = [partition("orders", number, [1]) for number in range(24)]
    told = _read(_snapshot(brokers=brokers, partitions=uneven), "findings: kind:skew")
    assert any(it.step.startswith("plan?") for it in told.matches.values())


@pytest.mark.parametrize("when", ["groups: nix>1", "groups: lag>x", "findings: lag>1"])
def test_a_filter_that_its_table_cannot_follow_is_refused(when: str) -> None:
    with pytest.raises(RuleError):
        check_rule(AlertRule(name="r", when=when, condition=parse_condition(when)))
