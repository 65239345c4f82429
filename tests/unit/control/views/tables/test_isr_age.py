"""Since when an ISR is short is known to who watched it become so."""

from collections.abc import Collection

from control.views.cluster.partition_map import partition_map
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.tables.query import TableQuery
from spark_metrics.window.tables import NOW_TABLES
from tests.support.store_builder import SyntheticSizes, synthetic_rows, table_of

SIZES = SyntheticSizes(topics=2, partitions=3, groups=1)
BEGAN_MS = 1_750_000_000_000


def look(
    short: Collection[int], after_ms: int, earlier: OperatorSnapshot | None
) -> OperatorSnapshot:
    """The cluster some time on; these partitions of topic-0 lack a replica in sync."""
    rows = synthetic_rows(SIZES, at_ms=BEGAN_MS + after_ms)
    for row in rows["partitions"]:
        if row["topic"] == "topic-0" and row["partition"] in short:
            row["isr"] = row["isr"][:-1]
    return build_snapshot(
        {name: table_of(rows[name], schema) for name, schema in NOW_TABLES.items()},
        version=after_ms + 1,
        now_ms=BEGAN_MS + after_ms,
        earlier_isr=None if earlier is None else earlier.short_isr,
    )


def short_for(snapshot: OperatorSnapshot) -> list[str]:
    rows = views.partition_page(snapshot, TableQuery(filter="topic:topic-0")).rows
    return [row.isr_short.text for row in rows]


def test_an_isr_is_short_since_it_was_seen_to_become_so_and_whole_again_after() -> None:
    first = look({0}, 0, None)
    second = look({0, 1}, 60_000, first)
    third = look({0, 1}, 90_000, second)
    assert short_for(third) == ["≥ 1 m 30 s", "30 s", "–"]
    late = views.partition_page(third, TableQuery(filter="short<1m")).rows
    assert [row.key for row in late] == ["topic-0-1"]

    fourth = look({1}, 120_000, third)
    fifth = look({0, 1}, 180_000, fourth)
    assert short_for(fifth) == ["1.0 s", "2 m", "–"]


def test_the_map_tells_it_by_cell() -> None:
    shown = partition_map(look({0}, 60_000, look({0}, 0, None)), "isr_short_ms")
    words = [(shown.record(0, cell) or {})["words"] for cell in (0, 1)]
    assert words == ["ISR short for ≥ 1 m", "ISR whole"]
    assert [bool(level) for level in shown.levels()[:2]] == [True, False]
