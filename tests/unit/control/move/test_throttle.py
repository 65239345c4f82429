"""Throttles: Kafka's rule, and that others' throttles stay."""

from dataclasses import replace

from control.model.ids import TopicPartition
from control.move.throttle import (
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
    ThrottleRecord,
    broker_changes_to_remove,
    broker_changes_to_set,
    list_bytes,
    plan_throttle,
    topic_changes,
)
from control.operations.reassignment.producer_traffic import auto_rate
from planner.proposal import PartitionChange


def change(partition: int, before: tuple[int, ...], after: tuple[int, ...]) -> PartitionChange:
    return PartitionChange(
        topic="foo", partition=partition, before=before, after=after, size_bytes=6 << 30
    )


MOVE = change(0, (101, 102), (102, 103))


def planned(
    brokers: dict[int, dict[str, str | None]] | None = None,
    topics: dict[str, dict[str, str | None]] | None = None,
) -> ThrottleRecord:
    return plan_throttle(
        [MOVE], rate=5000, broker_configs=brokers or {}, topic_configs=topics or {}
    )


def set_lists(
    record: ThrottleRecord, now: dict[str, dict[str, str | None]]
) -> dict[str, dict[str, str | None]]:
    return topic_changes(record.entries, record.entries, now)


def test_the_example_of_the_kip() -> None:
    record = planned()
    assert record.brokers == (101, 102, 103)
    assert set_lists(record, {}) == {
        "foo": {LEADER_REPLICAS: "0:101,0:102", FOLLOWER_REPLICAS: "0:103"}
    }
    assert broker_changes_to_set(record, {})[103] == dict.fromkeys(RATES, "5000")
    assert ThrottleRecord.parse(record.document()) == record


def test_all_that_was_set_is_removed() -> None:
    record = planned()
    topics = set_lists(record, {})
    assert topic_changes(record.entries, {}, topics) == {
        "foo": {LEADER_REPLICAS: None, FOLLOWER_REPLICAS: None}
    }
    brokers = broker_changes_to_set(record, {})
    assert broker_changes_to_remove(record, brokers) == {
        broker: dict.fromkeys(RATES, None) for broker in (101, 102, 103)
    }


def test_entries_of_others_stay() -> None:
    now: dict[str, dict[str, str | None]] = {"foo": {LEADER_REPLICAS: "7:101,0:101"}}
    record = planned(topics=now)
    wanted = set_lists(record, now)["foo"]
    assert wanted[LEADER_REPLICAS] == "7:101,0:101,0:102"
    left = topic_changes(record.entries, {}, {"foo": wanted})["foo"]
    assert left == {LEADER_REPLICAS: "7:101,0:101", FOLLOWER_REPLICAS: None}


def test_a_star_and_a_rate_of_somebody_else_stay() -> None:
    star: dict[str, dict[str, str | None]] = {"foo": {LEADER_REPLICAS: "*"}}
    assert LEADER_REPLICAS not in set_lists(planned(topics=star), star)["foo"]
    assert planned(brokers={102: {LEADER_RATE: "1"}}).brokers == (101, 103)
    changed: dict[int, dict[str, str | None]] = {101: dict.fromkeys(RATES, "77")}
    assert 101 not in broker_changes_to_remove(planned(), changed)
    changed[102] = {LEADER_RATE: "77"}
    set_now = broker_changes_to_set(planned(), changed)
    assert 101 not in set_now
    assert LEADER_RATE not in set_now[102]


def test_moves_without_data_need_no_throttle() -> None:
    reorder = change(0, (1, 2), (2, 1))
    record = plan_throttle([reorder], rate=1, broker_configs={}, topic_configs={})
    assert (record.brokers, record.entries) == ((), {})


def test_the_automatic_rate_takes_ten_minutes_within_bounds() -> None:
    assert auto_rate([MOVE], {}) == (6 << 30) // 600
    assert auto_rate([], {}) == 10 << 20
    assert auto_rate([change(p, (1,), (2,)) for p in range(100)], {}) == 100 << 20


def test_listed_is_what_is_wanted_of_ours_beside_what_is_there_of_others() -> None:
    moves = [MOVE, change(1, (101, 102), (101, 103)), change(10, (101, 102), (101, 103))]
    record = plan_throttle(moves, rate=5000, broker_configs={}, topic_configs={})
    first, last = TopicPartition("foo", 0), TopicPartition("foo", 10)
    wanted = record.to_list([last, TopicPartition("bar", 0)], [first, last])
    assert wanted == {
        "foo": {LEADER_REPLICAS: ("10:101", "10:102"), FOLLOWER_REPLICAS: ("0:103", "10:103")}
    }
    now = {"foo": {**set_lists(record, {})["foo"], LEADER_REPLICAS: "7:101,0:101,1:101,10:102"}}
    assert topic_changes(record.entries, wanted, now) == {
        "foo": {LEADER_REPLICAS: "7:101,10:102,10:101", FOLLOWER_REPLICAS: "0:103,10:103"}
    }
    settled = {"foo": {LEADER_REPLICAS: "10:102,10:101,7:101", FOLLOWER_REPLICAS: "10:103,0:103"}}
    assert topic_changes(record.entries, wanted, dict(settled)) == {}
    assert record.of_topics(["bar"]).entries == {}


def test_a_list_is_as_long_as_kafka_counts_it() -> None:
    moves = [change(n, (101, 102), (101, 103)) for n in range(12)]
    lists = set_lists(plan_throttle(moves, rate=5000, broker_configs={}, topic_configs={}), {})[
        "foo"
    ]
    assert list_bytes(moves) == {"foo": max(len(value or "") for value in lists.values())}
    assert list_bytes([change(0, (1, 2), (2, 1))]) == {}


def test_every_rate_that_was_ours_is_removed_after_a_crash_between_two() -> None:
    record = replace(planned(), rate=9000, former_rates=(5000, 7000))
    assert ThrottleRecord.parse(record.document()) == record
    now: dict[int, dict[str, str | None]] = {
        101: dict.fromkeys(RATES, "5000"),
        102: dict.fromkeys(RATES, "9000"),
        103: dict.fromkeys(RATES, "8000"),
    }
    assert broker_changes_to_remove(record, now) == {
        broker: dict.fromkeys(RATES, None) for broker in (101, 102)
    }
