"""Skew over time: each broker's bytes against the mean of all."""

from pathlib import Path

import pytest

from control.views import series
from control.views.cluster.skew import LINES_MAX, broker_skew, most_skewed
from control.views.snapshots import snapshot as views
from tests.support.store_builder import SyntheticSizes
from tests.unit.dashboard.page_context import context_on


def test_a_line_ends_where_the_table_stands(tmp_path: Path) -> None:
    sizes = SyntheticSizes(topics=3, partitions=5, brokers=4, replicas=2)
    screen = context_on(tmp_path / "store", sizes=sizes)
    rows = views.broker_page(screen.snapshot).rows
    span = series.Span.last(120_000, now_ms=screen.now_ms())
    found = broker_skew(screen.reader, screen.cluster, most_skewed(rows), len(rows), span)
    assert [line.name for line in found] == ["101", "102", "103", "104"]
    assert {line.unit for line in found} == {"%"}
    for line, row in zip(found, rows, strict=True):
        assert line.last == pytest.approx(row.skew.value, abs=0.01)
    assert sum(line.last or 0.0 for line in found) == pytest.approx(0.0, abs=0.01)


def test_only_the_furthest_are_drawn(tmp_path: Path) -> None:
    sizes = SyntheticSizes(topics=3, partitions=5, brokers=LINES_MAX + 3, replicas=2)
    rows = views.broker_page(context_on(tmp_path / "store", sizes=sizes).snapshot).rows
    chosen = most_skewed(rows)
    values = {row.broker.value: abs(float(row.skew.value or 0)) for row in rows}
    assert len(chosen) == LINES_MAX
    left_out = [value for broker, value in values.items() if broker not in chosen]
    assert max(left_out) <= min(values[broker] for broker in chosen)
