"""Very many small partitions of one topic: moved, cancelled midway, taken up again.

    python -m benchmarks.moves_many [--on ours|kafka] [--partitions 5000] [--mib 300]

Three brokers, two replicas each; every partition gives its second replica to the third broker, in
waves of 500, by the command line. Then they go back, cancelled midway, and the rest. For each: its
time, what arrived, and what is left of the throttle by DescribeConfigs (nothing, or it fails).
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.moves_cases import KAFKA_JVM, MIB
from tests.contract.operations_site import Placement, Site, site_of
from tests.support.settle import wait_until

BEFORE: Final = (101, 102)
AFTER: Final = (101, 103)
WAVE: Final = 500
THROTTLE: Final = "20MiB"
TIMEOUT_S: Final = 1800
JVM: Final = (*KAFKA_JVM, "-Xmx4g")
"""A follower's fetches of 5,000 partitions are kept by the thousand until Kafka purges them
(fetch.purgatory.purge.interval.requests): more than the gigabyte of Kafka's own script."""


def told(site: Site, topic: str, placement: Placement, reason: str, *, cancelled: bool) -> None:
    """Move it all there; print what came of it."""
    plan = site.plan_by_hand(topic, placement)
    words = ("--throttle", THROTTLE, "--partitions-per-wave", str(WAVE), "--yes")
    began_s = time.monotonic()
    process = site.cli.start("reassign", plan, *words, "--reason", reason)
    if cancelled:
        move = site.cli.wait_until_moving(reason=reason)
        cancelled_s = time.monotonic()
        site.cli.run("moves", "cancel", move)
        print(f"{reason}: cancelled after {cancelled_s - began_s:.1f} s", flush=True)
    said = process.communicate(timeout=TIMEOUT_S)
    took_s = time.monotonic() - began_s
    assert cancelled or process.returncode == 0, said
    there = site.eyes.replicas(topic)
    arrived = sum(there[number] == tuple(placement[number]) for number in placement)
    print(f"{reason}: {arrived:,} of {len(placement):,} are there after {took_s:.1f} s", flush=True)
    assert site.eyes.reassigning() == ""
    site.check_settled(topic, there)


def main() -> None:
    """Entry of ``python -m benchmarks.moves_many``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--on", choices=("ours", "kafka"), default="ours")
    parser.add_argument("--partitions", type=int, default=5000)
    parser.add_argument("--mib", type=int, default=300, help="in all, in records of 64 KiB")
    chosen = parser.parse_args()
    many = range(chosen.partitions)
    with (
        tempfile.TemporaryDirectory() as folder,
        site_of(chosen.on, Path(folder), jvm_flags=JVM) as site,
    ):
        size = chosen.mib * MIB // chosen.partitions
        topic = site.topic("many", dict.fromkeys(many, BEFORE), partition_bytes=size, acks="1")
        wait_until(lambda: site.eyes.is_in_sync(topic), "all replicas are in sync", timeout_s=600)
        there, back = dict.fromkeys(many, AFTER), dict.fromkeys(many, BEFORE)
        told(site, topic, there, "there", cancelled=False)
        told(site, topic, back, "back", cancelled=True)
        told(site, topic, back, "the rest", cancelled=False)


if __name__ == "__main__":
    main()
