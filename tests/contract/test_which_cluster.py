"""Which cluster a command is about: by its id, whatever address it was given."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.operations.bus.client import OperationsClient
from partiscope.cli.app import run
from partiscope.cli.shared.options import target_with
from partiscope.installation import Installation, Watched
from planner.proposal import PartitionChange, Proposal
from tests.contract.operations_rig import unique, variants
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster
from tests.support.node_cluster import CLUSTER_ID
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

DONE, WRONG_USE, REFUSED, UNREACHABLE = 0, 2, 3, 4
OTHER_ID = "b3RoZXItdGVzdC1jbHVzdA"
NOBODY = "127.0.0.1:1"


class Told:
    """A command as it is typed; its status and all that it said."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str]:
        status = run(list(words))
        said = self._capsys.readouterr()
        return status, " ".join((said.out + said.err).split())


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(capsys)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Addresses of the one that an installation runs, and of another one."""
    folder = tmp_path_factory.mktemp("two")
    with (
        LocalCluster(folder / "ours", brokers=1) as ours,
        LocalCluster(folder / "other", brokers=1, overrides={"cluster.id": OTHER_ID}) as other,
    ):
        yield ours.bootstrap, other.bootstrap


@pytest.fixture
def data(clusters: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with what `up` leaves in it, and figures of its own cluster alone."""
    data = tmp_path / "data"
    Installation(bus=clusters[0]).save(data)
    founded = {"cluster_id": CLUSTER_ID, "first_id": 101, "brokers": 1}
    (data / "cluster.json").write_text(json.dumps(founded))
    rows = synthetic_rows(SyntheticSizes(topics=2), at_ms=time.time_ns() // 1_000_000)
    ours = {name: [{**row, "cluster": CLUSTER_ID} for row in it] for name, it in rows.items()}
    StoreBuilder(data / "store").write({**ours, "health": rows["health"]})
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PARTISCOPE_CONFIG", raising=False)
    monkeypatch.delenv("PARTISCOPE_BUS", raising=False)
    monkeypatch.setenv("PARTISCOPE_DATA", str(data))
    return data


def _alias(address: str) -> str:
    """Another way to write the address of a broker on this machine."""
    return address.replace("127.0.0.1", "0.0.0.0")


def test_figures_are_of_the_cluster_that_was_named_or_there_are_none(
    clusters: tuple[str, str], data: Path, told: Told
) -> None:
    ours, other = clusters
    status, words = told("status")
    assert (status, CLUSTER_ID in words) == (DONE, True), words
    for address in (ours, ours.replace("127.0.0.1", "localhost"), _alias(ours)):
        status, words = told("status", "--bootstrap", address)
        assert (status, CLUSTER_ID in words) == (DONE, True), words
    for faces in (("status",), ("status", "--json")):
        status, words = told(*faces, "--bootstrap", other)
        assert (status, CLUSTER_ID in words) == (UNREACHABLE, False), words
        assert f"no figures of cluster {OTHER_ID}" in words
        status, words = told(*faces, "--bootstrap", NOBODY)
        assert (status, CLUSTER_ID in words) == (UNREACHABLE, False), words
        assert f"{NOBODY} did not answer" in words


def test_moves_are_of_the_cluster_that_was_named(
    clusters: tuple[str, str], data: Path, told: Told
) -> None:
    ours, other = clusters

    async def submit() -> str:
        change = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
        async with OperationsClient(ours) as client:
            return await client.submit_reassign(
                Proposal(name="p", changes=(change,)), bootstrap=ours, cluster_id=CLUSTER_ID
            )

    move = asyncio.run(submit())
    for words in (
        ("moves",),
        ("moves", "--bootstrap", ours),
        ("moves", "--bootstrap", _alias(ours)),
    ):
        status, said = told(*words)
        assert (status, move in said) == (DONE, True), said
    status, said = told("moves", "--bootstrap", other)
    assert (status, move in said) == (DONE, False), said
    status, said = told("moves", "cancel", move, "--bootstrap", other)
    assert (status, move in said) == (WRONG_USE, True), said
    target = target_with(bootstrap=other)
    assert (target.bus, target.watched.cluster_id) == (other, OTHER_ID), "a bus of its own"
    assert target.others == ()


def test_a_cluster_that_took_the_address_is_told_from_the_one_that_is_meant(
    clusters: tuple[str, str], data: Path, told: Told
) -> None:
    """The installation's cluster is down; another one listens on its ports."""
    _, other = clusters
    Installation(bus=other).save(data)
    for words in (
        ("topics", "list"),
        ("topics", "delete", "orders", "--yes"),
        ("produce", "orders", "--value", "x"),
        ("moves",),
        ("groups", "list"),
    ):
        status, said = told(*words)
        assert status == UNREACHABLE, said
        assert f"cluster {CLUSTER_ID} is meant" in said
        assert f"{OTHER_ID} listens there" in said
    assert told("topics", "list", "--bootstrap", other)[0] == DONE, "by its address it is meant"
    watched = (Watched(bootstrap=other, cluster_id=CLUSTER_ID),)
    Installation(bus=clusters[0], watched=watched).save(data)
    status, said = told("collect", "--bootstrap", other)
    assert (status, f"{OTHER_ID} listens there" in said) == (UNREACHABLE, True), said


CHANGES = (
    ("topics", "create", "{topic}-new"),
    ("topics", "add-partitions", "{topic}", "3", "--yes"),
    ("topics", "configure", "{topic}", "retention.ms=1000"),
    ("topics", "delete", "{topic}", "--yes"),
    ("produce", "{topic}", "--value", "x"),
    ("elect", "--topic", "{topic}"),
    ("groups", "delete", "nobody", "--yes"),
    ("groups", "reset", "nobody", "--topic", "{topic}", "--to", "latest", "--execute"),
    ("demo",),
)


WRITTEN = ("by its id", "as in the settings", "as it is advertised")


@pytest.mark.parametrize("written", variants(WRITTEN))
def test_no_address_leads_around_the_flag_of_a_production_cluster(
    clusters: tuple[str, str],
    data: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
    written: str,
) -> None:
    _, other = clusters
    named = {"as in the settings": other, "as it is advertised": other, "by its id": _alias(other)}
    given = {**dict.fromkeys(named, other), "as it is advertised": _alias(other)}[written]
    settings = data.parent / "partiscope.toml"
    settings.write_text(f'[clusters.prod]\nbootstrap = "{named[written]}"\nproduction = true\n')
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(settings))

    async def prepare(topic: str) -> None:
        async with KafkaAdmin.to(other) as admin:
            await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))

    topic = unique("kept")
    asyncio.run(prepare(topic))
    for words in CHANGES:
        typed = [word.format(topic=topic) for word in words]
        status, said = told(*typed, "--bootstrap", given)
        assert (status, "prod is a production cluster" in said) == (REFUSED, True), (typed, said)
    status, said = told("topics", "list", "--bootstrap", other)
    assert (topic in said, f"{topic}-new" in said) == (True, False)
    assert told("topics", "create", f"{topic}-new", "--cluster", "prod")[0] == DONE


def test_the_bundled_cluster_may_be_production_as_well(
    clusters: tuple[str, str], data: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has named it; the settings know its address."""
    settings = data.parent / "partiscope.toml"
    settings.write_text(f'[clusters.prod]\nbootstrap = "{clusters[0]}"\nproduction = true\n')
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(settings))
    status, said = told("topics", "create", unique("topic"))
    assert (status, "prod is a production cluster" in said) == (REFUSED, True), said
    assert target_with().watched.flags == ("PRODUCTION",)
    assert told("topics", "create", unique("topic"), "--cluster", "prod")[0] == DONE


def test_a_cluster_that_is_watched_is_known_while_it_is_away(data: Path, told: Told) -> None:
    """Its id is: its last figures are shown as such, and the status says that it is away."""
    watched = (Watched(bootstrap=NOBODY, cluster_id=CLUSTER_ID),)
    Installation(bus="127.0.0.1:2", watched=watched).save(data)
    status, said = told("status", "--bootstrap", NOBODY)
    assert (status, CLUSTER_ID in said, "did not answer" in said) == (UNREACHABLE, True, True), said


def test_an_empty_name_is_not_the_usual_cluster(data: Path, told: Told) -> None:
    """As of a script whose variable is not set."""
    for words in (("status",), ("topics", "delete", "orders", "--yes"), ("moves",), ("clusters",)):
        flag = () if words == ("clusters",) else ("--bootstrap", "")
        status, said = told(*words, *flag)
        assert (status, "is empty" in said) == ((WRONG_USE, True) if flag else (DONE, False)), said


async def _leave_no_bus(bootstrap: str) -> None:
    """Other tests use the same Kafka as their bus."""
    async with KafkaAdmin.to(bootstrap) as admin:
        for topic in await admin.topics():
            if topic.name.startswith("__partiscope"):
                await admin.delete_topic(topic.name)


@pytest.mark.kafka_oracle
def test_a_kafka_that_nobody_watches_is_left_as_it_is(
    kafka_cluster: KafkaCluster,
    data: Path,
    told: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has the tests' usual id; the installation beside it has another one."""
    founded = {"cluster_id": OTHER_ID, "first_id": 101, "brokers": 1}
    (data / "cluster.json").write_text(json.dumps(founded))
    kafka = kafka_cluster.bootstrap
    asyncio.run(_leave_no_bus(kafka))
    first = kafka.partition(",")[0]
    status, said = told("status", "--bootstrap", kafka, "--store", str(data.parent / "none"))
    assert (status, f"`partiscope up --bootstrap {kafka}" in said) == (UNREACHABLE, True), said
    status, said = told("moves", "--bootstrap", kafka)
    assert (status, "no operations bus" in said) == (UNREACHABLE, True), said
    status, said = told("topics", "list", "--internal", "--bootstrap", kafka)
    assert (status, "__partiscope" in said) == (DONE, False), said
    target = target_with(bootstrap=first)
    assert (target.bus, target.watched.cluster_id) == (None, CLUSTER_ID)

    settings = data.parent / "partiscope.toml"
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(settings))
    for written in (kafka, kafka.rpartition(",")[2], _alias(first)):
        settings.write_text(f'[clusters.prod]\nbootstrap = "{written}"\nproduction = true\n')
        for given in (first, _alias(first)):
            status, said = told("topics", "create", unique("topic"), "--bootstrap", given)
            assert (status, "prod is a production cluster" in said) == (REFUSED, True), said
    assert told("topics", "create", unique("topic"), "--cluster", "prod")[0] == DONE
    for topic in ("__consumer_offsets", "__partiscope_x"):
        assert told("topics", "delete", topic, "--yes", "--cluster", "prod")[0] == REFUSED


def test_internal_topics_are_left_alone(clusters: tuple[str, str], data: Path, told: Told) -> None:
    for topic in ("__consumer_offsets", "__transaction_state", "__partiscope_operations"):
        for words in (
            ("topics", "delete", topic, "--yes"),
            ("topics", "create", topic),
            ("topics", "add-partitions", topic, "99", "--yes"),
            ("topics", "configure", topic, "cleanup.policy=delete"),
            ("produce", topic, "--value", "x"),
        ):
            status, said = told(*words)
            assert (status, f"{topic} was left" in said) == (REFUSED, True), (words, said)


def test_without_an_installation_no_port_is_guessed(
    data: Path, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty, file = tmp_path / "empty", tmp_path / "file"
    empty.mkdir()
    file.write_text("")
    monkeypatch.setenv("PARTISCOPE_DATA", str(empty))
    commands = (
        ("status",),
        ("clusters",),
        ("topics", "list"),
        ("groups", "list"),
        ("moves",),
        ("tail", "orders"),
        ("plan",),
        ("elect",),
        ("produce", "orders"),
        ("executor",),
        ("dashboard",),
        ("collect",),
    )
    for words in commands:
        status, said = told(*words)
        assert status == WRONG_USE, (words, said)
        assert "nothing was ever started" in said or "no cluster to collect" in said, (words, said)
        for directory, why in (
            ("/nope", "no data directory /nope"),
            ("nope", f"no data directory {tmp_path}/nope"),
            (str(file), f"{file} is a file"),
        ):
            status, said = told(*words, "--data", directory)
            assert (status, why in said) == (WRONG_USE, True), (words, said)
            monkeypatch.setenv("PARTISCOPE_DATA", str(empty))
    status, said = told("segments", "orders", "0", "--data", "/nope")
    assert (status, "no data directory /nope" in said) == (WRONG_USE, True), said


def test_what_is_told_to_be_typed_means_the_same_cluster(
    clusters: tuple[str, str], data: Path, told: Told
) -> None:
    """`--data` is told where another shell would not find it; so is the cluster that was named."""
    status, said = told("topics", "describe", "nowhere", "--bootstrap", clusters[1])
    assert f"`partiscope topics list --data {data} --bootstrap {clusters[1]}`" not in said
    assert f"`partiscope topics list --bootstrap {clusters[1]}`" in said, "data is ./data here"
    elsewhere = data.rename(data.parent / "my data")
    status, said = told("topics", "describe", "nowhere", "--data", str(elsewhere))
    assert (status, f"`partiscope topics list --data '{elsewhere}'`" in said) == (2, True), said
