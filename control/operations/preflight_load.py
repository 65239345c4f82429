"""Pre-flight's checks of quantities: disk through every wave, throttle, time. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from control.model.units import byte_rate_text, bytes_text, duration_text
from control.operations.facts import DISK_RESERVE, ClusterFacts
from control.operations.throttle import RATE_MIN_BYTES_PER_S, why_too_long
from control.operations.traffic import (
    busiest,
    bytes_in,
    bytes_off,
    demand_by_broker,
    seconds_of,
    working_rate,
)
from control.operations.verdict import Check, Verdict, check_of
from control.planner.proposal import PartitionChange
from control.planner.waves import WaveRules, plan_waves

TIGHT_SHARE: Final = 0.5
"""A throttle of which producers take more than this is named a slow one."""

TIME: Final = "time"

Waves = Sequence[tuple[PartitionChange, ...]]


def waves_now(facts: ClusterFacts, changes: Sequence[PartitionChange], rules: WaveRules) -> Waves:
    """The waves as the executor cuts them, by sizes as planned, with what their partitions hold
    now: a plan may be days old, as that of a rollback is."""
    return [facts.sized(wave) for wave in plan_waves(changes, rules)]


def peak_bytes(waves: Waves) -> dict[int, int]:
    """The most that each broker holds beyond what it holds now: in a wave both copies exist, and
    what left in earlier waves has made room."""
    now: dict[int, int] = {}
    peak: dict[int, int] = {}
    for wave in waves:
        for broker, size in bytes_in(wave).items():
            now[broker] = now.get(broker, 0) + size
            peak[broker] = max(peak.get(broker, 0), now[broker])
        for broker, size in bytes_off(wave).items():
            now[broker] = now.get(broker, 0) - size
    return peak


def check_disk(facts: ClusterFacts, waves: Waves) -> Check:
    """Whether every broker has room at its worst moment."""
    peak = peak_bytes(waves)
    full, bad, unknown = set(), [], []
    for broker, needed in sorted(peak.items()):
        usable = facts.usable_bytes.get(broker)
        if usable is None:
            unknown.append(f"broker {broker} does not tell its free space")
        elif needed > usable * (1 - DISK_RESERVE):
            full.add(broker)
            bad.append(
                f"broker {broker} needs {bytes_text(needed)} more at its fullest moment "
                f"and has {bytes_text(usable)} free"
            )
    if bad:
        coming = [c for wave in waves for c in wave if not full.isdisjoint(c.adding)]
        bad[-1] += f"; move less to it, free its disk first{_elsewhere(facts, coming, peak)}"
        return check_of("disk", bad, fine="")
    fine = "both copies fit in every wave"
    return check_of("disk", unknown, fine=fine, verdict=Verdict.WARN)


def _elsewhere(
    facts: ClusterFacts, coming: Sequence[PartitionChange], peak: Mapping[int, int]
) -> str:
    """Which broker could take the most of what finds no room: it has room beside what the plan
    gives it, and no replica of them now or then."""
    takes: dict[int, int] = {}
    room = {
        broker: int(usable * (1 - DISK_RESERVE)) - peak.get(broker, 0)
        for broker, usable in facts.usable_bytes.items()
        if broker in facts.broker_ids
    }
    for broker in room:
        takes[broker] = sum(
            broker not in (*change.before, *change.after) and change.size_bytes <= room[broker]
            for change in coming
        )
    best = max(room, key=lambda broker: (takes[broker], room[broker], -broker), default=None)
    if best is None or not takes[best]:
        return ""
    some = "" if takes[best] == len(coming) else f"{takes[best]} of {len(coming)} "
    return (
        f", or move {some}to broker {best}, which has {bytes_text(facts.usable_bytes[best])} free"
    )


def check_throttle(facts: ClusterFacts, waves: Waves, rate: int | None) -> Check:
    """Whether copies can catch up with producers at this throttle (KIP-73)."""
    name = "throttle"
    if rate is None:
        reason = "none: the move may take all bandwidth"
        return Check(name=name, verdict=Verdict.WARN, reason=reason)
    if rate < RATE_MIN_BYTES_PER_S:
        least = byte_rate_text(RATE_MIN_BYTES_PER_S)
        reason = f"{byte_rate_text(rate)} is below Kafka's minimum of {least}"
        return Check(name=name, verdict=Verdict.FAIL, reason=reason)
    too_long = why_too_long(waves)
    if too_long is not None:
        return Check(name=name, verdict=Verdict.FAIL, reason=too_long)
    worst = max(waves, key=lambda wave: _demand(facts, wave)[1], default=())
    broker, demand = _demand(facts, worst)
    shown, taken = byte_rate_text(rate), byte_rate_text(demand)
    if demand >= rate:
        works = byte_rate_text(working_rate(worst, facts.produced))
        reason = (
            f"producers write {taken} that broker {broker} must carry for the moving partitions: "
            f"at {shown} the copies never catch up; {works} works"
        )
        return Check(name=name, verdict=Verdict.FAIL, reason=reason)
    if demand > rate * TIGHT_SHARE:
        reason = f"{shown} per broker, of which producers take {taken} on broker {broker}: slow"
        return Check(name=name, verdict=Verdict.WARN, reason=reason)
    missing = sum(c.key not in facts.produced for wave in waves for c in wave if c.adding)
    if missing:
        reason = f"{shown} per broker; the produce rate of {missing} partitions is unknown"
        return Check(name=name, verdict=Verdict.WARN, reason=reason)
    reason = f"{shown} per broker; producers take at most {taken} of it"
    return Check(name=name, verdict=Verdict.OK, reason=reason)


def check_time(takes: tuple[float, float] | None, rate: int | None) -> Check:
    """How long it takes, as an interval of seconds; null without a throttle."""
    if not takes or not rate:
        reason = "unknown without a throttle: as fast as disks and network go"
        return Check(name=TIME, verdict=Verdict.OK, reason=reason)
    span = " to ".join(duration_text(seconds * 1000) for seconds in takes)
    reason = f"≈ {span} at {byte_rate_text(rate)} per broker"
    return Check(name=TIME, verdict=Verdict.OK, reason=reason)


def expected_seconds(
    facts: ClusterFacts, waves: Waves, rate: int | None, *, is_adaptive: bool = False
) -> tuple[float, float] | None:
    """(soonest, latest) at this throttle, or beginning at it; null without one."""
    if not rate or rate < 0:
        return None
    return seconds_of(waves, rate=rate, produced=facts.produced, is_adaptive=is_adaptive)


def _demand(facts: ClusterFacts, wave: tuple[PartitionChange, ...]) -> tuple[int, float]:
    return busiest(demand_by_broker(wave, facts.produced)) or (-1, 0.0)
