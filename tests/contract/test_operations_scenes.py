"""Reassignments as operators run them, by the command line: on ours, and on Apache Kafka.

What happened is read with Kafka's own client library and tools.
"""

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.move.throttle import RATES
from tests.contract.operations_site import Site, site_of
from tests.support.paced_producer import PacedProducer, check_kept, read_all
from tests.support.settle import wait_until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

KINDS = ["ours", pytest.param("kafka", marks=pytest.mark.kafka_oracle)]
SITES = [
    pytest.param(("ours", 5), id="five-of-ours"),
    pytest.param(("kafka", 3), id="three-of-kafka", marks=pytest.mark.kafka_oracle),
    pytest.param(("kafka", 5), id="five-of-kafka", marks=pytest.mark.kafka_oracle),
]
MIB = 1 << 20
FROM = {0: (101, 102), 1: (101, 102)}


@pytest.fixture(scope="module", params=SITES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Some brokers, which a test leaves running."""
    kind, brokers = request.param
    if kind == "kafka":
        request.getfixturevalue("kafka_libs")
    with site_of(kind, tmp_path_factory.mktemp(kind), brokers=brokers) as site:
        yield site


def target_of(site: Site) -> int:
    """Who receives: the last broker."""
    return max(site.cluster.ids)


def to(site: Site) -> dict[int, tuple[int, ...]]:
    """FROM, with another leader."""
    return dict.fromkeys(FROM, (target_of(site), 102))


@pytest.fixture(params=KINDS)
def growing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Three brokers, and two that have not joined yet."""
    if request.param == "kafka":
        request.getfixturevalue("kafka_libs")
    with site_of(request.param, tmp_path, brokers=5, late=2) as site:
        yield site


def test_two_brokers_join_under_load_and_one_is_decommissioned(growing: Site) -> None:
    cli, eyes, cluster = growing.cli, growing.eyes, growing.cluster
    placement = {n: (101 + n % 3, 101 + (n + 1) % 3) for n in range(9)}
    topic = growing.topic("orders", placement, partition_bytes=2 * MIB)
    with PacedProducer(cluster.bootstrap, topic, partitions=9, per_s=50) as producer:
        for node in (104, 105):
            cluster.start_node(node)
        cluster.wait_ready()
        wanted = ("--add-brokers", "104,105", "--topics", topic)
        cli.run("plan", *wanted, "--out", "grow.json")
        cli.run("reassign", "grow.json", "--throttle", "4MiB", "--spread", "20s", "--yes")
        grown = eyes.replicas(topic)
        held = Counter(broker for replicas in grown.values() for broker in replicas)
        # A fifth of 18 each; internal topics stay on the older three and count as well.
        assert min(held[104], held[105]) >= 3, held
        everything = eyes.held()
        mean = everything.total() / 5
        assert all(mean / 2 <= everything[node] <= mean * 1.5 for node in cluster.ids), everything
        growing.check_settled(topic, grown)
        assert eyes.verify(growing.folder / "grow.json").count("is completed") > 0

        read_all(cluster.bootstrap, topic, range(9))
        held_by_103 = {topic, "__consumer_offsets"}
        wait_until(lambda: eyes.on_broker(103) >= held_by_103, "groups have a topic by now")
        cli.run("plan", "--remove-brokers", "103", "--out", "shrink.json")
        cli.run("reassign", "shrink.json", "--throttle", "8MiB", "--spread", "20s", "--yes")
        assert eyes.on_broker(103) == set()
        assert cluster.kill(103, signal.SIGTERM) in (0, 128 + signal.SIGTERM)
        growing.check_settled(topic, eyes.replicas(topic))
    check_kept(cluster.bootstrap, topic, producer)


def test_a_higher_replication_factor(site: Site) -> None:
    topic = site.topic("two-to-three", FROM, partition_bytes=MIB)
    wish = ("--replication-factor", "3", "--topics", topic)
    site.cli.run("plan", *wish, "--out", "three.json")
    said = site.cli.run("reassign", "three.json", "--throttle", "4MiB", "--yes")
    assert "2 replicas become 3" in said
    now = site.eyes.replicas(topic)
    assert all(len(set(replicas)) == 3 for replicas in now.values()), now
    assert all({101, 102} < set(replicas) for replicas in now.values()), now
    site.check_settled(topic, now)


def test_cancel_midway_goes_back_and_rollback_undoes_what_is_done(site: Site) -> None:
    """Of Kafka's throttle ten seconds' worth may pass at once: a copy must be larger than that."""
    cli = site.cli
    topic = site.topic("to-and-fro", {**FROM, 2: (101, 102)}, partition_bytes=12 * MIB)
    done_at_once = {2: (102, 101)}
    plan = site.plan_by_hand(topic, {**to(site), **done_at_once})
    moving = cli.start("reassign", plan, "--throttle", "1MiB", "--yes", "--reason", topic)
    operation_id = cli.wait_until_moving(reason=topic)
    cli.run("moves", "cancel", operation_id)
    assert "cancelled" in cli.end_of(moving, status=1)
    site.check_settled(topic, {**FROM, **done_at_once})
    shown = cli.json("moves", "show", operation_id)
    fates = {change["partition"]: change["fate"] for change in shown["changes"]}
    assert fates == {0: "went back", 1: "went back", 2: "moved"}, shown
    assert re.search(rf"{topic}-0\s.*went back", cli.run("moves", "show", operation_id))

    cli.run("reassign", plan, "--throttle", "8MiB", "--yes")
    site.check_settled(topic, {**to(site), **done_at_once})
    foreseen = cli.json("moves", "rollback", "--dry-run")
    assert (foreseen["partitions"], foreseen["replicas"]) == (2, 2)
    assert foreseen["bytes"] >= 24 * MIB
    site.check_settled(topic, {**to(site), **done_at_once})
    assert "add --yes to go on" in cli.run("moves", "rollback", status=3)
    said = cli.run("moves", "rollback", "--yes", "--reason", "and back")
    assert re.search(r"2 partitions .*: 2 replicas, 24", said)
    site.check_settled(topic, {**FROM, **done_at_once})
    undo, done, cancelled = cli.moves()[:3]
    assert (undo["rollback_of"], undo["outcome"]) == (done["id"], "done")
    assert (cancelled["id"], cancelled["outcome"]) == (operation_id, "cancelled")
    assert done["real"]["bytes"] >= done["planned"]["bytes"] >= 24 * MIB


def test_killed_midway_it_goes_on_and_nobody_can_trample(site: Site) -> None:
    cli = site.cli
    topic = site.topic("survivor", FROM, partition_bytes=6 * MIB)
    plan = site.plan_by_hand(topic, to(site))
    command = cli.start("reassign", plan, "--throttle", "1MiB", "--yes", "--reason", topic)
    operation_id = cli.wait_until_moving(reason=topic)
    command.kill()
    command.communicate()
    site.kill_executor()
    assert site.eyes.throttles(topic) != {}
    refused = cli.run("reassign", plan, "--yes", status=3)
    assert operation_id in refused, refused
    site.executor.__enter__()
    cli.run("moves", "throttle", operation_id, "--throttle", "8MiB")
    cli.run("moves", "watch", operation_id)
    site.check_settled(topic, to(site))
    (move,) = (move for move in cli.moves() if move["id"] == operation_id)
    assert (move["outcome"], move["throttle_bytes_per_s"]) == ("done", 8 * MIB)


@pytest.mark.parametrize("role", ["target", "source", "stays"])
def test_a_broker_dies_midway_and_comes_back(site: Site, role: str) -> None:
    cli, cluster = site.cli, site.cluster
    victim = {"target": target_of(site), "source": 101, "stays": 102}[role]
    is_waited_for = role != "source"
    is_down = f"broker {victim} is down"
    topic = site.topic("orphan", FROM, partition_bytes=16 * MIB)
    plan = site.plan_by_hand(topic, to(site))
    with PacedProducer(cluster.bootstrap, topic, partitions=2, per_s=20) as producer:
        how = ("--throttle", "1MiB", "--spread", "none", "--yes", "--reason", topic)
        moving = cli.start("reassign", plan, *how)
        operation_id = cli.wait_until_moving(reason=topic)
        with site.without(victim):
            if is_waited_for:
                wait_until(lambda: is_down in stalls(site), "the stall is explained")
            cli.run("moves", "throttle", operation_id, "--throttle", "128KiB")
        wait_until(
            lambda: site.eyes.throttles(topic).get(f"{victim} {RATES[0]}") == str(128 << 10),
            "who was away gets the rate that was set meanwhile",
            story=lambda: str(site.eyes.throttles(topic)),
        )
        cli.run("moves", "throttle", operation_id, "--throttle", "8MiB")
        said = cli.end_of(moving)
        assert not is_waited_for or f"stands still: {is_down}" in said, said
        site.check_settled(topic, to(site))
    check_kept(cluster.bootstrap, topic, producer)


def test_a_target_that_stays_away_is_given_up_and_keeps_no_throttle(site: Site) -> None:
    cli = site.cli
    topic = site.topic("given-up", FROM, partition_bytes=6 * MIB)
    plan = site.plan_by_hand(topic, to(site))
    moving = cli.start("reassign", plan, "--throttle", "1MiB", "--yes", "--reason", topic)
    cli.wait_until_moving(reason=topic)
    with site.without(target_of(site)):
        cli.run("moves", "cancel")
        cli.end_of(moving, status=1)
        site.check_settled(topic, FROM)
    wait_until(
        lambda: site.eyes.throttles(topic) == {},
        "the broker that was away is let go",
        story=lambda: str(site.eyes.throttles(topic)),
    )


def test_a_source_that_returns_after_the_end_is_let_go_while_the_next_move_runs(
    site: Site,
) -> None:
    cli, source = site.cli, 101
    topic = site.topic("left", FROM, partition_bytes=6 * MIB)
    other = site.topic("next", {0: (102,)}, partition_bytes=4 * MIB)
    plans = site.plan_by_hand(topic, to(site)), site.plan_by_hand(other, {0: (target_of(site),)})
    moving = cli.start("reassign", plans[0], "--throttle", "1MiB", "--yes", "--reason", topic)
    operation_id = cli.wait_until_moving(reason=topic)
    with site.without(source):
        cli.run("moves", "throttle", operation_id, "--throttle", "8MiB")
        cli.end_of(moving)
        slowly = ("--throttle", "16KiB", "--yes", "--reason", other)
        following = cli.start("reassign", plans[1], *slowly)
        operation_id = cli.wait_until_moving(reason=other)
    wait_until(
        lambda: not any(name.startswith(f"{source} ") for name in site.eyes.throttles(topic)),
        "the broker that was away is let go",
        story=lambda: str(site.eyes.throttles(topic)),
    )
    assert cli.moves()[0]["phase"] == "running"
    cli.run("moves", "throttle", operation_id, "--throttle", "8MiB")
    cli.end_of(following)
    site.check_settled(topic, to(site))
    site.check_settled(other, {0: (target_of(site),)})


def test_a_throttle_is_never_exceeded(site: Site) -> None:
    topic = site.topic("slow", FROM, partition_bytes=4 * MIB)
    plan = site.plan_by_hand(topic, to(site))
    began_s = time.monotonic()
    site.cli.run("reassign", plan, "--throttle", "1MiB", "--yes")
    took_s = time.monotonic() - began_s
    # A slow machine only makes it longer; benchmarks/moves.py says by how much it falls short.
    assert 8 * MIB / took_s < 1.1 * MIB
    site.check_settled(topic, to(site))


def stalls(site: Site) -> str:
    """The newest move's stalled partitions, as `moves --json` tells them."""
    progress = site.cli.moves()[0]["progress"]
    return str(progress["stalled"])
