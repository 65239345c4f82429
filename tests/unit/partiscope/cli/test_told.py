"""What scripts are told as JSON: words for a status, numbers for figures, null for the unknown."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from partiscope.cli.app import run
from tests.support.phrases import lacking
from tests.support.store_builder import StoreBuilder, SyntheticSizes


@pytest.fixture
def store(tmp_path: Path) -> str:
    sizes = SyntheticSizes(topics=3, partitions=4, groups=3)
    at_ms = time.time_ns() // 1_000_000
    StoreBuilder(tmp_path / "store").write_synthetic(sizes, history_s=10, at_ms=at_ms)
    return str(tmp_path / "store")


def _told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run([*words, "--json"]) in (0, 5)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    document: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=refuse)
    return document


def test_status_is_a_word_and_what_never_ends_is_null(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _told(capsys, "status", "--store", store, "--data", str(tmp_path))
    assert {row["status"] for row in told["groups"]} <= {"OK", "WARN", "STALL", "STOP", "REWIND"}
    assert all(isinstance(row["lag"], int) for row in told["groups"])
    stopped = [row for row in told["groups"] if row["status"] == "STOP"]
    assert [row["clears"] for row in stopped] == [None] * len(stopped) != []
    assert {row["broker"] for row in told["brokers"]} == {101, 102, 103}


def test_clusters_are_told_side_by_side(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _told(capsys, "clusters", "--store", store, "--data", str(tmp_path))
    (row,) = told["clusters"]
    assert (row["topics"], row["partitions"], row["brokers"]) == (3, 12, "3/3 brokers")
    assert isinstance(row["age"], int)
    assert run(["clusters", "--store", store, "--data", str(tmp_path)]) == 0
    assert not lacking(capsys.readouterr().out, "3/3", "STOP:1,WARN:1,OK:1")


def test_an_export_tells_what_came_and_a_missing_store_is_unreachable(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--data", str(tmp_path), "--to", str(tmp_path / "lake"))
    told = _told(capsys, "export", "--store", store, *there)
    tables = {row["table"]: row for row in told["tables"]}
    first = tables["commit_history"]
    assert first["added"] == first["files"] > 0
    assert run(["export", "--store", store, *there]) == 0
    shown = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert shown["commit_history"] == ["0", f"{first['files']}", f"{first['rows']:,}", "0", "0"]
    assert run(["export", "--store", str(tmp_path / "none"), *there]) == 4
    assert "there is no store" in capsys.readouterr().err
