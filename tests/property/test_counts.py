"""Whatever is counted in two places is counted the same: tiles, findings, lists, badges, status."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from control.model.finding import each_of
from control.model.status import GROUP_SEVERITIES, OK, PARTITION_SEVERITIES, Severity
from control.model.watched_cluster import WatchedCluster
from control.views.cluster import all_clusters as views_of_clusters
from control.views.paths import parse_path
from control.views.snapshots import snapshot as views
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.tables.query import Page, TableQuery
from partiscope.cli.watch.status import _document
from spark_metrics.window.tables import NOW_TABLES
from tests.support.cases import examples
from tests.support.store_builder import table_of
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS

BROKERS = (101, 102, 103, 104)
Rows = list[dict[str, Any]]


@st.composite
def partitions(draw: st.DrawFn) -> Rows:
    """Partitions in every state: led, leaderless, lacking replicas, moving."""
    rows = []
    for number in range(draw(st.integers(0, 12))):
        replicas = list(draw(st.permutations(BROKERS)))[: draw(st.integers(1, 4))]
        isr = [it for it in replicas if draw(st.booleans())] or replicas[-1:]
        moving = replicas[1:2] if draw(st.integers(0, 4)) == 0 else []
        rows.append(
            clusters.partition(
                f"t{number % 3}", number // 3, replicas, isr=isr, adding_replicas=moving,
                leader=draw(st.sampled_from([-1, isr[0], replicas[0]])),
                min_isr=draw(st.integers(1, 3)),
            )
        )  # fmt: skip
    return rows


@st.composite
def snapshots(draw: st.DrawFn) -> OperatorSnapshot:
    told = draw(partitions())
    commits: Rows = [
        clusters.commit(
            f"g{draw(st.integers(0, 3))}", row["topic"], row["partition"],
            status=draw(st.sampled_from([None, *GROUP_SEVERITIES])),
            lag=draw(st.sampled_from([None, 0, 50])),
        )
        for row in told
    ]  # fmt: skip
    now: dict[str, Rows] = {
        "partitions": told,
        "commits": list(
            {(it["group_id"], it["topic"], it["partition"]): it for it in commits}.values()
        ),
        "groups": [clusters.group(f"g{number}") for number in range(draw(st.integers(0, 5)))],
        "brokers": [clusters.broker(it, is_fenced=draw(st.booleans())) for it in BROKERS],
    }
    tables = {name: table_of(now.get(name, []), it) for name, it in NOW_TABLES.items()}
    return build_snapshot(tables, version=1, now_ms=NOW_MS)


def listed(snapshot: OperatorSnapshot, path: str) -> int:
    """How many rows the view at this path shows."""
    found = parse_path(path)
    query = TableQuery(filter=found.query.get("q", ""))
    pages: dict[str, Callable[..., Page]] = {
        "topics": views.topic_page,
        "partitions": views.partition_page,
        "groups": views.group_page,
        "brokers": views.broker_page,
    }
    return pages[found.view](snapshot, query).matching if found.view in pages else 1


@given(snapshots())
@examples(20)
def test_a_tile_a_finding_and_the_list_it_leads_to_count_the_same(
    snapshot: OperatorSnapshot,
) -> None:
    statuses = snapshot.evidence.statuses
    tiles = {"offline": snapshot.headline.offline,
             "under-replicated": snapshot.headline.under_replicated,
             "moving": snapshot.headline.moving}  # fmt: skip
    told = [it for item in snapshot.findings for it in (item, *item.consequences)]
    found = {item.kind: item for item in told if item.kind in PARTITION_SEVERITIES}
    assert len(found) == sum(it.kind in PARTITION_SEVERITIES for it in told), "each is told once"
    for it in told:
        if it.kind == "groups-not-known":
            assert listed(snapshot, it.subject) == it.facts["count"]
    for word in PARTITION_SEVERITIES:
        count = statuses.count(word)
        assert listed(snapshot, f"partitions?q=status:{word}") == count
        with_it = {row["topic"] for row in snapshot.partition_table.to_pylist()
                   if f" {word} " in row["statuses"]}  # fmt: skip
        if word != OK:
            assert listed(snapshot, f"topics?q=status:{word}") == len(with_it)
        if word in tiles:
            assert tiles[word].value == count
        if word in found:
            assert found[word].facts["count"] == count
            assert listed(snapshot, found[word].subject) == count
        elif PARTITION_SEVERITIES[word] >= Severity.WARNING:
            worse = list(PARTITION_SEVERITIES)[: list(PARTITION_SEVERITIES).index(word)]
            assert count <= sum(statuses.count(it) for it in worse), "told by a worse name"


@given(snapshots())
@examples(15)
def test_badge_clusters_page_and_status_count_the_same_findings(
    snapshot: OperatorSnapshot,
) -> None:
    count = len(snapshot.findings)
    (row,) = views_of_clusters.cluster_rows([(WatchedCluster(name="c"), snapshot)], now_ms=NOW_MS)
    assert [row.critical.value, row.warnings.value, row.notices.value] == [
        sum(it.severity is severity for it in snapshot.findings)
        for severity in (Severity.CRITICAL, Severity.WARNING, Severity.NOTICE)
    ]
    assert len(_document(snapshot, NOW_MS)["findings"]) == len(snapshot.finding_rows) == count
    assert (snapshot.health_path == "findings") == bool(count)
    if count:
        assert snapshot.health.text.startswith(f"{count} ")


@given(snapshots())
@examples(15)
def test_heads_and_lists_count_the_same_things(snapshot: OperatorSnapshot) -> None:
    head, document = snapshot.headline, _document(snapshot, NOW_MS)
    assert head.topics.value == document["topics"] == listed(snapshot, "topics")
    assert head.partitions.value == document["partitions"] == listed(snapshot, "partitions")
    assert head.brokers.value == listed(snapshot, "brokers?q=status:alive")
    fenced = [it for it in each_of(snapshot.findings) if it.kind == "broker-fenced"]
    assert len(fenced) == listed(snapshot, "brokers?q=status:fenced")
    statuses: list[str] = snapshot.group_table["status"].to_pylist()
    for word in GROUP_SEVERITIES:
        assert statuses.count(word) == listed(snapshot, f"groups?q=status:{word}")
    if snapshot.behind_count:
        assert snapshot.behind_count == listed(snapshot, snapshot.health_path)
