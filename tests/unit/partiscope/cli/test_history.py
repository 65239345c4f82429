"""``partiscope history``: SQL over history as a terminal, a pipe and a script get it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from partiscope.cli.app import run
from tests.support.node_cluster import ROOT
from tests.support.patience import patience_s
from tests.support.store_builder import StoreBuilder, SyntheticSizes

AT_MS = 1_790_000_000_000
KINDS = (
    "SELECT 1 AS a, 2 AS a, sum(lag) AS lag, 0.5 AS half, 'x,y' AS words, NULL AS nothing,"
    " 'inf'::DOUBLE AS endless, make_timestamp_ms(0) AS at, true AS is_so, [1, 2] AS several,"
    " '\\xFF'::BLOB AS raw FROM group_history"
)
ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"


@pytest.fixture
def there(tmp_path: Path) -> list[str]:
    StoreBuilder(tmp_path / "store").write_synthetic(
        SyntheticSizes(topics=2, partitions=2), history_s=10, at_ms=AT_MS
    )
    return ["--store", str(tmp_path / "store"), "--data", str(tmp_path)]


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    assert run(["history", *words]) == status
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_a_pipe_gets_tabs_and_a_terminal_a_table(
    there: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT group_id, max(lag) AS lag FROM group_history GROUP BY ALL ORDER BY ALL"
    out, err = said(capsys, sql, *there)
    assert out.splitlines() == ["group_id\tlag", "group-0\t0", "group-1\t4000", "group-2\t10000"]
    assert err == ""
    monkeypatch.setenv("COLUMNS", "60")
    out, _ = said(capsys, sql, *there)
    assert [line.split() for line in out.splitlines()][::3] == [
        ["group_id", "lag"],
        ["group-2", "10000"],
    ]


def test_csv_and_json_hold_every_kind_of_value(
    there: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = said(capsys, KINDS, *there, "--json")
    assert json.loads(out) == {
        "rows": [
            {
                **{"a": 1, "a_2": 2, "lag": 154_000, "half": 0.5, "words": "x,y"},
                **{"nothing": None, "endless": None, "at": "1970-01-01T00:00:00"},
                **{"is_so": True, "several": "[1, 2]", "raw": "ff"},
            }
        ],
        "is_cut": False,
        "damaged_files": {},
    }
    out, _ = said(capsys, KINDS, *there, "--csv")
    heads, values = out.splitlines()
    assert heads == "a,a_2,lag,half,words,nothing,endless,at,is_so,several,raw"
    assert values == '1,2,154000,0.5,"x,y",,,"1970-01-01T00:00:00",true,"[1, 2]","ff"'
    out, _ = said(capsys, KINDS, *there)
    cells = out.splitlines()[1].split("\t")
    assert cells[:7] == ["1", "2", "154000", "0.5", "x,y", "-", "-"]


def test_rows_are_limited_where_they_are_read_and_whole_in_files(
    there: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT range FROM range(1500)"
    out, err = said(capsys, sql, *there)
    assert (len(out.splitlines()), "1,000 rows" in err) == (1_001, True)
    out, err = said(capsys, sql, *there, "--limit", "2")
    assert (len(out.splitlines()), "2 rows" in err) == (3, True)
    out, err = said(capsys, sql, *there, "--csv")
    assert (len(out.splitlines()), err) == (1_501, "")
    out, err = said(capsys, sql, *there, "--json", "--limit", "3")
    told: dict[str, Any] = json.loads(out)
    assert (len(told["rows"]), told["is_cut"]) == (3, True)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["FROM lags"], 2, "commit_history"),
        (["SELECT lagg FROM group_history"], 2, "lag_max"),
        (["DROP TABLE group_history"], 2, "SELECT"),
        (["SELECT 1", "--timeout", "soon"], 2, "soon"),
        (["SELECT 1", "--timeout", "0s"], 2, "0s"),
        (["SELECT 1", "--memory", "1k"], 2, "1k"),
        ([ENDLESS, "--timeout", "0.5s"], 1, "0.5 s"),
        (["FROM range(100000000)", "--memory", "64Mi", "--csv"], 1, "64 MiB"),
        (["SELECT 1", "--store", "nowhere"], 4, "nowhere"),
    ],
)
def test_what_cannot_be_answered_has_a_status_and_a_reason(
    there: list[str],
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    status: int,
    told: str,
) -> None:
    out, err = said(capsys, *there, *words, status=status)
    assert out == ""
    assert told in err


def test_a_spoilt_file_is_named_and_the_rest_is_answered(
    there: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (spoilt,) = Path(there[1], "history").glob("group_history-*")
    spoilt.write_bytes(b"")
    out, err = said(capsys, "SELECT count(*) FROM group_history", *there)
    assert out.splitlines()[1] == "0"
    assert f"history/{spoilt.name}" in err
    out, _ = said(capsys, "SELECT count(*) FROM group_history", *there, "--json")
    assert [*json.loads(out)["damaged_files"]] == [f"history/{spoilt.name}"]


def test_ctrl_c_ends_it(there: list[str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        (sys.executable, "-m", "partiscope", "history", ENDLESS, *there),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until_s = time.monotonic() + patience_s(30)
        loaded = Path(f"/proc/{process.pid}/maps")
        while time.monotonic() < until_s and "_duckdb" not in loaded.read_text():
            time.sleep(0.05)
        time.sleep(1.0)  # it computes
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=patience_s(30))
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (130, "", "")
