"""Idempotent producers: duplicates, gaps, fencing, expiry."""

import pytest

from broker.log.errors import InvalidProducerEpochError, OutOfOrderSequenceError
from broker.log.producer.producer_state import SEQUENCE_MAX, ProducerState
from broker.protocol.records import BatchHeader, parse_batch_header
from tests.unit.broker.log.helpers import NOW_MS, batch, sequenced


def _header(sequence: int, count: int = 1, *, epoch: int = 0) -> BatchHeader:
    return parse_batch_header(sequenced(sequence, count, epoch=epoch))


def _take(state: ProducerState, header: BatchHeader, base_offset: int) -> None:
    append = state.begin()
    append.add(header, base_offset, is_checked=True)
    append.commit()


def test_the_last_five_batches_are_known_as_duplicates() -> None:
    state = ProducerState()
    for n in range(6):
        _take(state, _header(n * 2, 2), 100 + n * 2)
    assert state.find_duplicate(_header(0, 2)) is None
    for n in range(1, 6):
        found = state.find_duplicate(_header(n * 2, 2))
        assert found is not None
        assert (found.base_offset, found.last_offset) == (100 + n * 2, 101 + n * 2)
    assert state.find_duplicate(_header(2, 1)) is None
    assert state.find_duplicate(_header(2, 2, epoch=1)) is None


def test_a_gap_and_a_step_back_are_refused_and_change_nothing() -> None:
    state = ProducerState()
    _take(state, _header(0, 3), 0)
    for sequence in (4, 2, 0):
        with pytest.raises(OutOfOrderSequenceError, match="where 3 was due"):
            _take(state, _header(sequence), 3)
    _take(state, _header(3), 3)


def test_an_unknown_producer_may_start_anywhere() -> None:
    state = ProducerState()
    _take(state, _header(41), 0)
    _take(state, _header(42), 1)


def test_a_newer_epoch_starts_at_zero_and_fences_the_older() -> None:
    state = ProducerState()
    _take(state, _header(0, epoch=1), 0)
    with pytest.raises(OutOfOrderSequenceError):
        _take(state, _header(1, epoch=2), 1)
    _take(state, _header(0, epoch=2), 1)
    with pytest.raises(InvalidProducerEpochError, match="epoch 2 has fenced"):
        _take(state, _header(1, epoch=1), 2)


def test_sequences_wrap_to_zero() -> None:
    state = ProducerState()
    _take(state, _header(SEQUENCE_MAX - 1, 2), 0)
    _take(state, _header(0), 2)
    wrapped = ProducerState()
    _take(wrapped, _header(SEQUENCE_MAX, 3), 0)
    assert wrapped.entries[7].last_sequence == 1
    assert wrapped.find_duplicate(_header(SEQUENCE_MAX, 3)) is not None
    _take(wrapped, _header(2), 3)


def test_nothing_changes_before_commit() -> None:
    state = ProducerState()
    append = state.begin()
    append.add(_header(0), 0, is_checked=True)
    append.add(_header(1), 1, is_checked=True)
    assert state.entries == {}
    append.commit()
    assert state.entries[7].last_sequence == 1


def test_silent_producers_expire() -> None:
    state = ProducerState()
    _take(state, _header(0), 0)
    assert state.expire(before_ms=NOW_MS) == 0
    assert state.expire(before_ms=NOW_MS + 1) == 1
    assert state.entries == {}


def test_replay_ignores_batches_without_producer() -> None:
    state = ProducerState()
    state.replay(parse_batch_header(batch()))
    assert state.entries == {}
    state.replay(_header(5))
    assert state.entries[7].last_sequence == 5
