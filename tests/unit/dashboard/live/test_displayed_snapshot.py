"""What the page shows of a past moment: tables and findings of then, or that nothing is kept."""

import time
from pathlib import Path

import pytest

from control.views.cluster.all_clusters import CLUSTERS, cluster_rows
from control.views.snapshots import snapshot as views
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import displayed_snapshot
from dashboard.page_frame import times
from dashboard.pages import overview
from dashboard.server import table_rows
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tests.unit.dashboard.page_context import context_on, words_of

MINUTE_MS = 60_000


@pytest.fixture
def context(tmp_path: Path) -> PageContext:
    """Ten minutes ago every fourth partition was offline; now all are well."""
    now_ms = time.time_ns() // 1_000_000
    builder = StoreBuilder(tmp_path / "store")
    then = SyntheticSizes(topics=3, partitions=4, offline_every=4)
    builder.write_synthetic(then, history_s=30, at_ms=now_ms - 10 * MINUTE_MS)
    builder.write_synthetic(SyntheticSizes(topics=3, partitions=4), history_s=30, at_ms=now_ms)
    return context_on(tmp_path / "store", sizes=None)


def at(context: PageContext, ago_ms: int) -> dict[str, str]:
    return {"at": str(context.now_ms() - ago_ms)}


def test_tables_and_findings_are_of_then(context: PageContext) -> None:
    past = displayed_snapshot(context, at(context, 10 * MINUTE_MS))
    offline = [row for row in past.finding_rows if "offline" in row.title.text]
    assert offline[0].title.text == "3 partitions offline"
    statuses = [row.status.text for row in views.partition_page(past).rows]
    assert statuses.count("offline") == 3
    present = displayed_snapshot(context, {}).finding_rows
    assert not [row for row in present if "offline" in row.title.text]


def test_one_moment_is_read_once(context: PageContext) -> None:
    moment = at(context, 10 * MINUTE_MS)
    assert displayed_snapshot(context, moment) is displayed_snapshot(context, moment)


@pytest.mark.parametrize(
    ("ago_ms", "words"),
    [
        (400 * 86_400_000, "is before history begins"),
        (-3_600_000, "is in the future"),
        (-4_000, "is in the future"),
    ],
)
def test_a_moment_that_is_not_kept_says_why_and_nothing_looks_well(
    context: PageContext, ago_ms: int, words: str
) -> None:
    moment = at(context, ago_ms)
    assert words in times.past_words(context, moment)
    past = displayed_snapshot(context, moment)
    assert past.is_past
    told = words_of(overview.blocks(past)) + words_of(past.health.text)
    assert words in told
    assert "✔" not in told
    assert "all well" not in told
    assert "No findings" not in told
    assert overview.tiles(past)[-1].children[1].children.children == "n/a"
    answer = table_rows.answer_of(views.topic_page(past), past.why_empty)
    assert words in answer["words"]
    assert answer["is_problem"]
    (row,) = cluster_rows([(context.watched, past)], now_ms=context.now_ms())
    assert "✔" not in "".join(row.cell(it.id).shaped(is_number=True) for it in CLUSTERS.columns)


def test_in_a_gap_the_figures_before_it_are_shown_and_nothing_looks_well(
    context: PageContext,
) -> None:
    moment = at(context, 5 * MINUTE_MS)
    assert "nothing was measured then" in times.past_words(context, moment)
    past = displayed_snapshot(context, moment)
    assert "cluster-silent" in {it.kind for it in past.findings}
    statuses = {row.status.text for row in views.partition_page(past).rows}
    assert statuses == {"offline", "not-known"}
    told = words_of(overview.blocks(past)) + words_of(past.health.text)
    assert "silent for" in told
    assert "No findings" not in told
    (row,) = cluster_rows([(context.watched, past)], now_ms=context.now_ms())
    assert "✔" not in "".join(row.cell(it.id).shaped(is_number=True) for it in CLUSTERS.columns)


def test_the_bar_says_when_or_that_nothing_is_kept(context: PageContext) -> None:
    words = times.past_words(context, at(context, 10 * MINUTE_MS))
    assert words.startswith("you are looking at ")
    assert "(10 m ago)" in words
    assert "is before history begins" in times.past_words(context, {"at": "400d"})
    assert times.past_words(context, {}) == ""
    assert times.past_words(context, {"at": "noon"}) == ""
