"""The lag of a group of which some partitions tell none is a bound, and a case of its own."""

import pytest

from control.views.snapshots.snapshot import build_snapshot, group_page
from control.views.tables.query import TableQuery
from tests.unit.control.clusters import NOW_MS, commit, group, tables

TEN = [5] * 9 + [None]


def shown(lags: list[int | None], risks: list[int | None], query: str = "") -> tuple[str, ...]:
    """Lag and time to data loss of a group with these partitions; empty: it is filtered out."""
    commits = [
        commit("g", "t", number, lag=lag, retention_risk_ms=risk)
        for number, (lag, risk) in enumerate(zip(lags, risks, strict=True))
    ]
    made = tables(commits=commits, groups=[group("g")])
    page = group_page(build_snapshot(made, version=1, now_ms=NOW_MS), TableQuery(filter=query))
    return tuple(row.cells[name].text for row in page.rows for name in ("lag", "loses"))


@pytest.mark.parametrize(
    ("lags", "risks", "cells"),
    [
        ([5] * 9 + [0], [None] * 10, ("45", "n/a")),
        (TEN, [None] * 10, ("≥ 45", "n/a")),
        (TEN, [90_000_000] * 9 + [None], ("≥ 45", "≤ ≈ 1 d")),
        ([None, None], [None, None], ("n/a", "n/a")),
        ([0, None], [None, None], ("≥ 0", "n/a")),
        ([0, 0], [None, None], ("0", "–")),
        ([7, 0], [90_000_000, None], ("7", "≈ 1 d")),
    ],
)
def test_what_is_unknown_of_some_partitions_is_not_taken_for_nothing(
    lags: list[int | None], risks: list[int | None], cells: tuple[str, str]
) -> None:
    assert shown(lags, risks) == cells


@pytest.mark.parametrize(
    ("query", "passes"),
    [
        ("lag>10", False),
        ("lag<10000", False),
        ("lag!=45", False),
        ("lag:unknown", True),
        ("lag=n/a", True),
        ("lag!=unknown", False),
    ],
)
def test_filters_know_a_bound_as_unknown(query: str, passes: bool) -> None:
    assert bool(shown(TEN, [None] * 10, query)) is passes
    assert bool(shown([45], [None], query)) is (query in ("lag>10", "lag<10000", "lag!=unknown"))
