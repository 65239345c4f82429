"""Pre-flight's check of disks, through every wave. Pure.

A replica lies in one log directory: where a broker has several (JBOD), there must be room in all
for all that arrives, and in the roomiest for each replica alone. Kafka itself takes the directory
that holds the fewest partitions, so a replica may still come where it does not fit.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from control.model.ids import TopicPartition
from control.model.units import bytes_text, duration_text
from control.operations.preflight_check import Check, Verdict, check_of
from control.operations.reassignment.facts import ClusterFacts
from control.operations.reassignment.preflight_load import Waves
from control.operations.reassignment.producer_traffic import bytes_off
from control.planner.proposal import PartitionChange


def peak_bytes(waves: Waves, written: Mapping[TopicPartition, int] | None = None) -> dict[int, int]:
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


def check_disk(facts: ClusterFacts, waves: Waves, seconds: float | None = None) -> Check:
    """Whether every broker has room at its worst moment, also for what producers write to the
    moving partitions in so many seconds, where it is known how long that is."""
    written = {key: int(rate * (seconds or 0.0)) for key, rate in facts.produced.items()}
    peak, copies = peak_bytes(waves, written), peak_bytes(waves)
    full, bad = set(), []
    unknown = [
        f"the size of {change.key} is unknown and counts as 0 bytes"
        for wave in waves
        for change in wave
        if change.adding and not change.size_bytes and change.key not in facts.sizes
    ]
    stays, share = f"; {facts.disk_reserve:.0%} must stay free", 1 - facts.disk_reserve
    for broker, needed in sorted(peak.items()):
        usable = facts.usable_bytes.get(broker)
        if usable is None:
            unknown.append(f"broker {broker} does not tell its free space")
        elif needed > usable * share:
            full.add(broker)
            bad.append(
                f"broker {broker} needs {bytes_text(needed)} more at its fullest moment"
                f"{_of_producers(needed - copies[broker], seconds)} "
                f"and has {bytes_text(usable)} free{stays if needed <= usable else ''}"
            )
    coming = {c.key: c for wave in waves for c in wave if not full.isdisjoint(c.adding)}
    for change, broker in _misfits(facts, waves, except_on=full):
        coming.setdefault(change.key, change)
        bad.append(
            f"{change.key} ({bytes_text(change.size_bytes)}) fits in no log directory of broker "
            f"{broker}; the roomiest has {bytes_text(facts.roomiest_bytes[broker])} free"
        )
    if bad:
        fits = all(copies[b] <= facts.usable_bytes[b] * share for b in full)
        less = "move less to it, free its disk first" if full else "free one of them first"
        less = f"raise the throttle, {less}" if full and fits else less
        grown = [
            replace(c, size_bytes=c.size_bytes + written.get(c.key, 0)) for c in coming.values()
        ]
        advice = f"{less}{_elsewhere(facts, grown, peak)}"
        # Retention may delete as much as producers write.
        is_grown_only = fits and len(bad) == len(full)
        verdict = Verdict.WARN if is_grown_only else Verdict.FAIL
        return check_of("disk", bad, fine="", verdict=verdict, advice=advice)
    fine = "both copies fit in every wave"
    return check_of("disk", unknown, fine=fine, verdict=Verdict.WARN)


def _of_producers(written: int, seconds: float | None) -> str:
    """How much of what a broker needs is not there yet."""
    if not written or not seconds:
        return ""
    lasts = duration_text(seconds * 1000)
    return f", {bytes_text(written)} of it for records that producers write in {lasts} of moving,"


def _misfits(
    facts: ClusterFacts, waves: Waves, *, except_on: Collection[int]
) -> Iterable[tuple[PartitionChange, int]]:
    """Replicas that fit in no single directory of a broker, also if all that has left it in
    earlier waves made room in the roomiest."""
    room = {
        broker: int(usable * (1 - facts.disk_reserve))
        for broker, usable in facts.roomiest_bytes.items()
        if broker not in except_on
    }
    for wave in waves:
        for change in wave:
            for broker in change.adding:
                if change.size_bytes > room.get(broker, change.size_bytes):
                    yield change, broker
        for broker, size in bytes_off(wave).items():
            if broker in room:
                room[broker] += size


def _elsewhere(
    facts: ClusterFacts, coming: Sequence[PartitionChange], peak: Mapping[int, int]
) -> str:
    """Which broker could take the most of what finds no room: it has room beside what the plan
    gives it, and no replica of them now or then."""
    takes: dict[int, int] = {}
    roomiest = {b: int(free * (1 - facts.disk_reserve)) for b, free in facts.roomiest_bytes.items()}
    room = {
        broker: int(usable * (1 - facts.disk_reserve)) - peak.get(broker, 0)
        for broker, usable in facts.usable_bytes.items()
        if broker in facts.broker_ids
    }
    for broker in room:
        most = min(room[broker], roomiest.get(broker, room[broker]))
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
