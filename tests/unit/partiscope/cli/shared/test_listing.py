"""Tables of the screens on the command line: columns that fit, filters, JSON, CSV, colour."""

import csv
import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from control.views.tables import units
from control.views.tables.brokers import BROKERS
from control.views.tables.column import column
from control.views.tables.partitions import PARTITIONS
from control.views.tables.query import LIMIT_MAX
from control.views.tables.rows import Cell
from partiscope.cli.app import run
from partiscope.cli.shared.tables import write_table
from tests.support.phrases import lacking
from tests.support.piped import odd_cells
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tests.unit.control.clusters import log_dir
from tests.unit.control.kafka.scripted_cluster import ScriptedCluster
from tests.unit.partiscope.cli.test_told import store

__all__ = ["store"]

Capture = pytest.CaptureFixture[str]


Typed = Callable[..., int]
Lines = Callable[..., list[str]]


@pytest.fixture
def typed(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Runs a command on the store; its status."""
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path))
    return lambda *words: run([*words, "--store", store])


@pytest.fixture
def lines(typed: Typed, capsys: Capture) -> Lines:
    """Runs a command on the store; what it writes."""

    def written(*words: str) -> list[str]:
        assert typed(*words) == 0
        return capsys.readouterr().out.splitlines()

    return written


TABLES = (
    ("brokers",), ("partitions",), ("partitions", "--topic", "topic-1"),
    ("what-if", "--broker", "101"), ("partitions", "describe", "topic-0", "0"),
    ("brokers", "describe", "101"), ("clusters",), ("status",),
)  # fmt: skip


@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_tables_fit_80_columns(
    typed: Typed, words: tuple[str, ...], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert typed(*words) in (0, 5)
    written = capsys.readouterr().out.splitlines()
    tables = [line for line in written if not line.startswith("    ")]  # reasons are sentences
    assert [line for line in tables if len(line) > 80] == []


def test_wide_screens_and_chosen_columns_have_more(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    heads = lines("partitions")[0]
    assert all(column.title in heads for column in PARTITIONS.columns)
    monkeypatch.setenv("COLUMNS", "40")
    heads = lines("brokers", "--columns", "all")[0]
    assert all(column.title in heads for column in BROKERS.columns)
    assert lines("brokers", "--columns", "leaders")[0].split() == ["broker", "leaders"]


def test_a_broker_is_described_with_its_log_directories_where_it_has_several(
    typed: Typed, store: str, capsys: Capture
) -> None:
    sizes = SyntheticSizes(topics=3, partitions=4, groups=3)
    now = synthetic_rows(sizes, at_ms=time.time_ns() // 1_000_000)
    first, second, _ = now["brokers"]
    small = log_dir("/small", total_bytes=1_000, usable_bytes=20, replicas=3)
    first["directories"] = [small, log_dir("/large", is_failed=True)]
    second["directories"] = [small]
    builder = StoreBuilder(Path(store))
    builder._batch_id = 1_000
    builder.write(now)
    assert typed("brokers", "describe", str(first["broker"])) == 0
    told = capsys.readouterr().out
    assert not lacking(told, "disk failed", "log_directory", "/large", "failed", "/small", "98")
    assert typed("brokers", "describe", str(second["broker"])) == 0
    assert "/small" not in capsys.readouterr().out
    assert typed("brokers", "describe", str(first["broker"]), "--json") == 0
    found = json.loads(capsys.readouterr().out)["log_directories"]
    assert [(it["path"], it["state"], it["usable_bytes"]) for it in found] == [
        ("/large", "failed", None),
        ("/small", "open", 20),
    ]


def test_filter_order_and_formats_are_those_of_the_screens(lines: Lines) -> None:
    words = ("partitions", "--filter", "topic:topic-1", "--sort", "-partition")
    document = json.loads("\n".join(lines(*words, "--json")))
    numbers = [row["partition"] for row in document["partitions"]]
    assert (numbers, document["total"], document["matching"]) == ([3, 2, 1, 0], 12, 4)
    rows = list(csv.DictReader(lines(*words, "--csv")))
    assert [int(row["partition"]) for row in rows] == numbers
    assert [line.split()[1] for line in lines(*words)[1:]] == ["3", "2", "1", "0"]
    assert len(lines(*words, "--limit", "2")) == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("partitions", "--filter", "lagg>1"), "did you mean max_lag?"),
        (("brokers", "--sort", "nope"), "no column 'nope'; there are"),
        (("brokers", "--columns", "nope"), "no column 'nope'"),
        (("brokers", "describe", "9"), "there is no broker 9; there are 101, 102, 103"),
        (("partitions", "describe", "topic-0", "99"), "topic-0 has no partition 99 (0–3)"),
        (("partitions", "describe", "no", "0"), "nothing is known of a topic 'no'"),
        (("partitions", "--topic", "no"), "nothing is known of a topic 'no'"),
        (("what-if",), "--broker ID or --rack NAME"),
        (("what-if", "--rack", "z"), "no rack 'z'; there are a, b, c"),
        (("brokers", "--at", "tomorrow"), "'tomorrow' is no time"),
        (("brokers", "--at", "2100-01-01"), "is in the future"),
    ],
)
def test_what_is_not_there_is_told(
    typed: Typed, words: tuple[str, ...], told: str, capsys: Capture
) -> None:
    assert typed(*words) == 2
    assert told in capsys.readouterr().err


def test_a_lost_broker_is_told_as_json(lines: Lines) -> None:
    told: dict[str, Any] = json.loads("\n".join(lines("what-if", "--broker", "101", "--json")))
    assert told["lost"] == {"broker": "101", "brokers": [101]}
    assert {row["broker"] for row in told["survivors"]} == {102, 103}
    assert told["replicas"] == len(told["partitions"]) > 0


def test_a_lost_broker_with_one_replica_is_told_in_the_singular(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path))
    shared = {"cluster": "c", "read_ms": 1}
    partition = {"topic": "orders", "partition": 0, "leader": 101, "replicas": [101], "isr": [101],
                 "adding_replicas": [], "removing_replicas": [], "min_isr": 1}  # fmt: skip
    brokers = [{**shared, "broker": it, "is_fenced": False, "sampled_ms": 1} for it in (101, 102)]
    rows = {"brokers": brokers, "partitions": [{**shared, **partition}]}
    StoreBuilder(tmp_path / "store").write(rows)
    command = ["what-if", "--broker", "101", "--store", str(tmp_path / "store")]
    assert run(command) == 0
    heads, figures = capsys.readouterr().out.splitlines()[:2]
    told = dict(zip(heads.split("\t"), figures.split("\t"), strict=True))
    assert (told["broker"], told["offline"], told["replicas"]) == ("101", "1", "1")
    monkeypatch.setenv("COLUMNS", "120")
    assert run(command) == 0
    told_people = capsys.readouterr().out
    assert "If broker 101 fails: 1 more partition offline" in told_people
    assert "\n1 replica unreachable" in told_people


@pytest.mark.parametrize("no_color", [False, True])
def test_colour_is_for_terminals_alone(store: str, no_color: bool, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "partiscope",
        "partitions",
        "describe",
        "topic-0",
        "0",
        "--store",
        store,
    ]
    env = {**os.environ, "PARTISCOPE_DATA": str(tmp_path),
           "TERM": "xterm"}  # fmt: skip
    env.pop("NO_COLOR", None)
    if no_color:
        env["NO_COLOR"] = "1"
    master, slave = pty.openpty()
    with subprocess.Popen(command, env=env, stdout=slave, stderr=subprocess.PIPE) as it:
        os.close(slave)
        shown = b""
        while chunk := _read(master):
            shown += chunk
        it.communicate()
    os.close(master)
    assert (b"\x1b[" in shown) is not no_color
    piped = subprocess.run(command, env=env, capture_output=True)
    assert b"\x1b[" not in piped.stdout


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # the other end is closed
        return b""


PIPED = (
    *TABLES[:7], ("what-if", "--rack", "a"), ("partitions", "--filter", "lag<0"),
    ("partitions", "--columns", "leader,isr,replicas", "--sort", "-lag"),
)  # fmt: skip


@pytest.mark.parametrize("words", PIPED, ids=" ".join)
def test_a_pipe_has_words_for_programs(lines: Lines, words: tuple[str, ...]) -> None:
    written = lines(*words)
    assert not [sign for sign in "★✔▲◆✖−–≥≈…·" if sign in "".join(written)], written
    assert not odd_cells(written)
    assert not any(" " in head for head in next(line for line in written if "\t" in line).split())


def test_status_in_a_pipe_has_figures_without_units(typed: Typed, capsys: Capture) -> None:
    assert typed("status") in (0, 5)
    written = capsys.readouterr().out.splitlines()
    assert len([line for line in written if "\t" in line]) > 10
    assert not odd_cells(written)


CELLS = {
    units.COUNT: (Cell(12_345, "12,345"), "12345"),
    units.BYTES: (Cell(None, "≥ 2 GiB"), "-"),
    units.PERCENT: (Cell(-7.5, "−8 %"), "-7.5"),
    units.DURATION: (Cell(720_000.0, "≈ 12 m ± 30 s"), "720000"),
    units.TIME: (Cell(1_795_000_000_000, "12:06"), "2026-11-18T11:06:40Z"),
    units.TEXT: (Cell("604800000", "604800000 (7 d)"), "604800000"),
    units.IDS: (Cell("101, 102", "101, 102"), "101,102"),
}


def test_a_cell_in_a_pipe_is_its_value(capsys: Capture) -> None:
    columns = [column(it.name, it.name, it) for it in CELLS]
    write_table(columns, [[cell for cell, _ in CELLS.values()]])
    _, row = capsys.readouterr().out.splitlines()
    assert row.split("\t") == [told for _, told in CELLS.values()]


def test_a_pipe_has_figures_as_files_have_them(lines: Lines) -> None:
    words = ("partitions", "--sort", "-lag", "--columns", "all")
    heads, *rows = [line.split("\t") for line in lines(*words)]
    assert heads == [it.name for it in PARTITIONS.columns]
    assert {len(row) for row in rows} == {len(heads)}
    listed = list(csv.DictReader(lines(*words, "--csv")))
    for row, told in zip(rows, listed, strict=True):
        found = dict(zip(heads, row, strict=True))
        assert (found["log_bytes"], found["max_lag"]) == (
            told["size_bytes"],
            told["max_lag"] or "-",
        )
        assert found["replicas"] == told["replicas"].replace(" ", ",")
        assert found["leader"] == told["leader"]


def test_what_is_in_no_row_is_a_head_alone(lines: Lines) -> None:
    assert len(lines("partitions", "--filter", "lag<0")) == 1


def test_topics_and_groups_are_listed_with_figures_where_these_are_asked_for(
    lines: Lines, typed: Typed, capsys: Capture
) -> None:
    heads, *rows = lines("topics", "list", "--sort", "-bytes", "--csv")
    assert heads.startswith("topic,status,")
    sizes = [int(row["size_bytes"]) for row in csv.DictReader([heads, *rows])]
    assert (len(sizes), sizes) == (3, sorted(sizes, reverse=True))
    found = lines("groups", "list", "--filter", "group:group-1", "--columns", "lag,status")
    assert [line.split("\t")[0] for line in found] == ["group", "group-1"]
    assert found[0].split("\t") == ["group", "lag", "status"]
    told = json.loads("\n".join(lines("groups", "--filter", "lag>0", "--sort", "-lag", "--json")))
    lags = [row["lag"] for row in told["groups"]]
    assert lags == sorted(lags, reverse=True)
    assert told["matching"] == len(lags) < told["total"] == 3
    assert typed("topics", "list", "--filter", "colour:red") == 2
    assert "colour" in capsys.readouterr().err


def test_the_head_of_status_in_a_pipe_is_figures_under_names(typed: Typed, capsys: Capture) -> None:
    assert typed("status") in (0, 5)
    heads, figures = capsys.readouterr().out.splitlines()[:2]
    told = dict(zip(heads.split("\t"), figures.split("\t"), strict=True))
    assert told["brokers"] == "3/3"
    assert float(told["in_bytes_per_s"]) >= 0
    assert int(told["age_ms"]) >= 0


def test_a_list_of_names_is_never_cut(typed: Typed, capsys: Capture) -> None:
    """Programs read it for all topics of a large cluster."""
    names = [f"topic-{number:04}" for number in range(LIMIT_MAX + 100)]
    with ScriptedCluster(topics={name: {0: (1,)} for name in names}) as cluster:
        assert typed("topics", "list", "--bootstrap", cluster.bootstrap, "--json") == 0
    told = json.loads(capsys.readouterr().out)["topics"]
    assert sorted(topic["topic"] for topic in told) == names


def test_a_limit_asks_for_figures_which_tell_how_many_there_are(lines: Lines) -> None:
    told = json.loads("\n".join(lines("topics", "list", "--limit", "1", "--json")))
    assert told["total"] == 3
