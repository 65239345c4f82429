"""Consumer groups as real clients and Kafka's own tools see them: on ours, and on Kafka.

Every test that takes `bootstrap` runs against both; what it asserts is therefore Kafka's
behaviour, not only what we believe it to be.
"""

from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition

from broker.coordinator.records import (
    CommittedOffset,
    GroupSnapshot,
    OffsetKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from tests.contract.group_clients import (
    committed,
    confluent_consumer,
    create_topic,
    members,
    produce,
    read_aiokafka,
    read_confluent,
    read_kafka_python,
    read_offsets_topic,
    unique,
)
from tests.contract.operations_rig import variants
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import run_tool
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
OFFSETS_FORMATTER = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
GROUP_FORMATTER = "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter"

OUR_VALUE_VERSION = b"\x00\x03"
"""Kafka from 4.1 on writes version 4, which older ones cannot read."""

Reader = Callable[[str, str, str, int], set[tuple[int, int]]]


@pytest.mark.parametrize(
    "read", [read_confluent, read_aiokafka, read_kafka_python], ids=lambda read: read.__name__
)
def test_a_group_reads_everything_and_goes_on_where_it_stopped(
    bootstrap: str, read: Reader
) -> None:
    topic, group = create_topic(bootstrap, 3), unique("readers")
    first = produce(bootstrap, topic, 30)
    assert read(bootstrap, group, topic, 30) == first
    ends = {p: max(o for q, o in first if q == p) + 1 for p, _ in first}
    assert committed(bootstrap, group, topic, 3) == ends
    second = produce(bootstrap, topic, 12)
    assert read(bootstrap, group, topic, 12) == second


@pytest.mark.parametrize("strategy", variants(["range", "cooperative-sticky"]))
def test_two_members_share_and_the_survivor_takes_over(bootstrap: str, strategy: str) -> None:
    topic, group = create_topic(bootstrap, 4), unique("pair")
    overrides = {"partition.assignment.strategy": strategy}
    with members(2, bootstrap, group, topic, **overrides) as pair:
        wait_until(lambda: all(len(m.assigned) == 2 for m in pair), "no even assignment")
        landed = produce(bootstrap, topic, 40)
        wait_until(lambda: {*pair[0].read, *pair[1].read} == landed, "records are missing")
        assert not set(pair[0].read) & set(pair[1].read)
        pair[0].close()
        more = produce(bootstrap, topic, 40)
        wait_until(lambda: more <= set(pair[1].read), "the survivor does not read on")


def test_a_static_member_restarts_without_a_rebalance(bootstrap: str) -> None:
    topic, group = create_topic(bootstrap, 2), unique("static")
    identity = {"group.instance.id": "one", "session.timeout.ms": 20000}
    first = confluent_consumer(bootstrap, group, **identity)
    first.subscribe([topic])
    wait_until(lambda: first.poll(0.1) is None and len(first.assignment()) == 2, "no assignment")
    before = first.memberid()
    first.close()
    second = confluent_consumer(bootstrap, group, **identity)
    second.subscribe([topic])
    wait_until(lambda: second.poll(0.1) is None and len(second.assignment()) == 2, "not back")
    assert second.memberid() != before
    second.close()


def test_commits_carry_metadata_and_leader_epoch(bootstrap: str) -> None:
    topic, group = create_topic(bootstrap, 1), unique("simple")
    consumer = confluent_consumer(bootstrap, group)
    wanted = TopicPartition(topic, 0, 5, metadata="héllo", leader_epoch=0)
    consumer.commit(offsets=[wanted], asynchronous=False)
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
    consumer.close()
    assert (found.offset, found.metadata, found.leader_epoch) == (5, "héllo", 0)


def test_kafkas_tool_describes_resets_and_deletes(bootstrap: str, kafka_libs: object) -> None:
    topic, group = create_topic(bootstrap, 2), unique("tooled")
    produce(bootstrap, topic, 20)
    read_confluent(bootstrap, group, topic, 20)
    server = ("--bootstrap-server", bootstrap)
    listed = run_tool(GROUPS_TOOL, *server, "--list", "--state", "Empty")
    assert any(line.split()[:1] == [group] for line in listed.stdout.splitlines()), listed
    state = run_tool(GROUPS_TOOL, *server, "--describe", "--state", "--group", group)
    assert "Empty" in state.stdout, state.stderr
    described = run_tool(GROUPS_TOOL, *server, "--describe", "--group", group)
    rows = [line.split() for line in described.stdout.splitlines() if topic in line]
    assert [row[5] for row in rows] == ["0", "0"], described.stdout
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    done = run_tool(GROUPS_TOOL, *server, *reset)
    assert done.returncode == 0, done.stderr
    assert committed(bootstrap, group, topic, 2) == {0: 0, 1: 0}
    forget = ("--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert "Successful" in run_tool(GROUPS_TOOL, *server, *forget).stdout
    assert committed(bootstrap, group, topic, 2) == {1: 0}
    deleted = run_tool(GROUPS_TOOL, *server, "--delete", "--group", group)
    assert "was successful" in deleted.stdout, deleted.stderr
    gone = run_tool(GROUPS_TOOL, *server, "--describe", "--group", group)
    assert f"Group {group} not found." in gone.stdout + gone.stderr


def test_kafkas_tool_sees_the_members_and_spares_a_running_group(
    bootstrap: str, kafka_libs: object
) -> None:
    topic, group = create_topic(bootstrap, 2), unique("running")
    produce(bootstrap, topic, 4)
    server = ("--bootstrap-server", bootstrap)
    with members(2, bootstrap, group, topic) as pair:
        wait_until(lambda: all(len(m.assigned) == 1 for m in pair), "no assignment")
        wait_until(lambda: sum(len(m.read) for m in pair) == 4, "not read")
        shown = run_tool(
            GROUPS_TOOL, *server, "--describe", "--members", "--verbose", "--group", group
        )
        rows = [line for line in shown.stdout.splitlines() if line.startswith(group)]
        assert len(rows) == 2, shown.stdout + shown.stderr
        assert all(f"{topic}(" in row or f"{topic}:" in row for row in rows), shown.stdout
        reset = ("--reset-offsets", "--group", group, "--all-topics", "--to-latest", "--execute")
        refused = run_tool(GROUPS_TOOL, *server, *reset)
        assert "inactive" in refused.stdout + refused.stderr
        deleted = run_tool(GROUPS_TOOL, *server, "--delete", "--group", group)
        assert "not empty" in deleted.stdout + deleted.stderr


def test_the_offsets_topic_holds_kafkas_records(bootstrap: str) -> None:
    topic, group = create_topic(bootstrap, 1), unique("recorded")
    produce(bootstrap, topic, 3)
    read_confluent(bootstrap, group, topic, 3)
    # The last record is of a member that left; nobody waits for the answer to its leaving.
    wait_until(lambda: _records_of(bootstrap, group)[1][-1].members == (), "the group is empty")
    offsets, groups = _records_of(bootstrap, group)
    assert offsets[-1].offset == 3
    assert groups[-1].protocol_type == "consumer"
    assert any(snapshot.members for snapshot in groups)


def _records_of(bootstrap: str, group: str) -> tuple[list[CommittedOffset], list[GroupSnapshot]]:
    """The group's records, decoded, and found equal to what our encoder would write."""
    offsets: list[CommittedOffset] = []
    groups: list[GroupSnapshot] = []
    for message in read_offsets_topic(bootstrap):
        encoded_key, value = message.key(), message.value()
        if encoded_key is None or value is None:
            continue
        key = decode_key(encoded_key)
        if isinstance(key, OffsetKey) and key.group_id == group:
            offset = decode_offset_value(value)
            assert encode_offset_key(key) == encoded_key
            if value[:2] == OUR_VALUE_VERSION:
                assert encode_offset_value(offset) == value
            offsets.append(offset)
        elif key == group:
            snapshot = decode_group_value(group, value)
            assert (encode_group_key(group), encode_group_value(snapshot)) == (encoded_key, value)
            groups.append(snapshot)
    return offsets, groups


@pytest.mark.parametrize("formatter", [OFFSETS_FORMATTER, GROUP_FORMATTER])
def test_kafkas_formatters_read_the_offsets_topic(
    bootstrap: str, kafka_libs: object, formatter: str
) -> None:
    topic, group = create_topic(bootstrap, 1), unique("formatted")
    produce(bootstrap, topic, 3)
    read_confluent(bootstrap, group, topic, 3)
    found = read_offsets_topic(bootstrap)
    (partition,) = {m.partition() for m in found if group.encode() in (m.key() or b"")}
    # Of this partition alone: what other groups write meanwhile, elsewhere or after, is no matter.
    count = sum(message.partition() == partition for message in found)
    shown = run_tool(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", bootstrap, "--topic", "__consumer_offsets"),
        *("--partition", str(partition), "--offset", "earliest", "--max-messages", str(count)),
        *("--formatter", formatter, "--timeout-ms", "60000"),
    )
    lines = [line for line in shown.stdout.splitlines() if group in line]
    assert lines, shown.stdout + shown.stderr
    expected = '"offset":3' if formatter == OFFSETS_FORMATTER else '"protocolType":"consumer"'
    assert any(expected in line for line in lines), lines


@pytest.mark.thorough
def test_the_coordinator_dies_and_the_group_goes_on(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with LocalCluster(tmp_path_factory.mktemp("failover")) as cluster:
        topic, group = create_topic(cluster.bootstrap, 4), unique("survivors")
        first = produce(cluster.bootstrap, topic, 40)
        with members(2, cluster.bootstrap, group, topic) as pair:
            wait_until(lambda: {*pair[0].read, *pair[1].read} == first, "not read")
            wait_until(
                lambda: sum(committed(cluster.bootstrap, group, topic, 4).values()) == 40,
                "not committed",
            )
            coordinator = _coordinator(cluster, group)
            cluster.kill(coordinator)
            alive = ",".join(
                f"127.0.0.1:{port}" for id_, port in cluster.ports.items() if id_ != coordinator
            )
            second = produce(alive, topic, 40)
            wait_until(lambda: second <= {*pair[0].read, *pair[1].read}, "does not go on")
            wait_until(
                lambda: sum(committed(alive, group, topic, 4).values()) == 80, "commits are lost"
            )
        assert _coordinator(cluster, group, ask=next(iter(cluster.processes))) != coordinator


def _coordinator(cluster: LocalCluster, group: str, *, ask: int = 101) -> int:
    from broker.protocol import codec

    message = codec.build_request(10, 4, key_type=0, coordinator_keys=[group])
    answer = cluster.ask(ask, 10, 4, message)
    return int(answer.coordinators[0].node_id)
