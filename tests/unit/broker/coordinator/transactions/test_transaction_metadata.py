"""How the state of a transactional id may change, and how its records look."""

from dataclasses import replace

import pytest

from broker.coordinator.errors import CoordinatorError, RecordFormatError
from broker.coordinator.transactions.transaction_metadata import (
    EPOCH_MAX,
    VERSION_2,
    Producer,
    Step,
    TransactionMetadata,
    TransactionState,
    add_partitions,
    begin_instance,
    check_producer,
    complete,
    end_epoch,
    fence,
    prepare_end,
)
from broker.coordinator.transactions.transaction_records import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

NEW = TransactionMetadata(transactional_id="tx", producer_id=7, timeout_ms=1000)
EMPTY = replace(NEW, epoch=3)
KEYS = frozenset({("a", 0), ("b", 1)})
ONGOING = replace(
    EMPTY, state=TransactionState.ONGOING, partitions=KEYS, start_ms=100, update_ms=100
)


def begin(
    known: TransactionMetadata, expected: Producer | None = None, new_id: int | None = None
) -> Step:
    return begin_instance(known, expected, timeout_ms=500, now_ms=200, new_producer_id=new_id)


def done(step: Step) -> TransactionMetadata:
    assert isinstance(step, TransactionMetadata)
    return step


def test_each_instance_has_the_next_epoch() -> None:
    first = done(begin(NEW))
    assert first.producer == Producer(7, 0)
    second = done(begin(first))
    assert (second.producer, second.timeout_ms, second.update_ms) == (Producer(7, 1), 500, 200)


def test_a_producer_that_asks_for_the_next_epoch_may_ask_twice() -> None:
    bumped = done(begin(EMPTY, Producer(7, 3)))
    assert (bumped.epoch, bumped.last_epoch) == (4, 3)
    assert done(begin(bumped, Producer(7, 3))).epoch == 4
    assert begin(bumped, Producer(7, 2)) is CoordinatorError.PRODUCER_FENCED
    assert begin(bumped, Producer(8, 4)) is CoordinatorError.PRODUCER_FENCED


def test_an_exhausted_epoch_takes_the_next_producer_id() -> None:
    worn = replace(EMPTY, epoch=EPOCH_MAX - 1)
    fresh = done(begin(worn, new_id=9))
    assert (fresh.producer, fresh.previous_producer_id) == (Producer(9, 0), 7)
    asked = done(begin(worn, Producer(7, EPOCH_MAX - 1), new_id=9))
    assert asked.last_epoch == EPOCH_MAX - 1
    again = done(begin(asked, Producer(7, EPOCH_MAX - 1)))
    assert again.producer == Producer(9, 0)


def test_a_transaction_begins_with_its_first_partitions() -> None:
    begun = done(add_partitions(EMPTY, frozenset({("a", 0)}), now_ms=300))
    assert (begun.state, begun.start_ms) == (TransactionState.ONGOING, 300)
    more = done(add_partitions(begun, KEYS, now_ms=400))
    assert (more.partitions, more.start_ms, more.update_ms) == (KEYS, 300, 400)
    assert add_partitions(more, frozenset({("b", 1)}), now_ms=500) is more


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_outcome_stands(is_commit: bool) -> None:
    prepared = done(prepare_end(ONGOING, is_commit=is_commit, now_ms=300))
    assert prepared.partitions == KEYS
    assert add_partitions(prepared, KEYS, now_ms=300) is CoordinatorError.CONCURRENT_TRANSACTIONS
    again = prepare_end(prepared, is_commit=is_commit, now_ms=300)
    assert again is CoordinatorError.CONCURRENT_TRANSACTIONS
    other = prepare_end(prepared, is_commit=not is_commit, now_ms=300)
    assert other is CoordinatorError.INVALID_TXN_STATE
    ended = complete(prepared, now_ms=400)
    assert (ended.state.is_ended, ended.partitions) == (True, frozenset())
    assert prepare_end(ended, is_commit=is_commit, now_ms=500) is ended
    other = prepare_end(ended, is_commit=not is_commit, now_ms=500)
    assert other is CoordinatorError.INVALID_TXN_STATE
    third = prepare_end(EMPTY, is_commit=is_commit, now_ms=1)
    assert third is CoordinatorError.INVALID_TXN_STATE


def test_who_is_fenced_writes_no_more() -> None:
    fenced = fence(ONGOING, now_ms=300)
    assert (fenced.state, fenced.epoch) == (TransactionState.PREPARE_ABORT, 4)
    assert check_producer(fenced, ONGOING.producer) is CoordinatorError.PRODUCER_FENCED
    assert check_producer(None, ONGOING.producer) is CoordinatorError.INVALID_PRODUCER_ID_MAPPING
    assert check_producer(fenced, fenced.producer) is CoordinatorError.NONE


def test_time_counts_from_the_first_partition() -> None:
    assert not ONGOING.is_timed_out(1100)
    assert ONGOING.is_timed_out(1101)
    assert not EMPTY.is_timed_out(10_000)


@pytest.mark.parametrize("metadata", [EMPTY, ONGOING, complete(fence(ONGOING, now_ms=1), now_ms=2)])
def test_records_tell_all_that_must_outlive_a_node(metadata: TransactionMetadata) -> None:
    assert decode_value("tx", encode_value(metadata)) == metadata
    assert decode_key(encode_key("tx")) == "tx"


def test_a_record_of_version_1_is_read() -> None:
    """As Kafka 4.1 writes it: flexible, the previous producer id as a tag."""
    value = bytes.fromhex(
        "0001 0000000000000007 0003 000003e8 01"
        "02 02 61 02 00000000 00"
        "0000000000000064 0000000000000064"
        "02 00 08 0000000000000005 02 02 0002"
    )
    expected = replace(
        ONGOING, partitions=frozenset({("a", 0)}), previous_producer_id=5, version=VERSION_2
    )
    assert decode_value("tx", value) == expected
    assert encode_value(expected) == value


def test_a_record_of_version_0_is_read() -> None:
    value = bytes.fromhex(
        "0000 0000000000000007 0003 000003e8 01"
        "00000001 0001 61 00000001 00000000"
        "0000000000000064 0000000000000064"
    )
    assert decode_value("tx", value) == replace(ONGOING, partitions=frozenset({("a", 0)}))


def end(
    known: TransactionMetadata, sent: Producer, is_commit: bool, new_id: int | None = None
) -> Step:
    return end_epoch(known, sent, is_commit=is_commit, now_ms=300, new_producer_id=new_id)


@pytest.mark.parametrize("is_commit", [True, False])
def test_each_transaction_of_version_2_has_an_epoch(is_commit: bool) -> None:
    prepared = done(end(ONGOING, Producer(7, 3), is_commit))
    assert (prepared.producer, prepared.next_producer) == (Producer(7, 4), Producer(7, 4))
    concurrent = CoordinatorError.CONCURRENT_TRANSACTIONS
    assert end(prepared, Producer(7, 3), is_commit) is concurrent, "asked again"
    assert end(prepared, Producer(7, 4), is_commit) is concurrent, "the next transaction"
    assert end(prepared, Producer(7, 3), not is_commit) is CoordinatorError.INVALID_TXN_STATE
    assert end(prepared, Producer(7, 2), is_commit) is CoordinatorError.PRODUCER_FENCED
    ended = complete(prepared, now_ms=400)
    assert end(ended, Producer(7, 3), is_commit) is ended
    assert end(ended, Producer(7, 3), not is_commit) is CoordinatorError.INVALID_TXN_STATE
    begun = done(add_partitions(ended, KEYS, now_ms=500, version=VERSION_2))
    assert end(begun, Producer(7, 3), is_commit) is CoordinatorError.PRODUCER_FENCED
    assert end(begun, Producer(8, 4), is_commit) is CoordinatorError.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("known", [EMPTY, complete(fence(ONGOING, now_ms=1), now_ms=2)])
def test_only_an_abort_ends_what_has_not_begun(known: TransactionMetadata) -> None:
    assert end(known, known.producer, True) is CoordinatorError.INVALID_TXN_STATE
    aborted = done(end(known, known.producer, False))
    assert (aborted.state, aborted.start_ms) == (TransactionState.PREPARE_ABORT, 300)
    assert aborted.epoch == known.epoch + 1


def test_used_up_epochs_give_the_next_producer_id() -> None:
    worn = replace(ONGOING, epoch=EPOCH_MAX - 1)
    assert end(worn, worn.producer, True) is CoordinatorError.CONCURRENT_TRANSACTIONS
    prepared = done(end(worn, worn.producer, True, new_id=9))
    assert (prepared.producer, prepared.next_producer) == (Producer(7, EPOCH_MAX), Producer(9, 0))
    assert decode_value("tx", encode_value(prepared)) == replace(prepared, last_epoch=-1)
    ended = complete(prepared, now_ms=400)
    assert (ended.producer, ended.previous_producer_id) == (Producer(9, 0), 7)
    assert end(ended, worn.producer, True) is ended, "asked again"
    assert end(ended, Producer(7, 3), True) is CoordinatorError.INVALID_PRODUCER_ID_MAPPING


def test_a_producer_of_version_2_whose_time_was_over_may_abort() -> None:
    fenced = complete(fence(replace(ONGOING, version=VERSION_2), now_ms=300), now_ms=400)
    assert end(fenced, ONGOING.producer, False) is fenced
    assert end(fenced, ONGOING.producer, True) is CoordinatorError.INVALID_TXN_STATE
    worn = replace(ONGOING, epoch=EPOCH_MAX - 1, version=VERSION_2)
    assert fence(worn, now_ms=300).epoch == EPOCH_MAX


@pytest.mark.parametrize("value", ["0002" + 40 * "00", "0000" + 14 * "00" + "09", "0000 00"])
def test_a_record_that_is_none_is_told(value: str) -> None:
    with pytest.raises(RecordFormatError):
        decode_value("tx", bytes.fromhex(value))
