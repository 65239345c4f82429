"""Topics: the groups that read one are counted and named, in the list, its filters and exports."""

import csv
import io

from control.views.snapshots.snapshot import build_snapshot, topic_page
from control.views.tables.export import export
from control.views.tables.query import TableQuery
from control.views.tables.topics import TOPICS
from tests.unit.control.clusters import NOW_MS, broker, commit, partition, tables

SNAPSHOT = build_snapshot(
    tables(
        brokers=[broker(101)],
        partitions=[partition(name, at, [101]) for name in ("orders", "quiet") for at in (0, 1)],
        commits=[
            commit("billing", "orders", 0),
            commit("billing", "orders", 1),
            commit("audit", "orders", 1),
        ],
    ),
    version=1,
    now_ms=NOW_MS,
)


def test_the_groups_that_read_a_topic_are_counted_and_named() -> None:
    orders, quiet = topic_page(SNAPSHOT).rows
    assert (orders.groups.text, orders.read_by.text) == ("2", "audit, billing")
    assert (quiet.groups.text, quiet.read_by.text) == ("0", "–")
    titles = [fact.title for fact in TOPICS.facts(orders)]
    assert titles[-2:] == ["groups", "read by"]


def test_topics_are_sorted_filtered_and_exported_by_their_groups() -> None:
    def names(filter: str = "", sort: str = "") -> list[str]:  # noqa: A002
        return [row.key for row in topic_page(SNAPSHOT, TableQuery(filter=filter, sort=sort)).rows]

    assert names(sort="-groups") == ["orders", "quiet"]
    assert names(sort="groups") == ["quiet", "orders"]
    assert names("groups=0") == ["quiet"]
    assert names("group:audit") == ["orders"]
    words = "".join(export(lambda query: topic_page(SNAPSHOT, query), TableQuery(), format="csv"))
    rows = list(csv.DictReader(io.StringIO(words)))
    assert [(row["groups"], row["read_by"]) for row in rows] == [("2", "audit, billing"), ("0", "")]
