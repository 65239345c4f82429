"""A rule is a table, its filter and a time."""

import pytest

from control.alerts.rules import Condition, RuleError, parse_condition


@pytest.mark.parametrize(
    ("text", "table", "wanted", "for_ms"),
    [
        ("groups: time_lag>10m for 5m", "groups", "time_lag>10m", 300_000),
        ("Topics:size>1Gi", "topics", "size>1Gi", 0),
        ("findings: severity:critical -kind:disk for 90s", "findings",
         "severity:critical -kind:disk", 90_000),
        ('topics: "wait for 5m"', "topics", '"wait for 5m"', 0),
        ("topics: for orders", "topics", "for orders", 0),
    ],
)  # fmt: skip
def test_a_condition_is_read(text: str, table: str, wanted: str, for_ms: float) -> None:
    assert parse_condition(text) == Condition(table=table, filter=wanted, for_ms=for_ms)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lag>10", "no condition"),
        ("consumers: lag>10", "no table 'consumers'"),
        ("groups:", "no filter"),
        ("groups: for 5m", "no filter"),
        ("groups: lag>1 for 5x", "'5x' is not a time"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, why: str) -> None:
    with pytest.raises(RuleError, match=why):
        parse_condition(text)
