"""Rows of commits by number: found, put in order, and named again."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_metrics.fold.bucket import NO_COMMITS
from spark_metrics.fold.names import ID, NAMES, Aligned, aligned, named, names_of
from spark_metrics.keys import key_codes, places_of, sorted_by
from spark_metrics.schema import CARRIED, ROWS
from spark_metrics.store.files import StoreFiles

NOBODY = NO_COMMITS.select(NAMES)
Name = tuple[str, str, str, int]
A, B, C = ("c", "g", "t", 0), ("c", "g", "t", 1), ("c", "h", "s", 0)
LOGS = pa.Table.from_pylist(
    [{"cluster": "c", "topic": name, "partition": n} for name, n in (("s", 0), ("t", 1), ("t", 0))]
)


def step(*rows: tuple[Name, int, str | None]) -> pa.Table:
    """What a step brings: which commit, its offset, and who owns it."""
    made: list[dict[str, Any]] = [
        {**dict(zip(ID, name, strict=True)), "committed_offset": offset, "member_id": member}
        for name, offset, member in rows
    ]
    table = pa.Table.from_pylist(made, schema=pa.schema(ROWS["commits"]))
    return table.append_column("alive_ms", pa.nulls(table.num_rows, pa.int64()))


def told(beside: Aligned, *rows: tuple[int, bool]) -> pa.Table:
    """What becomes of a plan's answer: number of the row, and whether the step told it in full."""
    numbers = [number for number, _ in rows]
    count = beside.fresh.num_rows
    carried = pa.table({name: pa.array(range(count)) for name in CARRIED})
    is_full = [dict(rows).get(number, False) for number in range(count)]
    answer = pa.table({"row": pa.array(numbers, pa.int32())})
    return named(answer, beside, carried.append_column("is_full", pa.array(is_full)))


def ids(table: pa.Table) -> list[Name]:
    return [tuple(row[name] for name in ID) for row in table.select(ID).to_pylist()]


def test_new_commits_stand_in_their_order_with_their_partitions_row() -> None:
    beside = aligned(step((A, 10, "m"), (B, 20, None), (C, 30, "n")), NOBODY, LOGS)
    assert beside.fresh["row"].to_pylist() == [0, 1, 2]
    assert beside.fresh["log_row"].to_pylist() == [2, 1, 0]
    assert beside.fresh["told_owned"].to_pylist() == [True, False, True]
    found = told(beside, (0, True), (1, True), (2, True))
    assert ids(found) == [A, B, C]
    assert found["member_id"].to_pylist() == ["m", None, "n"]
    assert "row" not in found.column_names


def test_known_commits_keep_their_rows_whatever_the_order_of_a_wave() -> None:
    first = aligned(step((A, 1, "m"), (B, 2, "n")), NOBODY, LOGS)
    known = names_of(told(first, (0, True), (1, True)))
    beside = aligned(step((C, 30, "o"), (B, 20, "p")), known, LOGS)
    assert beside.fresh["told_offset"].to_pylist() == [None, 20, 30]
    assert beside.fresh["log_row"].to_pylist() == [2, 1, 0]
    found = told(beside, (0, False), (1, True), (2, True))
    assert ids(found) == [A, B, C]
    assert found["member_id"].to_pylist() == ["m", "p", "o"]
    assert ids(told(beside, (0, False), (2, True))) == [A, C]


def test_who_owned_it_stays_where_the_wave_only_says_that_nothing_changed() -> None:
    known = names_of(told(aligned(step((A, 1, "m")), NOBODY, LOGS), (0, True)))
    found = told(aligned(step((A, 1, None)), known, LOGS), (0, False))
    assert found["member_id"].to_pylist() == ["m"]


def test_a_commit_whose_partition_nobody_told_has_no_row_of_it() -> None:
    beside = aligned(step((("c", "g", "unknown", 0), 1, None)), NOBODY, LOGS)
    assert beside.fresh["log_row"].to_pylist() == [None]
    nothing = aligned(step(), NOBODY, LOGS.slice(0, 0))
    assert nothing.fresh.num_rows == nothing.ids.num_rows == 0


def test_names_are_read_of_files_as_places_in_dictionaries(tmp_path: Path) -> None:
    files = StoreFiles(str(tmp_path))
    found = told(aligned(step((A, 1, "m")), NOBODY, LOGS), (0, True))
    files.write_table("some", found)
    read = files.read_texts("some", [*NAMES, "is_unknown"])
    assert read.column_names == [*NAMES]
    assert names_of(read).to_pylist() == found.select(NAMES).to_pylist()
    keys = pa.schema({"group_id": pa.string()})
    assert files.read_table("some", keys).to_pylist() == [{"group_id": "g"}]


def test_keys_of_several_tables_are_told_apart_and_ordered() -> None:
    one = pa.table({"a": ["x", None, "b"], "n": [1, 2, -1]})
    other = pa.table({"a": pa.array(["b", "x"]).dictionary_encode(), "n": [-1, 2]})
    first, second = key_codes([one, other], ("a", "n"))
    assert first[2] == second[0]
    assert len({*first.tolist(), second[1]}) == 4
    assert first[1] < first[2] < first[0] < second[1]
    assert places_of(second, first).tolist() == [2, -1]
    assert places_of(second, np.empty(0, np.int64)).tolist() == [-1, -1]


@pytest.mark.parametrize("width", [3, 1 << 50])
def test_rows_are_sorted_by_a_key_of_any_width(width: int) -> None:
    dice = np.random.default_rng(7)
    table = pa.table(
        {
            "a": dice.choice(["é", "z", "A", ""], 500),
            "m": dice.integers(0, width, 500),
            "n": dice.integers(0, width, 500),
        }
    )
    key = ("a", "m", "n")
    wanted = table.sort_by([(name, "ascending") for name in key])
    assert sorted_by(table, key).equals(wanted)
    assert sorted_by(wanted, key) is wanted
    assert sorted_by(table, ()) is table
