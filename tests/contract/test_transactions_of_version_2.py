"""Transactions of version 2 (KIP-890): each has its epoch, and leaders add the partitions."""

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from broker.protocol import codec
from tests.contract.test_transactions import (
    CONCURRENT,
    CONSUMER,
    DESCRIBE_PRODUCERS,
    NAMES,
    NOT_YET,
    OFFSET_FETCH,
    PERFORMANCE,
    TRANSACTIONS,
    Raw,
    consumed,
    new_topic,
)
from tests.support import wire
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import run_tool
from tests.support.settle import wait_until

PRODUCE: Final = (0, 12)
PRODUCE_WITHOUT_ADDING: Final = (0, 11)
API_VERSIONS: Final = (18, 4)
END: Final = (26, 5)
TXN_OFFSET_COMMIT: Final = (28, 5)
NOT_ENOUGH_REPLICAS: Final = 19
ABORTABLE: Final = 120
AGAIN: Final = (CONCURRENT, NOT_ENOUGH_REPLICAS, *NOT_YET)


class Second(Raw):
    """Requests as a client of version 2 sends them."""

    def send(self, sequence: int, api: tuple[int, int] = PRODUCE, epoch: int | None = None) -> int:
        """The answer to a record, tried again as clients do."""
        return settled(lambda: self.produce(sequence, epoch, api))

    def finish(self, is_commit: bool, **changes: Any) -> tuple[int, int, int]:
        """Error, producer id and epoch that EndTxn answers, once markers are written."""
        fields = {**self.producer, **changes, "committed": is_commit}
        found: list[Any] = []

        def answer() -> int:
            found[:] = [self.ask(self.coordinator, END, **fields)]
            return int(found[0].error_code)

        return settled(answer), found[0].producer_id, found[0].producer_epoch

    def end_epoch(self, is_commit: bool) -> None:
        """The next transaction has another epoch."""
        former = self.epoch
        error, self.producer_id, self.epoch = self.finish(is_commit)
        assert (error, self.epoch) == (0, former + 1)


def settled(answer: Callable[[], int]) -> int:
    """An error code that a client does not try again."""
    codes: list[int] = []

    def is_settled() -> bool:
        codes[:] = [answer()]
        return codes[0] not in AGAIN

    wait_until(is_settled, "the coordinators have answered")
    return codes[0]


def last_of(second: Second) -> tuple[int, int]:
    """Epoch and last sequence of the producer, as its partition's leader knows them."""
    partitions = [{"name": second.topic, "partition_indexes": [0]}]
    (topic,) = second.ask(second.leader(), DESCRIBE_PRODUCERS, topics=partitions).topics
    (producer,) = topic.partitions[0].active_producers
    return producer.producer_epoch, producer.last_sequence


@pytest.fixture
def second(bootstrap: str) -> Second:
    return Second(bootstrap)


def test_the_feature_is_told(bootstrap: str) -> None:
    def features(version: int) -> tuple[dict[str, Any], dict[str, Any]]:
        api = (API_VERSIONS[0], version)
        request = codec.build_request(
            *api, client_software_name="tests", client_software_version="1"
        )
        answer = wire.ask(bootstrap.split(",")[0], *api, request)
        supported = {it.name: (it.min_version, it.max_version) for it in answer.supported_features}
        finalized = {it.name: it.max_version_level for it in answer.finalized_features}
        return supported, finalized

    supported, finalized = features(4)
    assert supported["transaction.version"] == (0, 2)
    assert finalized["transaction.version"] == 2
    supported, finalized = features(3)
    assert "transaction.version" not in supported, "older clients fail on a level of 0"
    assert finalized["transaction.version"] == 2


def test_leaders_add_partitions_and_each_transaction_has_its_epoch(second: Second) -> None:
    assert second.send(0, PRODUCE_WITHOUT_ADDING) == ABORTABLE
    assert second.finish(True) == (48, -1, -1), "no transaction is open"
    assert second.send(0) == 0
    assert second.described() == (0, "Ongoing", 1)
    assert second.send(1, PRODUCE_WITHOUT_ADDING) == 0, "the partition was added"
    assert second.ends() == (0, 2)
    first = second.epoch
    second.end_epoch(True)
    wait_until(lambda: second.ends() == (3, 3), "the marker is written")
    wait_until(
        lambda: second.described() == (0, "CompleteCommit", 0), "every partition has its marker"
    )
    assert last_of(second) == (second.epoch, -1), "sequences of the former epoch are forgotten"
    committed = (0, second.producer_id, second.epoch)
    assert second.finish(True, producer_epoch=first) == committed, "asked again"
    assert second.finish(False, producer_epoch=first)[0] == 48, "the outcome stands"
    assert second.send(2, epoch=first) == 47, "a record that comes late"
    assert second.send(0) == 0, "sequences begin anew"
    assert second.finish(True, producer_epoch=first)[0] == 90, "another transaction is open"
    assert second.finish(True, producer_id=second.producer_id + 1_000)[0] == 49
    second.end_epoch(False)
    wait_until(lambda: second.ends() == (5, 5), "the marker is written")
    second.end_epoch(False)
    assert consumed(second.bootstrap, second.topic, 2, "read_committed") == [b"v", b"v"]


def test_the_next_transaction_begins_while_markers_are_written(second: Second) -> None:
    for _ in range(30):
        assert second.send(0) == 0, "a marker that comes meanwhile refuses no record"
        second.end_epoch(True)
    wait_until(lambda: second.ends() == (60, 60), "the markers are written")


def test_a_new_instance_aborts_an_open_transaction(second: Second) -> None:
    first = second.producer_id, second.epoch
    assert second.send(0) == 0
    assert second.init() == (first[0], first[1] + 2)
    wait_until(lambda: second.ends() == (2, 2), "the marker is written")
    assert second.send(1) == 47
    assert second.finish(True)[0] == 90


def test_offsets_are_added_with_their_commit(second: Second) -> None:
    group = f"{second.name}-group"
    at = second.find(group, 0)
    offset = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "m"}
    topics = [{"name": second.topic, "partitions": [offset]}]

    def commit(version: int) -> int:
        fields = {**second.producer, "group_id": group, "topics": topics}
        api = (TXN_OFFSET_COMMIT[0], version)
        answer = second.ask(at, api, **fields, generation_id=-1, member_id="")
        return int(answer.topics[0].partitions[0].error_code)

    def fetched(is_stable: bool) -> tuple[int, int]:
        asked = [{"name": second.topic, "partition_indexes": [0]}]
        answer = second.ask(
            at, OFFSET_FETCH, group_id=group, topics=asked, require_stable=is_stable
        )
        found = answer.topics[0].partitions[0]
        return int(found.error_code), found.committed_offset

    assert settled(lambda: commit(4)) == ABORTABLE, "the group was not added"
    assert settled(lambda: commit(5)) == 0
    assert (fetched(True), fetched(False)) == ((88, -1), (0, -1))
    second.end_epoch(True)
    wait_until(lambda: fetched(True) == (0, 5), "the offset counts")


@pytest.mark.kafka_oracle
@pytest.mark.usefixtures("kafka_libs")
def test_javas_producer_takes_an_epoch_for_each_transaction(our_cluster: LocalCluster) -> None:
    topic, count = new_topic(our_cluster.bootstrap), 400
    where = ("--bootstrap-server", our_cluster.bootstrap)
    size = ("--num-records", str(count), "--record-size", "10", "--throughput", "500")
    to = ("--producer-props", f"bootstrap.servers={our_cluster.bootstrap}")
    name = f"version-2-{next(NAMES)}"
    often = ("--transactional-id", name, "--transaction-duration-ms", "20")
    written = run_tool(PERFORMANCE, "--topic", topic, *size, *to, *often)
    assert written.returncode == 0, written.stderr
    level = ("--isolation-level", "read_committed", "--from-beginning")
    limits = ("--max-messages", str(count), "--timeout-ms", "20000")
    read = run_tool(CONSUMER, *where, "--topic", topic, *level, *limits)
    assert len(read.stdout.splitlines()) == count, read.stderr
    told = run_tool(TRANSACTIONS, *where, "describe", "--transactional-id", name)
    found = re.search(r"^\d+\s+\S+\s+\d+\s+(\d+)\s+CompleteCommit", told.stdout, re.MULTILINE)
    assert found, told.stdout + told.stderr
    assert int(found[1]) > 1, "each transaction has an epoch"
