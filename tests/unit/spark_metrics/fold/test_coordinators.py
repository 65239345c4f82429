"""What each commit is looked up: its group's life, and whether its coordinator tells it still."""

from typing import Any

import pyarrow as pa

from spark_metrics.fold.coordinators import still_reported, with_alive
from spark_metrics.schema import ROWS
from spark_metrics.state.job_state import KnownBroker


def commits(*rows: tuple[str, str, int, int]) -> pa.Table:
    """Rows of cluster, group, source and round."""
    names = ("cluster", "group_id", "source", "round_ms")
    made: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(made, schema=pa.schema(ROWS["commits"]))


def known(cluster: str, broker: int, complete_ms: int, silent_ms: int = 0) -> KnownBroker:
    return KnownBroker(
        cluster=cluster, broker=broker, complete_ms=complete_ms, fenced_ms=None, silent_ms=silent_ms
    )


def test_each_commit_learns_when_its_own_clusters_group_was_alive() -> None:
    rows = commits(("a", "g", 1, 5), ("b", "g", 1, 5), ("a", "other", 1, 5), ("b", "h", 1, 5))
    found = with_alive(rows, {("a", "g"): 10, ("b", "g"): 20, ("b", "h"): 30})
    assert found["alive_ms"].to_pylist() == [10, 20, None, 30]


def test_no_commits_need_no_groups() -> None:
    assert with_alive(commits(), {}).num_rows == 0
    assert still_reported(commits(), [known("a", 1, 5)]).num_rows == 0


def test_what_the_coordinators_newest_round_left_out_goes() -> None:
    rows = commits(
        *(("a", "left out", 1, 4), ("a", "told", 1, 5)),
        *(("a", "of a slower broker", 3, 4), ("a", "of nobody known", 2, 1)),
        *(("b", "of another cluster", 1, 4), ("c", "of an unknown cluster", 1, 1)),
    )
    found = still_reported(rows, [known("a", 3, 4), known("a", 1, 5), known("b", 1, 4)])
    assert "left out" not in found["group_id"].to_pylist()
    assert found.num_rows == rows.num_rows - 1


def test_what_a_silent_coordinator_told_goes() -> None:
    rows = commits(("a", "g", 1, 5), ("a", "h", 2, 9))
    found = still_reported(rows, [known("a", 1, 5, silent_ms=8), known("a", 2, 9, silent_ms=8)])
    assert found["group_id"].to_pylist() == ["h"]
