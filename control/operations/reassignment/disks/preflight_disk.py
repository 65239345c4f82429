"""Pre-flight's check of disks, through every wave. Pure.

Where a broker has several log directories (JBOD), each file system must have room for the worst
order in which replicas may arrive (``directory_placement``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from control.model.ids import TopicPartition
from control.model.log_dirs import SAME_WITHIN_BYTES
from control.model.units import bytes_text, duration_text
from control.move.check import Check, Verdict, check_of
from control.operations.reassignment.disks.directory_placement import (
    DirectoryPlacement,
    Disks,
    Need,
    open_file_systems,
)
from control.operations.reassignment.facts import ClusterFacts
from control.operations.reassignment.preflight_load import Waves
from control.operations.reassignment.producer_traffic import bytes_off
from planner.proposal import PartitionChange

DISK: Final = "disk"
DELETED_LATER: Final = (
    "waves wait for room until Kafka has deleted what left before them (file.delete.delay.ms)"
)
Bytes = Mapping[TopicPartition, int]


def peak_bytes(waves: Waves, written: Bytes | None = None) -> dict[int, int]:
    """The most that each broker holds beyond what it holds now: in a wave both copies exist, and
    what left in earlier waves has made room. `written`: what comes to a partition meanwhile."""
    more = written or {}
    now: dict[int, int] = {}
    peak: dict[int, int] = {}
    for wave in waves:
        for change in wave:
            for broker in change.adding:
                arrives = change.size_bytes + more.get(change.key, 0)
                now[broker] = now.get(broker, 0) + arrives
                peak[broker] = max(peak.get(broker, 0), now[broker])
        for broker, size in bytes_off(wave).items():
            now[broker] = now.get(broker, 0) - size
    return peak


def disk_needs(disks: Disks, waves: Waves, written: Bytes | None = None) -> list[Need]:
    """The most that each broker's disk needs, by file system where it has several log
    directories; none of brokers that do not tell their free space."""
    more = written or {}
    peaks = {b: peak for b, peak in peak_bytes(waves, more).items() if b in disks.usable_bytes}
    ours = {change.key for wave in waves for change in wave}
    arriving, placements = {}, {}
    for broker in peaks:
        others = disks.in_flight.get(broker, {})
        rest = {key: size for key, size in others.items() if key not in ours}
        arriving[broker] = sum(rest.values())
        peaks[broker] += arriving[broker]
        if broker in disks.log_dirs:
            placements[broker] = DirectoryPlacement(broker, disks.log_dirs[broker])
            placements[broker].still_coming(rest)
    for wave in waves:
        comes: dict[int, list[int]] = {}
        goes: dict[int, list[TopicPartition]] = {}
        for change in wave:
            for broker in change.adding:
                comes.setdefault(broker, []).append(change.size_bytes + more.get(change.key, 0))
            for broker in change.removing:
                goes.setdefault(broker, []).append(change.key)
        for broker in arriving.keys() & comes.keys():
            arriving[broker] += sum(comes[broker])
        for broker, placement in placements.items():
            placement.wave(comes.get(broker, ()), goes.get(broker, ()))
    found = [
        Need(
            broker=broker,
            needed=peak,
            arriving=arriving[broker],
            usable=disks.usable_bytes[broker],
        )
        for broker, peak in peaks.items()
        if broker not in placements
    ]
    found += [need for placement in placements.values() for need in placement.needs()]
    return sorted(found, key=lambda need: need.broker)


def check_disk(facts: ClusterFacts, waves: Waves, seconds: float | None = None) -> Check:
    """Whether every broker has room at its worst moment, also for what producers write to the
    moving partitions in so many seconds, where it is known how long that is."""
    written = {key: int(rate * (seconds or 0.0)) for key, rate in facts.produced.items()}
    needs, share = disk_needs(facts.disks, waves, written), 1 - facts.disk_reserve
    lacking = [need for need in needs if need.needed > need.usable * share]
    if not lacking:
        fine = "both copies fit in every wave"
        if any(need.arriving > need.usable for need in needs):
            fine = f"{fine}; {DELETED_LATER}"
        return check_of(DISK, _unknown(facts, waves), fine=fine, verdict=Verdict.WARN)
    copies = {_place(need): need for need in disk_needs(facts.disks, waves)}
    bad = [_need_words(facts, it, copies.get(_place(it)), seconds) for it in lacking]
    fits = not any(it.needed > it.usable * share for it in copies.values())
    full = {need.broker for need in lacking}
    coming = {c.key: c for wave in waves for c in wave if not full.isdisjoint(c.adding)}
    grown = [replace(c, size_bytes=c.size_bytes + written.get(c.key, 0)) for c in coming.values()]
    less = f"{'raise the throttle, ' if fits else ''}move less to it, {_less(lacking)}"
    advice = f"{less}{_elsewhere(facts, grown, peak_bytes(waves, written))}{_assumed(lacking)}"
    # Retention may delete as much as producers write.
    verdict = Verdict.WARN if fits else Verdict.FAIL
    return check_of(DISK, bad, fine="", verdict=verdict, advice=advice)


def _need_words(facts: ClusterFacts, need: Need, copies: Need | None, seconds: float | None) -> str:
    """`copies`: the need as it is without what producers write."""
    stays = f"; {facts.disk_reserve:.0%} must stay free" if need.needed <= need.usable else ""
    written = _of_producers(need.needed - (copies.needed if copies else 0), seconds)
    return (
        f"broker {need.broker} needs {bytes_text(need.needed)} more{need.where} at its fullest "
        f"moment{written} and has {bytes_text(need.usable)} free{stays}"
    )


def _place(need: Need) -> tuple[int, tuple[str, ...]]:
    return need.broker, need.file_system.paths if need.file_system else ()


def _unknown(facts: ClusterFacts, waves: Waves) -> list[str]:
    changes = [change for wave in waves for change in wave if change.adding]
    targets = sorted({broker for change in changes for broker in change.adding})
    return [
        *(
            f"the size of {change.key} is unknown and counts as 0 bytes"
            for change in changes
            if not change.size_bytes and change.key not in facts.sizes
        ),
        *(
            f"broker {broker} does not tell its free space"
            for broker in targets
            if broker not in facts.usable_bytes
        ),
        *(
            f"log directory {log_dir.path} of broker {broker} has failed: nothing comes there"
            for broker in targets
            for log_dir in facts.log_dirs.get(broker, ())
            if log_dir.is_failed
        ),
    ]


def _of_producers(written: int, seconds: float | None) -> str:
    """How much of what a broker needs is not there yet."""
    if not written or not seconds:
        return ""
    lasts = duration_text(seconds * 1000)
    return f", {bytes_text(written)} of it for records that producers write in {lasts} of moving,"


def _less(lacking: Iterable[Need]) -> str:
    if all(need.file_system is None for need in lacking):
        return "free its disk first"
    return (
        "free that directory first, or cordon it (Kafka 4.3 and later): Kafka takes the one with "
        "the fewest replicas, not the emptiest"
    )


def _assumed(lacking: Iterable[Need]) -> str:
    if not any(need.file_system and need.file_system.is_assumed for need in lacking):
        return ""
    return (
        "; directories of equal size and equal free bytes count as one file system: if they are "
        f"not, write a file of {bytes_text(2 * SAME_WITHIN_BYTES)} into one and check again"
    )


def _elsewhere(
    facts: ClusterFacts, coming: Sequence[PartitionChange], peak: Mapping[int, int]
) -> str:
    """Which broker could take the most of what finds no room: it has room beside what the plan
    gives it, and no replica of them now or then."""
    takes: dict[int, int] = {}
    room: dict[int, int] = {}
    for broker in facts.broker_ids & facts.usable_bytes.keys():
        free = facts.usable_bytes[broker]
        if broker in facts.log_dirs:
            known = (it.usable_bytes for it in open_file_systems(facts.log_dirs[broker]))
            free = min((it for it in known if it is not None), default=free)
        room[broker] = int(free * (1 - facts.disk_reserve)) - peak.get(broker, 0)
    for broker, most in room.items():
        takes[broker] = sum(
            broker not in (*change.before, *change.after) and change.size_bytes <= most
            for change in coming
        )
    best = max(room, key=lambda broker: (takes[broker], room[broker], -broker), default=None)
    if best is None or not takes[best]:
        return ""
    some = "" if takes[best] == len(coming) else f"{takes[best]} of {len(coming)} "
    return (
        f", or move {some}to broker {best}, which has {bytes_text(facts.usable_bytes[best])} free"
    )
