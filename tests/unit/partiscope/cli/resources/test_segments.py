"""`partiscope segments` over files that a log has written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.records import NewRecord, build_batch
from partiscope.cli.app import run
from tests.unit.broker.log.helpers import NOW_MS, open_log, small_segments


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Broker 101 has orders-0: 20 lz4 batches of two records over several segments."""
    log = open_log(tmp_path / "broker-101" / "orders-0", small_segments(1000))
    for n in range(20):
        records = [
            NewRecord(
                key=b"k%d" % n,
                value=None if n == 7 else b"%x" % (n * 7919**9),
                timestamp=NOW_MS + 10 * n + k,
                headers=(("trace", b"t%d" % n),),
            )
            for k in range(2)
        ]
        batch = build_batch(records, codec=3)
        log.append_as_leader(memoryview(batch), leader_epoch=4, now_ms=NOW_MS)
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], data: Path, *options: str) -> str:
    arguments = ["segments", "orders", "0", "--data", str(data), *options]
    assert run(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def _json(capsys: pytest.CaptureFixture[str], data: Path, *options: str) -> Any:
    return json.loads(_run(capsys, data, "--json", *options))


def test_index_lists_every_entry(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = _json(capsys, data)["segments"]
    assert "index" not in plain[0]
    segments = _json(capsys, data, "--index")["segments"]
    assert len(segments) > 2
    for segment in segments:
        assert len(segment["index"]) == segment["index_entries"]
        assert len(segment["time_index"]) == segment["time_index_entries"]
        positions = [entry["position"] for entry in segment["index"]]
        assert positions == sorted(set(positions))
        assert all(0 < position < segment["size_bytes"] for position in positions)
    first = segments[0]["index"][0]
    text = _run(capsys, data, "--index")
    assert "00000000000000000000.index (relative offset → position in bytes)" in text
    shown = [line.split() for line in text.splitlines()]
    assert [str(first["relative_offset"]), str(first["position"])] in shown


def test_offset_shows_one_message_and_where_it_lies(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = _json(capsys, data, "--offset", "31")["message"]
    assert message["offset"] == 31
    assert message["timestamp_ms"] == NOW_MS + 151
    assert (message["key"], message["key_bytes"]) == ("k15", 3)
    assert message["value"] == f"{15 * 7919**9:x}"
    assert message["headers"] == [["trace", "t15"]]
    batch = message["batch"]
    assert (batch["base_offset"], batch["last_offset"], batch["records"]) == (30, 31, 2)
    assert (batch["codec"], batch["format_version"], batch["leader_epoch"]) == ("lz4", 2, 4)
    assert batch["is_crc_valid"]
    raw = Path(message["file"]).read_bytes()[batch["position"] :][: batch["size_bytes"]]
    assert int.from_bytes(raw[:8], "big") == 30
    assert int.from_bytes(raw[17:21], "big") == int(batch["crc32c"], 16)
    text = _run(capsys, data, "--offset", "31")
    for words in ("k15 (3 B)", "codec lz4", "record format 2", message["file"], "holds"):
        assert words in text
    tombstone = _json(capsys, data, "--offset", "14")["message"]
    assert (tombstone["value"], tombstone["value_bytes"]) == (None, None)
    assert "value      null" in _run(capsys, data, "--offset", "14")


def test_a_damaged_batch_is_shown_as_damaged(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = _json(capsys, data, "--offset", "1")["message"]
    path = Path(message["file"])
    content = bytearray(path.read_bytes())
    content[message["batch"]["position"] + 20] ^= 1
    path.write_bytes(content)
    assert not _json(capsys, data, "--offset", "1")["message"]["batch"]["is_crc_valid"]
    assert "DOES NOT HOLD" in _run(capsys, data, "--offset", "1")


def test_an_offset_that_is_not_there_is_explained(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["segments", "orders", "0", "--data", str(data), "--offset", "40"]) == 1
    assert "holds offsets 0 to 39. Name another" in capsys.readouterr().err
    config = replace(
        small_segments(150),
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.0,
    )
    log = open_log(tmp_path / "broker-102" / "compacted-0", config)
    for n in range(3):
        batch = build_batch([NewRecord(key=b"k", value=b"%d" % n * 50, timestamp=NOW_MS)])
        log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS)
    compaction = log.plan_compaction(stable_offset=3, now_ms=NOW_MS)
    assert compaction is not None
    while (group := compaction.next_group(lambda: None)) is not None:
        assert log.cleaning.swap_in(group, compaction.settings)
    assert run(["segments", "compacted", "0", "--data", str(data), "--offset", "0"]) == 1
    assert "compacted away" in capsys.readouterr().err
