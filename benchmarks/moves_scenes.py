"""What producers feel of the reassignments that operators know, on brokers in use.

    python -m benchmarks.moves_scenes [--on ours|kafka|apart] [--mib 48] [--throttle 2MiB]
        [--spread 5m] [--only "two brokers join"]... [--in-use] [--times 1]
        [--config replica.fetch.backoff.ms=100]... [--warm]

Twelve partitions, two replicas each, lie on three brokers; a paced producer (acks=all) writes to
all of them, another to a topic of its own. Two brokers (no controllers) join and take their share;
every partition gets a third replica; a broker is decommissioned. Each is planned and run by the
command line. For each: what moved, how long it took, and how long the producer's records waited in
the minute before and during it. The cluster has been written to for two minutes before the first.
With `--times 5` all of it five times, each on a new topic, and at the end each scene over its
times. On `apart` Kafka's controller is a node of its own. `--config` goes into every node's
properties file.

With `--in-use` nobody joins: the twelve partitions have three replicas on five brokers, of which
one is decommissioned, and every broker follows every other one in partitions that others write to.

With `--warm` a topic beside them is moved round all brokers first: a process that has just started
compiles what it does for the first time, here on the two cores that producers use as well.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.kafka_apart import ApartKafka
from benchmarks.moves_cases import KAFKA_JVM, MIB
from benchmarks.moves_felt import (
    OTHERS,
    SETTLE_S,
    Felt,
    ProducerProcess,
    listen,
    other_traffic,
    p99s_ms,
)
from tests.contract.operations_site import Placement, Site, site_of
from tests.support.kafka_oracle import KafkaCluster

PARTITIONS: Final = 12
PER_S: Final = 200
WARM_S: Final = 120.0
BEFORE_S: Final = 60.0
PLACEMENT: Final = {n: (101 + n % 3, 101 + (n + 1) % 3) for n in range(PARTITIONS)}
BROKERS: Final = 5
PLACEMENT_IN_USE: Final = {
    n: tuple(101 + (n + step) % BROKERS for step in range(3)) for n in range(PARTITIONS)
}
OTHERS_IN_USE: Final = {
    n: tuple(101 + (n + step) % BROKERS for step in ((0, 1, 2) if n < BROKERS else (0, 3, 4)))
    for n in range(2 * BROKERS)
}
"""Every broker follows every other one in one of them."""
JOINING: Final = (104, 105)
WARM_MIB: Final = 8
WARM_MOVES: Final = 4
"""So many that each broker has led, followed and received."""
TIMEOUT_S: Final = 3600
CLUSTERS: Final = {
    "ours": ("ours", KafkaCluster),
    "kafka": ("kafka", KafkaCluster),
    "apart": ("kafka", ApartKafka),
}
"""What `--on` names, as `site_of` takes it."""
LEAVING: Final = "a broker is decommissioned"
SCENES: Final = {
    "two brokers join": ("--add-brokers", ",".join(map(str, JOINING)), "--topics", "{topic}"),
    "a third replica": ("--replication-factor", "3", "--topics", "{topic}"),
    LEAVING: ("--remove-brokers", "103"),
}
"""Each with its wish, as `partiscope plan` takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One scene's figures."""

    name: str
    took_s: float
    moved: int
    """Partitions of which a replica came or went."""
    led_anew: int
    felt: Felt

    @property
    def ratio(self) -> float:
        """Of the p99 during it to that before it."""
        before, during = p99s_ms([self.felt])
        return during / before

    def words(self) -> str:
        """What moved and how it was felt; when it was felt most."""
        return (
            f"{self.name:26}  {self.moved:2d} partitions, {self.led_anew:2d} new leaders"
            f"  {self.took_s:6.1f} s   {self.felt.words()}   {self.ratio:4.1f} times"
            f"\n    {self.felt.slow_words()}"
        )


async def play(site: Site, topic: str, name: str, how: Sequence[str], *, settle_s: float) -> Played:
    """Plan it, listen, run it."""
    wish = [word.format(topic=topic) for word in SCENES[name]]
    plan = f"{name.replace(' ', '-')}.json"
    await asyncio.to_thread(site.cli.run, "plan", *wish, "--out", plan)
    was, led = site.eyes.replicas(topic), site.eyes.leaders(topic)

    async def move() -> float:
        began_s = time.monotonic()
        words = ("reassign", plan, *how, "--yes", "--reason", name)
        process = site.cli.start(*words)
        said = await asyncio.to_thread(process.communicate, timeout=TIMEOUT_S)
        assert process.returncode == 0, said
        return time.monotonic() - began_s

    took_s, felt = await listen(
        site, topic, PARTITIONS, PER_S, move, settle_s=settle_s, listen_s=BEFORE_S
    )
    now, leads = site.eyes.replicas(topic), site.eyes.leaders(topic)
    site.check_settled(topic, now)
    return Played(
        name=name,
        took_s=took_s,
        moved=sum(set(now[n]) != set(was[n]) for n in was),
        led_anew=sum(leads[n] != led[n] for n in led),
        felt=felt,
    )


async def play_all(
    site: Site,
    names: Sequence[str],
    placement: Placement,
    *,
    mib: int,
    how: Sequence[str],
    warm_s: float,
) -> list[Played]:
    """One after the other on the same topic, each told when it is over."""
    topic = site.topic("orders", placement, partition_bytes=mib * MIB)
    played: list[Played] = []
    for name in names:
        settle_s = SETTLE_S if played else warm_s
        played.append(await play(site, topic, name, how, settle_s=settle_s))
        print(played[-1].words(), flush=True)
    site.eyes.delete(topic)
    return played


def warm(site: Site, throttle: str) -> None:
    """Ten partitions go round all brokers, written to meanwhile."""

    def placement(step: int) -> Placement:
        return {
            n: tuple(101 + (n + 2 * step + k) % BROKERS for k in range(2))
            for n in range(2 * BROKERS)
        }

    topic = site.topic("warm", placement(0), partition_bytes=WARM_MIB * MIB)
    with ProducerProcess(site, topic, 2 * BROKERS, PER_S):
        for step in range(1, WARM_MOVES + 1):
            plan = site.plan_by_hand(topic, placement(step))
            words = (
                "--throttle",
                throttle,
                "--spread",
                "none",
                "--yes",
                "--reason",
                f"warm {step}",
            )
            site.cli.run("reassign", plan, *words)
    site.eyes.delete(topic)


def show(found: Sequence[Played]) -> None:
    """Each scene over its times, and all of them together."""
    for name in dict.fromkeys(one.name for one in found):
        print(_together(name, [one for one in found if one.name == name]))
    print(_together("all of them", found))


def _together(name: str, found: Sequence[Played]) -> str:
    """The p99 of all records of these, and the middle one of each one's own ratio."""
    before, during = p99s_ms([one.felt for one in found])
    ratios = [one.ratio for one in found]
    calm = sum(ratio <= 2 for ratio in ratios)
    return (
        f"{name:26}  p99 of all records {before:5.1f} → {during:5.1f} ms,"
        f" {during / before:4.1f} times;"
        f" median {median(ratios):4.1f} times, at most twice in {calm} of {len(ratios)}"
    )


def as_property(text: str) -> tuple[str, str]:
    """Name and value of `NAME=VALUE`."""
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def main() -> None:
    """Entry of ``python -m benchmarks.moves_scenes``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--on", choices=CLUSTERS, default="ours")
    parser.add_argument("--mib", type=int, default=48, help="in each partition")
    parser.add_argument("--throttle", default="2MiB", help="as `partiscope reassign` takes it")
    parser.add_argument("--spread", default="5m", help="as `partiscope reassign` takes it")
    parser.add_argument("--only", choices=SCENES, action="append", help="this scene")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument(
        "--config", type=as_property, action="append", default=[], help="NAME=VALUE of every node"
    )
    parser.add_argument("--in-use", action="store_true", help="one of five in use leaves")
    parser.add_argument("--warm", action="store_true", help="another topic is moved first")
    chosen = parser.parse_args()
    if chosen.in_use and chosen.only:
        parser.error(f"--in-use plays one scene, {LEAVING!r}: leave out --only")
    kind, kafka = CLUSTERS[chosen.on]
    late = () if chosen.in_use else JOINING
    names = (LEAVING,) if chosen.in_use else chosen.only or tuple(SCENES)
    placement, others = (PLACEMENT_IN_USE, OTHERS_IN_USE) if chosen.in_use else (PLACEMENT, OTHERS)
    found: list[Played] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        site_of(
            kind,
            Path(folder),
            brokers=BROKERS,
            late=len(late),
            kafka=kafka,
            jvm_flags=KAFKA_JVM,
            overrides=dict(chosen.config),
        ) as site,
    ):
        for node in late:
            site.cluster.start_node(node)
        site.cluster.wait_ready()
        if chosen.warm:
            warm(site, chosen.throttle)
        for _ in range(chosen.times):
            warm_s = SETTLE_S if found else WARM_S
            asked = play_all(
                site,
                names,
                placement,
                mib=chosen.mib,
                how=("--throttle", chosen.throttle, "--spread", chosen.spread),
                warm_s=warm_s,
            )
            with other_traffic(site, others):
                found += asyncio.run(asked)
    show(found)


if __name__ == "__main__":
    main()
