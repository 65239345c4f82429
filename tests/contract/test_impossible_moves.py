"""What cannot move, and what is another topic by now: on ours, and on Apache Kafka."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.contract.operations_site import Site, site_of
from tests.support.kafka_oracle import KAFKA_TODAY, KafkaCluster
from tests.support.settle import wait_until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

KINDS = [
    "ours",
    pytest.param("kafka", marks=pytest.mark.kafka_oracle),
    pytest.param("kafka_today", marks=pytest.mark.kafka_oracle),
]
REFUSED = 3
MIB = 1 << 20


@dataclass
class KafkaToday(KafkaCluster):
    """The newest one."""

    version: str = KAFKA_TODAY


@pytest.fixture(scope="module", params=KINDS)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    kind, kafka = request.param, KafkaCluster
    if kind == "kafka":
        request.getfixturevalue("kafka_libs")
    elif kind == "kafka_today":
        request.getfixturevalue("kafka_today_libs")
        kind, kafka = "kafka", KafkaToday
    with site_of(kind, tmp_path_factory.mktemp(kind), brokers=4, kafka=kafka) as site:
        yield site


def test_a_partition_without_a_leader_is_left_out_refused_and_the_rest_moves(site: Site) -> None:
    cli, eyes = site.cli, site.eyes
    placement = {0: (101, 104), 1: (101, 102)}
    single = site.topic("single", {0: (104,), 1: (104,)}, partition_bytes=MIB // 4)
    pair = site.topic("pair", placement, partition_bytes=MIB // 4)
    names = f"{single}-0, {single}-1"
    with site.without(104):
        wait_until(lambda: eyes.leaders(single)[0] < 0, "nobody leads")
        made = cli.json("plan", "--topics", f"{single},{pair}", "--remove-brokers", "104")
        for told in ("2 partitions have no leader", names, "bring back broker 104"):
            assert told in made["limits"][0]
        first = made["alternatives"][0]["assignment"]["partitions"]
        assert {entry["topic"] for entry in first} == {pair}
        assert all(104 not in entry["replicas"] for entry in first)

        both = {single: {0: [103], 1: [103]}, pair: {0: [101, 103]}}
        _write(site, "both.json", both)
        said = cli.run("reassign", "both.json", "--throttle", "none", "--yes", status=REFUSED)
        assert f"{names} has no leader" in _line(said)
        assert "unclean" in said
        assert eyes.reassigning() == ""

        rest = site.plan_by_hand(pair, {0: (101, 103)})
        cli.run("reassign", rest, "--throttle", "none", "--spread", "none", "--yes")
        assert eyes.replicas(pair)[0] == (101, 103)

        move = cli.moves()[0]["id"]
        said = cli.run("moves", "rollback", move, "--dry-run", status=REFUSED)
        assert f"{pair}-0 would be on broker 104" in _line(said)
    cli.run("moves", "rollback", move, "--yes")
    site.check_settled(pair, placement)


def test_a_smaller_replication_factor_drops_the_dead(site: Site) -> None:
    cli, eyes = site.cli, site.eyes
    two = {0: (104, 101), 1: (101, 104), 2: (102, 104), 3: (104, 102)}
    pairs = site.topic("pairs", two, partition_bytes=MIB // 4)
    triples = site.topic("triples", {0: (104, 101, 102), 1: (101, 102, 104)}, partition_bytes=MIB)
    with site.without(104):
        wait_until(lambda: 104 not in eyes.leaders(pairs).values(), "others lead")
        wait_until(lambda: 104 not in eyes.leaders(triples).values(), "others lead")
        for topic, factor, after in (
            (pairs, 1, {0: (101,), 1: (101,), 2: (102,), 3: (102,)}),
            (triples, 2, {0: (101, 102), 1: (101, 102)}),
        ):
            asked = ("--topics", topic, "--replication-factor", str(factor))
            cli.run("plan", *asked, "--out", "fewer.json")
            cli.run("reassign", "fewer.json", "--throttle", "none", "--spread", "none", "--yes")
            assert {n: {*on} for n, on in eyes.replicas(topic).items()} == {
                n: {*on} for n, on in after.items()
            }


def _write(site: Site, name: str, targets: dict[str, dict[int, list[int]]]) -> None:
    """Kafka's reassignment file of several topics."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": replicas}
        for topic, placement in targets.items()
        for number, replicas in placement.items()
    ]
    (site.folder / name).write_text(json.dumps({"version": 1, "partitions": partitions}))


def _line(said: str) -> str:
    """As if it were not wrapped."""
    return " ".join(said.split())


def test_a_topic_that_is_created_anew_while_it_moves_is_another_topic(site: Site) -> None:
    cli, eyes = site.cli, site.eyes
    placement = {0: (101, 102)}
    doomed = site.topic("doomed", placement, partition_bytes=4 * MIB)
    kept = site.topic("kept", placement, partition_bytes=4 * MIB)
    _write(site, "anew.json", {doomed: {0: [103, 102]}, kept: {0: [103, 102]}})
    reassigning = cli.start(
        *("reassign", "anew.json", "--throttle", "500KiB", "--spread", "none"),
        *("--reason", "anew", "--yes"),
    )
    move = cli.wait_until_moving(1, reason="anew")
    eyes.delete(doomed)
    wait_until(lambda: doomed not in eyes.on_broker(101), "it is deleted")
    eyes.create(doomed, {0: (104, 102)})
    cli.run("moves", "throttle", move, "--throttle", "50MiB")
    said = cli.end_of(reassigning)
    anew = f"{doomed} was deleted and created"
    (done,) = [found for found in cli.moves() if found["id"] == move]
    assert done["outcome"] == "done", said
    assert "somebody else" not in json.dumps(done)
    assert any(anew in note for note in done["notes"]), done
    assert eyes.replicas(doomed) == {0: (104, 102)}
    site.check_settled(kept, {0: (103, 102)})

    dry = _line(cli.run("moves", "rollback", move, "--dry-run"))
    assert f"{doomed}-0 was deleted" in dry, dry
    cli.run("moves", "rollback", move, "--yes")
    site.check_settled(kept, placement)
    assert eyes.replicas(doomed) == {0: (104, 102)}
