"""A checkpoint that Spark could not go on from, or that is further than the store, is found out."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_metrics.job.checkpoint import checkpoint_fault, checkpoint_id

TOPIC = "samples"
Spoil = Callable[[Path], object]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Two batches are done, a third is planned: as Spark writes them."""
    folder = tmp_path / "checkpoint"
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"5cdd0a5a"}')
    for number in range(3):
        ends = json.dumps({TOPIC: {"0": 10 * number, "1": 5 * number}})
        (folder / f"offsets/{number}").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{ends}')
        (folder / f"offsets/.{number}.crc").write_bytes(b"crc")
    for number in range(2):
        (folder / f"commits/{number}").write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def fault(checkpoint: Path, **next_offsets: int) -> str:
    return checkpoint_fault(
        str(checkpoint), TOPIC, {int(it[1:]): at for it, at in next_offsets.items()}
    )


def test_one_that_the_store_has_caught_up_with_is_gone_on_from(checkpoint: Path) -> None:
    assert checkpoint_id(str(checkpoint)) == "5cdd0a5a"
    for known in ({}, {"p0": 10}, {"p0": 10, "p1": 5}, {"p0": 20, "p1": 10}, {"p7": 0}):
        assert fault(checkpoint, **known) == "", known
    assert fault(checkpoint.with_name("none"), p0=3) == ""


def test_one_that_is_further_than_the_store_is_not(checkpoint: Path) -> None:
    """What batch 2 has planned is read again in any case."""
    assert "3 records of partition 1" in fault(checkpoint, p0=9, p1=2)
    (checkpoint / "commits/2").write_text('v1\n{"nextBatchWatermarkMs":0}')
    assert "10 records of partition 0" in fault(checkpoint, p0=10, p1=10)


SPOILT: dict[str, Spoil] = {
    "empty": lambda it: it.write_bytes(b""),
    "zeroed": lambda it: it.write_bytes(bytes(it.stat().st_size)),
    "cut short": lambda it: it.write_bytes(it.read_bytes()[:-3]),
    "not UTF-8": lambda it: it.write_bytes(b"\xff\xfe"),
    "a number": lambda it: it.write_bytes(b"v1\n7\n7" if it.name.isdecimal() else b"7"),
    "of a later version": lambda it: it.write_bytes(it.read_bytes().replace(b"v1", b"v9")),
}


@pytest.mark.parametrize("name", ["metadata", "offsets/1", "offsets/2", "commits/1"])
@pytest.mark.parametrize("kind", SPOILT)
def test_a_spoilt_file_is_named(checkpoint: Path, name: str, kind: str) -> None:
    before = (checkpoint / name).read_bytes()
    SPOILT[kind](checkpoint / name)
    is_spoilt = (checkpoint / name).read_bytes() != before
    assert is_spoilt is not (name == "metadata" and kind == "of a later version")
    found = fault(checkpoint, p0=10)
    assert (name in found) is is_spoilt, found


@pytest.mark.parametrize("name", ["metadata", "offsets/1"])
def test_a_file_that_is_gone_is_named(checkpoint: Path, name: str) -> None:
    (checkpoint / name).unlink()
    assert name in fault(checkpoint, p0=10)


def test_metadata_of_a_query_that_planned_nothing_are_read_too(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    assert fault(folder) == ""
    (folder / "metadata").write_bytes(b"")
    assert "metadata" in fault(folder)
