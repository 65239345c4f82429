"""Topology files: what is read, and how a wrong one is named."""

from typing import Any

import pytest

from planner.topology import TopologyError, parse_topology, topology_document

GOOD: dict[str, Any] = {
    "brokers": [{"id": 101, "rack": "a"}, {"id": 102}],
    "partitions": [{"topic": "t", "partition": 0, "replicas": [101, 102], "size": 123456}],
}


def test_a_file_is_read_and_written_alike() -> None:
    topology = parse_topology(GOOD)
    assert topology.broker_ids == (101, 102)
    assert topology.brokers[1].rack is None
    written = topology_document(topology)
    assert written["partitions"] == GOOD["partitions"]
    assert parse_topology(written) == topology


def test_removed_brokers_may_be_named() -> None:
    assert parse_topology({**GOOD, "remove_brokers": [102]}).remove_brokers == (102,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brokers": "all"}, "brokers must be a list"),
        ({"more": 1}, "unknown keys"),
        ({"brokers": [{"id": "101"}]}, "brokers[0].id must be a whole number"),
        ({"brokers": [{"id": 1}, {"id": 1}], "partitions": []}, "broker 1 is listed twice"),
        ({"remove_brokers": [9]}, "broker 9 is not among the brokers"),
        ({"partitions": [{"topic": "", "partition": 0, "replicas": [101]}]}, "partitions[0].topic"),
        ({"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}, "(t-0): replicas is em"),
        ({"partitions": [{"topic": "t", "partition": 0, "replicas": [7]}]}, "replica 7 is not"),
        (
            {"partitions": [{"topic": "t", "partition": 0, "replicas": [101, 101]}]},
            "names a broker twice",
        ),
        ({"partitions": [*GOOD["partitions"], *GOOD["partitions"]]}, "partitions[1] (t-0): listed"),
        (
            {"partitions": [{"topic": "t", "partition": 0, "replicas": [101], "size": 1.5}]},
            "partitions[0].size must be a whole number",
        ),
    ],
)
def test_a_wrong_entry_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(TopologyError) as error:
        parse_topology({**GOOD, **change})
    assert words in str(error.value)


@pytest.mark.parametrize(("size", "is_read"), [(2**53, True), (2**53 + 1, False), (2**64, False)])
def test_a_number_that_would_be_rounded_is_refused(size: int, is_read: bool) -> None:
    document = {**GOOD, "partitions": [{**GOOD["partitions"][0], "size": size}]}
    if is_read:
        assert parse_topology(document).partitions[0].size_bytes == size
        return
    with pytest.raises(TopologyError, match=rf"size must be .* to {2**53}, not {size}"):
        parse_topology(document)


def test_sizes_that_no_sum_holds_are_refused() -> None:
    many = [{**GOOD["partitions"][0], "partition": n, "size": 2**53} for n in range(257)]
    with pytest.raises(TopologyError, match=f"all replicas together hold {2**54 * 257} bytes"):
        parse_topology({**GOOD, "partitions": many})
