"""Groups of the consumer protocol (KIP-848) by single requests and by clients: on ours, on Kafka.

A script is a list of steps, one a line; what is expected is what Kafka answers.
"""

import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType
from confluent_kafka.admin import AdminClient

from broker.protocol import codec
from tests.contract.group_clients import create_topic, position_of, produce, unique
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import run_tool
from tests.support.node_cluster import NodeCluster
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.wire import ask, metadata

HEARTBEAT, DESCRIBE, COMMIT, FETCH, METADATA = (68, 1), (69, 1), (8, 9), (9, 9), (3, 12)
PARTITIONS: Final = 4
TIMEOUT_MS: Final = 60_000
LOADING: Final = frozenset({"coordinator_load_in_progress", "coordinator_not_available",
                            "not_coordinator"})  # fmt: skip
Told = tuple[str, int, tuple[int, ...] | None]
"""Error, epoch, and partitions where the answer has any."""


@pytest.fixture(params=[
    pytest.param("our_cluster", id="ours"),
    pytest.param("kafka_cluster", id="kafka", marks=pytest.mark.kafka_oracle),
])  # fmt: skip
def at(request: pytest.FixtureRequest) -> str:
    cluster: NodeCluster = request.getfixturevalue(request.param)
    return cluster.bootstrap


@dataclass
class Group:
    """A group that its test alone uses, and a topic of four partitions."""

    bootstrap: str
    topic: str
    name: str = field(default_factory=lambda: unique("consumers"))
    members: dict[str, str] = field(default_factory=dict)
    alive: str = ""
    """A broker that answers who coordinates."""

    def __post_init__(self) -> None:
        asked = codec.build_request(*METADATA, topics=[{"name": self.topic}])
        self.alive = self.bootstrap.split(",")[0]
        (told,) = ask(self.alive, *METADATA, asked).topics
        self.topic_id = told.topic_id

    @property
    def coordinator(self) -> str:
        found: list[str] = []

        def is_found() -> bool:
            request = codec.build_request(10, 4, key_type=0, coordinator_keys=[self.name])
            (answer,) = ask(self.alive, 10, 4, request).coordinators
            found.append(f"{answer.host}:{answer.port}")
            return bool(answer.error_code.name == "none")

        wait_until(is_found, "a coordinator")
        return found[-1]

    def ask(self, api: tuple[int, int], **fields: Any) -> Any:
        return ask(self.coordinator, *api, codec.build_request(*api, **fields))

    def id_of(self, label: str) -> str:
        return self.members.setdefault(label, str(uuid.uuid4()) if label else "")

    def beat(self, label: str, epoch: int, **told: Any) -> Told:
        fields = _fields(self.topic_id, **told)
        answers: list[Any] = []

        def is_answered() -> bool:
            request = {"group_id": self.name, "member_id": self.id_of(label), "member_epoch": epoch}
            answers.append(self.ask(HEARTBEAT, **request, **fields))
            return answers[-1].error_code.name not in LOADING

        wait_until(is_answered, "an answer")
        answer = answers[-1]
        parts = None
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            parts = tuple(sorted(p for topic in topics for p in topic.partitions))
        return answer.error_code.name, answer.member_epoch, parts

    def join(self, label: str, **told: Any) -> Told:
        return self.beat(label, 0, topics=[self.topic], owned=[], timeout=TIMEOUT_MS, **told)

    def first(self, label: str, **told: Any) -> int:
        """A first member has everything at once; its epoch."""
        answers = [self.join(label, **told)]
        whole = {"topics": [self.topic], "owned": [], "timeout": TIMEOUT_MS, **told}

        def has_all() -> bool:
            """Kafka's coordinator may hear of a new topic after its brokers."""
            if answers[-1][2] != (0, 1, 2, 3):
                answers.append(self.beat(label, answers[-1][1], **whole))
            assert answers[-1][0] == "none", answers[-1]
            return answers[-1][2] == (0, 1, 2, 3)

        wait_until(has_all, "all partitions")
        return answers[-1][1]

    def commit(self, label: str, epoch: int) -> str:
        topics = [{"name": self.topic, "partitions": [{"partition_index": 0, "committed_offset": 3,
                                                       "committed_metadata": ""}]}]  # fmt: skip
        answer = self.ask(
            COMMIT, group_id=self.name, member_id=self.id_of(label), topics=topics,
            generation_id_or_member_epoch=epoch, group_instance_id=None,
        )  # fmt: skip
        return str(answer.topics[0].partitions[0].error_code.name)

    def fetch(self, label: str | None, epoch: int) -> str:
        member = None if label is None else self.id_of(label)
        group = {"group_id": self.name, "member_id": member, "member_epoch": epoch, "topics": None}
        return str(self.ask(FETCH, groups=[group], require_stable=False).groups[0].error_code.name)


def _fields(topic_id: uuid.UUID, **told: Any) -> dict[str, Any]:
    owned = told.get("owned")
    lists = (
        None if owned is None else [{"topic_id": topic_id, "partitions": owned}] if owned else []
    )
    return {
        "instance_id": told.get("instance"), "rack_id": None,
        "rebalance_timeout": told.get("timeout", -1), "topic_partitions": lists,
        "subscribed_topic_names": told.get("topics"), "subscribed_topic_regex": told.get("regex"),
        "server_assignor": told.get("assignor"),
    }  # fmt: skip


@pytest.fixture
def group(at: str) -> Group:
    return Group(at, create_topic(at, PARTITIONS))


@pytest.mark.parametrize(
    ("label", "epoch", "told", "error"),
    [
        ("", 0, {"topics": ["t"], "owned": [], "timeout": 1}, "invalid_request"),
        ("a", 0, {"topics": ["t"], "owned": []}, "invalid_request"),
        ("a", 0, {"topics": ["t"], "timeout": 1}, "invalid_request"),
        ("a", 0, {"topics": ["t"], "owned": [1], "timeout": 1}, "invalid_request"),
        ("a", 0, {"owned": [], "timeout": 1}, "invalid_request"),
        ("a", -3, {}, "invalid_request"),
        ("a", -2, {}, "invalid_request"),
        ("a", 0, {"topics": ["t"], "owned": [], "timeout": 1, "instance": ""}, "invalid_request"),
        ("a", 0, {"topics": ["t"], "owned": [], "timeout": 1, "assignor": "x"},
         "unsupported_assignor"),
        ("a", 0, {"regex": "(", "owned": [], "timeout": 1}, "invalid_regular_expression"),
        ("a", 1, {}, "group_id_not_found"),
        ("a", -1, {}, "group_id_not_found"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(
    group: Group, label: str, epoch: int, told: dict[str, Any], error: str
) -> None:
    assert group.beat(label, epoch, **told)[0] == error


@pytest.mark.parametrize("name", ["group_id", "member_id", "instance_id", "rack_id", "regex"])
def test_a_name_that_no_record_holds_is_refused_and_others_go_on(
    our_cluster: LocalCluster, name: str
) -> None:
    group = Group(our_cluster.bootstrap, create_topic(our_cluster.bootstrap, PARTITIONS))
    first = group.first("a")
    asked = {"group_id": group.name, "member_id": "m", "member_epoch": 0}
    told = _fields(group.topic_id, topics=[group.topic], owned=[], timeout=TIMEOUT_MS)
    odd = {"subscribed_topic_regex" if name == "regex" else name: "é" * 20_000}
    answer = group.ask(HEARTBEAT, **{**asked, **told, **odd})
    assert answer.error_code.name == "invalid_request"
    assert group.beat("a", first) == ("none", first, None)


def test_members_share_give_up_and_take_over(group: Group) -> None:
    first = group.first("a")
    assert group.beat("a", first) == ("none", first, None)
    assert group.join("b") == ("none", first + 1, ())
    error, epoch, kept = group.beat("a", first, owned=[0, 1, 2, 3])
    assert (error, epoch, len(kept or ())) == ("none", first, 2)
    assert group.beat("b", first + 1) == ("none", first + 1, None), "nothing is given up yet"
    assert group.beat("a", first, owned=[*(kept or ())])[:2] == ("none", first + 1)
    rest = tuple(sorted({0, 1, 2, 3} - set(kept or ())))
    assert group.beat("b", first + 1) == ("none", first + 1, rest)
    assert group.beat("a", first + 6)[0] == "fenced_member_epoch"
    assert group.beat("a", first)[0] == "fenced_member_epoch", "it tells nothing of what it owns"
    lost = group.beat("a", first, owned=[*(kept or ())])
    assert lost[:2] == ("none", first + 1), "an answer was lost"
    assert group.beat("c", first + 1)[0] == "unknown_member_id"
    assert group.beat("a", -1) == ("none", -1, None)
    assert group.beat("a", first + 1)[0] == "unknown_member_id"
    assert group.beat("b", first + 1, owned=[*rest]) == ("none", first + 2, (0, 1, 2, 3))


def test_a_static_member_keeps_its_seat(group: Group) -> None:
    first = group.first("a", instance="i")
    assert group.join("b", instance="i")[0] == "unreleased_instance_id"
    assert group.beat("a", -2, instance="i") == ("none", -2, None)
    assert group.join("b", instance="i") == ("none", first, (0, 1, 2, 3))
    assert group.beat("a", first, instance="i")[0] == "fenced_instance_id"


def test_offsets_ask_for_the_epoch(group: Group) -> None:
    assert group.commit("", -1) == "none", "a tool may, while there are no members"
    first = group.first("a")
    assert group.commit("a", first) == "none"
    assert group.commit("a", first - 1) == "stale_member_epoch"
    assert group.commit("b", first) == "unknown_member_id"
    assert group.commit("", -1) == "unknown_member_id"
    assert group.fetch(None, -1) == "none"
    assert group.fetch("a", first) == "none"
    assert group.fetch("a", first + 4) == "stale_member_epoch"
    assert group.fetch("b", first) == "unknown_member_id"


def test_a_group_is_described_by_its_own_request(group: Group) -> None:
    first = group.first("a", assignor="range")
    (told,) = group.ask(
        DESCRIBE, group_ids=[group.name], include_authorized_operations=False
    ).groups
    assert (told.error_code.name, told.group_state) == ("none", "Stable")
    assert (told.group_epoch, told.assignment_epoch, told.assignor_name) == (first, first, "range")
    (member,) = told.members
    (has,) = member.assignment.topic_partitions
    assert (has.topic_name, has.partitions) == (group.topic, (0, 1, 2, 3))
    assert member.target_assignment.topic_partitions[0].partitions == (0, 1, 2, 3)
    assert (member.member_epoch, member.subscribed_topic_names) == (first, (group.topic,))
    (classic,) = group.ask((15, 6), groups=[group.name], include_authorized_operations=False).groups
    assert (classic.error_code.name, classic.group_state) == ("group_id_not_found", "Dead")
    missing = group.ask(DESCRIBE, group_ids=["nobody"], include_authorized_operations=False)
    assert missing.groups[0].error_code.name in {"group_id_not_found", *LOADING}


def test_more_partitions_are_assigned_without_a_request_for_it(group: Group) -> None:
    epoch = group.first("a")
    topics = [{"name": group.topic, "count": 6, "assignments": None}]
    for address in group.bootstrap.split(","):
        more = codec.build_request(37, 3, topics=topics, timeout=30_000, validate_only=False)
        if ask(address, 37, 3, more).results[0].error_code.name == "none":
            break

    def has_all() -> bool:
        nonlocal epoch
        told = group.beat("a", epoch, topics=[group.topic], owned=[], timeout=TIMEOUT_MS)
        epoch = told[1]
        return len(told[2] or ()) == 6

    wait_until(has_all, "all six partitions", timeout_s=90.0)


def members_of(bootstrap: str, name: str) -> tuple[ConsumerGroupState, list[int]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})  # gone, it would never answer
    found = admin.describe_consumer_groups([name])[name].result(WAIT_S)
    assert found.type is ConsumerGroupType.CONSUMER
    return found.state, sorted(len(it.assignment.topic_partitions) for it in found.members)


@pytest.fixture
def pair(group: Group) -> Iterator[list[Consumer]]:
    made = [
        Consumer({
            "bootstrap.servers": group.bootstrap, "group.id": group.name,
            "group.protocol": "consumer", "auto.offset.reset": "earliest", "log_level": 0,
        })
        for _ in range(2)
    ]  # fmt: skip
    yield made
    for consumer in made:
        consumer.close()


def test_two_consumers_share_by_name_and_by_pattern(group: Group, pair: list[Consumer]) -> None:
    landed = produce(group.bootstrap, group.topic, 40)
    read: set[tuple[int, int]] = set()

    def poll(*, until_s: float = 0.1) -> None:
        for consumer in pair:
            message = consumer.poll(until_s)
            if message is not None and message.error() is None:
                read.add(position_of(message))

    pair[0].subscribe([group.topic])
    pair[1].subscribe([f"^{group.topic}$"])

    def is_shared() -> bool:
        poll()
        return members_of(group.bootstrap, group.name) == (ConsumerGroupState.STABLE, [2, 2])

    wait_until(is_shared, "two partitions each")

    def are_read() -> bool:
        poll()
        return landed <= read

    wait_until(are_read, "all records")
    pair.pop().close()

    def has_all() -> bool:
        poll()
        return len(pair[0].assignment()) == PARTITIONS

    wait_until(has_all, "all partitions")
    pair.pop().close()
    wait_until(
        lambda: members_of(group.bootstrap, group.name) == (ConsumerGroupState.EMPTY, []), "empty"
    )
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    admin.delete_consumer_groups([group.name])[group.name].result(WAIT_S)


@pytest.mark.kafka_oracle
def test_the_console_consumer_and_the_tool_of_groups(our_cluster: LocalCluster) -> None:
    topic, name = create_topic(our_cluster.bootstrap, 2), unique("console")
    produce(our_cluster.bootstrap, topic, 6)
    read = _tool(
        "consumer.ConsoleConsumer", "--bootstrap-server", our_cluster.bootstrap, "--topic", topic,
        "--group", name, "--from-beginning", "--max-messages", "6",
        "--consumer-property", "group.protocol=consumer", "--timeout-ms", "60000",
    )  # fmt: skip
    assert len(read.stdout.splitlines()) == 6, read.stderr
    told = _tool(
        "consumer.group.ConsumerGroupCommand", "--bootstrap-server", our_cluster.bootstrap,
        "--describe", "--group", name, "--state",
    )  # fmt: skip
    assert f"{name} " in told.stdout
    assert "Empty" in told.stdout


@pytest.mark.kafka_oracle
def test_kafka_reads_the_records_of_a_group(our_cluster: LocalCluster) -> None:
    group = Group(our_cluster.bootstrap, create_topic(our_cluster.bootstrap, PARTITIONS))
    group.first("a")
    group.beat("b", 0, regex=f"{group.topic}.*", owned=[], timeout=TIMEOUT_MS)
    files = sorted(our_cluster.base_dir.glob("broker-*/__consumer_offsets-*/*.log"))
    dumped = run_tool(
        "kafka.tools.DumpLogSegments", "--offsets-decoder",
        "--files", ",".join(map(str, files)),
    )  # fmt: skip
    assert dumped.returncode == 0, dumped.stderr
    told = [line for line in dumped.stdout.splitlines() if group.name in line]
    kinds = {kind for kind in (3, 5, 6, 7, 8, 16) for line in told if f'"type":"{kind}"' in line}
    assert kinds == {3, 5, 6, 7, 8, 16}, told
    assert any(f'"subscribedTopicNames":["{group.topic}"]' in line for line in told), told


def _tool(command: str, *words: str) -> "subprocess.CompletedProcess[str]":
    done = run_tool(f"org.apache.kafka.tools.{command}", *words)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_group_outlives_its_coordinator(tmp_path_factory: pytest.TempPathFactory) -> None:
    overrides = {"group.consumer.session.timeout.ms": "6000"}
    with LocalCluster(tmp_path_factory.mktemp("dies"), overrides=overrides) as cluster:
        group = Group(cluster.bootstrap, create_topic(cluster.bootstrap, PARTITIONS))
        first = group.first("a")
        assert group.commit("a", first) == "none"
        address = group.coordinator
        brokers = {f"{it.host}:{it.port}": it.node_id for it in metadata(address).brokers}
        group.alive = next(it for it in brokers if it != address)
        cluster.kill(brokers[address])
        wait_until(lambda: group.coordinator != address, "another coordinator",
                   timeout_s=60.0)  # fmt: skip
        assert group.beat("a", first) == ("none", first, None)
        assert group.fetch("a", first) == "none"
        assert group.join("b")[:2] == ("none", first + 1)
        epoch = first + 1

        def has_all() -> bool:
            nonlocal epoch
            told = group.beat("b", epoch, topics=[group.topic], owned=[], timeout=TIMEOUT_MS)
            epoch = told[1]
            return told[2] == (0, 1, 2, 3)

        wait_until(has_all, "what the silent member had")
        assert group.beat("a", first)[0] == "unknown_member_id"
