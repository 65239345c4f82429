"""Alternatives as a chart of text, and rows that say why."""

from dataclasses import replace

import pytest

from control.views.plans import (
    CHANGES_MAX,
    Offer,
    change_rows,
    gap_percent,
    offer_of,
    plan_files,
    trade_off_lines,
    why_moved,
)
from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.reassignment_json import parse_reassignment
from tests.unit.planner.clusters import seeded


def offer(name: str, moved: int, least: int | None, percent: float) -> Offer:
    return Offer(name=name, moved_bytes=moved, lower_bound_bytes=least, fullest_percent=percent)


def test_cheap_stands_left_and_even_stands_low() -> None:
    offers = [
        offer("balanced", 500, 400, 3.5),
        offer("even", 1000, 700, 1.0),
        offer("minimal", 100, 100, 9.0),
    ]
    assert trade_off_lines(offers, width=51, height=5) == [
        "  +9.0 % │    3 minimal",
        "         │",
        "  +3.5 % │                ├───1 balanced",
        "         │",
        "  +1.0 % │                       even ├───────────2",
        "         └─────────────────────────────────────────",
        "          0 B  bytes moved; ├ proven minimum 1000 B",
    ]


def test_plans_at_the_same_place_stand_side_by_side() -> None:
    same = [offer("one", 10, None, 2.0), offer("two", 10, None, 2.0), offer("none", 0, 0, 0.0)]
    for width in (12, 30, 80, 200):
        lines = trade_off_lines(same, width=width, height=4)
        assert len(lines) == 6
        assert all(len(line) <= max(width, 60) for line in lines)
        assert "3" in lines[3]
    assert trade_off_lines([], width=40, height=3)[-2].startswith("         └")


def test_every_moved_partition_says_why() -> None:
    made = plan(seeded(4, joined=3, disorder=0.3), PlanRequest())
    for alternative in made.alternatives:
        rows = change_rows(alternative.proposal, why_moved(made, alternative))
        assert len(rows) == min(CHANGES_MAX, len(alternative.proposal.changes))
        assert all(row.why.text not in ("", "–") for row in rows)
        point = offer_of(alternative)
        assert (point.lower_bound_bytes or 0) <= point.moved_bytes
        assert point.fullest_percent >= 0


def test_the_gap_is_told_in_percent_of_the_proven_least() -> None:
    first, *_ = plan(seeded(4, joined=3, disorder=0.3), PlanRequest()).alternatives
    moved = first.proposal.moved_bytes
    for least, percent in ((moved, 0.0), (moved // 2, 100.0), (0, None), (None, None)):
        assert gap_percent(replace(first, lower_bound_bytes=least)) == pytest.approx(percent)


def test_a_plan_is_two_files_that_lead_there_and_back() -> None:
    proposal = plan(seeded(7), PlanRequest()).alternatives[0].proposal
    there, back = plan_files(proposal).items()

    assert back[0] == there[0].replace(".json", ".before.json")
    assert parse_reassignment(there[1]) == proposal.targets()
    assert parse_reassignment(back[1]) == {c.key: c.before for c in proposal.changes}
