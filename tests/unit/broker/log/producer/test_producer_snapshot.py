"""Snapshots of producers in Kafka's format."""

import errno
from pathlib import Path

import pytest

from broker.log.errors import StorageError
from broker.log.producer.producer_snapshot import (
    decode_snapshot,
    encode_snapshot,
    list_snapshots,
    load_newest_snapshot,
    write_snapshot,
)
from broker.log.producer.producer_state import ProducerState
from broker.protocol.records import parse_batch_header
from tests.support.faulty_disk import FaultyDisk
from tests.unit.broker.log.helpers import sequenced


def _state(sequence: int) -> ProducerState:
    state = ProducerState()
    state.replay(parse_batch_header(sequenced(sequence, 2)))
    return state


def test_a_snapshot_comes_back(tmp_path: Path) -> None:
    state = decode_snapshot("x", encode_snapshot(_state(4)))
    entry = state.entries[7]
    assert (entry.epoch, entry.last_sequence, entry.batches[-1].offset_delta) == (0, 5, 1)
    assert decode_snapshot("x", encode_snapshot(ProducerState())).entries == {}


def test_any_flipped_byte_is_noticed() -> None:
    content = encode_snapshot(_state(4))
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        with pytest.raises(StorageError, match="is damaged"):
            decode_snapshot("x", bytes(damaged))
    for length in range(len(content)):
        with pytest.raises(StorageError, match="is damaged"):
            decode_snapshot("x", content[:length])


def test_the_newest_whole_snapshot_below_an_offset_is_loaded(tmp_path: Path) -> None:
    directory = str(tmp_path)
    for offset in (10, 20, 30):
        write_snapshot(directory, offset, _state(offset))
    state, offset = load_newest_snapshot(directory, list_snapshots(directory), offset_max=25)
    assert (offset, state.entries[7].last_sequence) == (20, 21)
    (tmp_path / f"{20:020d}.snapshot").write_bytes(b"torn")
    assert load_newest_snapshot(directory, list_snapshots(directory), offset_max=25)[1] == 10
    assert list_snapshots(directory) == [10, 30]
    nothing, start = load_newest_snapshot(directory, list_snapshots(directory), offset_max=5)
    assert (nothing.entries, start) == ({}, 0)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO])
def test_a_snapshot_that_cannot_be_read_now_is_not_damaged(tmp_path: Path, code: int) -> None:
    directory = str(tmp_path)
    write_snapshot(directory, 10, _state(10))
    with FaultyDisk(tmp_path, code, calls={"open"}), pytest.raises(StorageError, match="Reading"):
        load_newest_snapshot(directory, [10], offset_max=10)
    assert load_newest_snapshot(directory, list_snapshots(directory), offset_max=10)[1] == 10
