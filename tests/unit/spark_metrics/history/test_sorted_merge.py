"""Sorted files read side by side, and rows of some keys found in them."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_metrics.history import sorted_merge
from spark_metrics.history.sorted_merge import open_run, slices
from spark_metrics.keys import sorted_by
from spark_metrics.read import footer_cache, row_lookup
from spark_metrics.read.row_lookup import Lookup
from spark_metrics.store import indexed_parquet
from spark_metrics.store.files import Order, StoreFiles

KEY: Final = ["cluster", "topic", "partition"]
SCHEMA: Final = pa.schema(
    {"cluster": pa.string(), "topic": pa.string(), "partition": pa.int32()}
    | {"at_ms": pa.int64(), "rate": pa.float64()}
)
FILES: Final = 5
ROWS: Final = 400
Row = dict[str, Any]


def some_rows(dice: Random) -> list[Row]:
    """Rows of three dozen keys; one has as many as all others."""
    keys = [(c, f"t-{n}", p) for c in "äb" for n in range(6) for p in range(3)]
    chosen = [keys[7] if dice.random() < 0.5 else dice.choice(keys) for _ in range(ROWS)]
    return [
        {"cluster": c, "topic": t, "partition": p, "at_ms": dice.randrange(10**6), "rate": 0.5}
        for c, t, p in chosen
    ]


@pytest.fixture
def files(tmp_path: Path) -> StoreFiles:
    return StoreFiles(str(tmp_path))


@pytest.fixture
def written(files: StoreFiles, monkeypatch: pytest.MonkeyPatch) -> list[list[Row]]:
    """Files of groups of 25 rows in stretches of 75; the last but one is neither sorted nor in
    stretches, the last lacks a column."""
    monkeypatch.setattr(indexed_parquet, "GROUPS", 3)
    dice = Random(3)
    found = [some_rows(dice) for _ in range(FILES)]
    order = Order(key=KEY, measured="at_ms", rows_max=1)
    for number, rows in enumerate(found):
        table = pa.Table.from_pylist(rows, SCHEMA)
        if number < FILES - 2:
            files.write_sorted(str(number), [sorted_by(table, KEY)], SCHEMA, order=order)
        elif number == FILES - 2:
            pq.write_table(table, files.absolute(str(number)), row_group_size=25)
        else:
            for row in rows:
                row["rate"] = None
            fewer = sorted_by(table.drop_columns("rate"), KEY)
            files.write_sorted(str(number), [fewer], fewer.schema, order=order)
    return found


def as_set(rows: list[Row]) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in SCHEMA.names) for row in rows}


def flat(written: list[list[Row]]) -> list[Row]:
    return list(chain.from_iterable(written))


def keys_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted({tuple(row[name] for name in KEY) for row in table.to_pylist()})


@pytest.fixture
def merged(
    files: StoreFiles, written: list[list[Row]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[pa.Table]]:
    monkeypatch.setattr(sorted_merge, "HELD_ROWS", 100)
    monkeypatch.setattr(sorted_merge, "BATCH_ROWS", 20)
    assert written
    with ExitStack() as opened:
        sources = [opened.enter_context(files.open(str(number))) for number in range(FILES)]
        yield list(slices([open_run(source, KEY, SCHEMA) for source in sources]))


def test_slices_hold_each_row_once_and_come_in_the_order_of_keys(
    merged: list[pa.Table], written: list[list[Row]]
) -> None:
    assert as_set(pa.concat_tables(merged).to_pylist()) == as_set(flat(written))
    assert sum(part.num_rows for part in merged) == FILES * ROWS
    keys = [keys_of(part) for part in merged]
    assert all(before[-1] < after[0] for before, after in pairwise(keys))
    assert len(keys) > 10, "they are small"


def test_a_file_in_stretches_is_a_file_for_everybody(
    files: StoreFiles, written: list[list[Row]]
) -> None:
    with files.open("0") as source:
        footers_of_its_own = list(indexed_parquet.footers(source))
        assert [each.num_rows for each in footers_of_its_own] == [75] * 5 + [25]
        assert pq.read_metadata(source).num_rows == ROWS
    table = pq.read_table(files.absolute("0"), schema=SCHEMA)
    assert as_set(table.to_pylist()) == as_set(written[0])
    by_duckdb = duckdb.read_parquet(files.absolute("0")).to_arrow_table()
    assert by_duckdb.cast(SCHEMA) == table


def test_a_file_that_was_written_leaves_nothing_in_memory(written: list[list[Row]]) -> None:
    assert written
    gc.collect()
    assert not [it for it in gc.get_objects() if type(it) is indexed_parquet._Stretch]


def test_one_key_costs_one_stretch_of_a_file(files: StoreFiles, written: list[list[Row]]) -> None:
    row = sorted(written[0], key=lambda each: tuple(each[name] for name in KEY))[ROWS // 8]
    with files.open("0") as source:
        index = indexed_parquet.read_index(source)
    assert index is not None
    assert index.holding({name: row[name] for name in KEY}) == range(1)
    assert index.holding({"cluster": "aa"}) == range(1)
    assert index.holding({"cluster": "ö"}) == range(5, 6)
    assert index.holding({"partition": 1}) == range(6)


@pytest.mark.parametrize("size", [0, 3, 40])
def test_a_file_cut_short_is_a_spoilt_one(
    files: StoreFiles, written: list[list[Row]], size: int
) -> None:
    assert written
    path = Path(files.absolute("0"))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises((OSError, pa.ArrowException)):
        Lookup(files).rows(["0"], {"cluster": "b"}, SCHEMA)


@pytest.mark.parametrize(
    "keys",
    [
        {"cluster": "ä", "topic": "t-2", "partition": 1},
        {"cluster": "b", "topic": "t-5", "partition": 2},
        {"cluster": "b", "topic": "t-0"},
        {"cluster": "ä"},
        {"cluster": "ä", "topic": "t-22", "partition": 1},
        {"cluster": "c"},
    ],
)
def test_the_rows_of_a_key_are_found_wherever_they_are(
    files: StoreFiles, written: list[list[Row]], keys: dict[str, Any]
) -> None:
    asked = Lookup(files)
    for _ in range(2):
        found = asked.rows([str(number) for number in range(FILES)], keys, SCHEMA)
        assert found is not None
        assert found.schema == SCHEMA
        wanted = [row for row in flat(written) if keys.items() <= row.items()]
        assert found.num_rows == len(wanted)
        assert as_set(found.to_pylist()) == as_set(wanted)


def test_a_question_for_too_much_is_left_to_others(
    files: StoreFiles, written: list[list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert written
    monkeypatch.setattr(row_lookup, "ROWS_MAX", 500)
    asked, every = Lookup(files), [str(number) for number in range(FILES)]
    assert asked.rows(every, {"cluster": "ä"}, SCHEMA) is None
    assert asked.rows(every, {"cluster": "b", "topic": "t-5"}, SCHEMA) is not None


def test_only_so_many_footers_are_kept(
    files: StoreFiles, written: list[list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert written
    monkeypatch.setattr(footer_cache, "BYTES_MAX", 1)
    asked = Lookup(files)
    asked.rows([str(number) for number in range(FILES)], {"cluster": "b"}, SCHEMA)
    assert len(asked._footers) == 1
