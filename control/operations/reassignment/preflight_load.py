"""Pre-flight's checks of quantities: throttle and time. Pure."""

from collections.abc import Sequence
from typing import Final

from control.model.units import byte_rate_text, counted, duration_text
from control.move.check import Check, Verdict, check_of
from control.move.throttle import RATE_MIN_BYTES_PER_S, why_too_long
from control.operations.reassignment.existing_throttles import lower_rates, standing_words, starved
from control.operations.reassignment.facts import ClusterFacts
from control.operations.reassignment.producer_traffic import (
    busiest,
    demand_by_broker,
    seconds_of,
    working_rate,
)
from control.operations.reassignment.spreading import (
    NOT_SPREAD,
    TOLD_FROM_S,
    SpreadEstimate,
    Writing,
    estimate_spread,
)
from planner.proposal import PartitionChange
from planner.waves import WaveRules, plan_waves

TIGHT_SHARE: Final = 0.5
"""A throttle of which producers take more than this is named a slow one."""

TIME: Final = "time"
THROTTLE: Final = "throttle"

Waves = Sequence[tuple[PartitionChange, ...]]


def waves_now(facts: ClusterFacts, changes: Sequence[PartitionChange], rules: WaveRules) -> Waves:
    """The waves as the executor cuts them, by sizes as planned, with what their partitions hold
    now: a plan may be days old, as that of a rollback is."""
    return [facts.as_now(wave) for wave in plan_waves(changes, rules)]


def check_throttle(facts: ClusterFacts, waves: Waves, rate: int | None) -> Check:
    """Whether copies can catch up with producers at this throttle (KIP-73)."""
    name = THROTTLE
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
    bad, ends = starved(facts.standing_rates, waves, facts.produced, rate)
    if demand >= rate:
        works = byte_rate_text(working_rate(worst, facts.produced))
        reason = (
            f"producers write {taken} to the moving partitions through broker {broker}: "
            f"at {shown} the copies never catch up; {works} works"
        )
        bad.insert(0, reason)
    if bad:
        return check_of(name, bad, fine="", advice=ends)
    missing = sum(c.key not in facts.produced for wave in waves for c in wave if c.adding)
    verdict, reason = Verdict.OK, f"{shown} per broker; producers take at most {taken} of it"
    if demand > rate * TIGHT_SHARE:
        verdict = Verdict.WARN
        reason = f"{shown} per broker is slow: producers take {taken} of it on broker {broker}"
    elif missing:
        verdict = Verdict.WARN
        lacking = counted(missing, "partition")
        reason = f"{shown} per broker; the produce rate of {lacking} is unknown"
    if facts.standing_rates:
        verdict, reason = Verdict.WARN, f"{reason}; {standing_words(facts.standing_rates)}"
    return Check(name=name, verdict=verdict, reason=reason)


def lowest_rate(facts: ClusterFacts, waves: Waves, rate: int | None) -> int | None:
    """At which the slowest broker carries copies; null without a throttle."""
    if rate is None:
        return None
    changes = [change for wave in waves for change in wave]
    return min(lower_rates(facts.standing_rates, changes, rate).values(), default=rate)


def check_time(
    takes: tuple[float, float] | None,
    rate: int | None,
    lowest: int | None = None,
    spread: SpreadEstimate = NOT_SPREAD,
) -> Check:
    """How long it takes, as an interval of seconds; null without a throttle. `lowest`: the rate
    of the slowest broker; `spread`: what is waited for on the way."""
    begun = f"; {spread.words}" if spread.words else ""
    if not takes or not rate:
        reason = "unknown without a throttle: as fast as disks and network go"
        if spread.seconds >= TOLD_FROM_S:
            reason = f"at least {duration_text(spread.seconds * 1000)}, plus the time of copying"
        return Check(name=TIME, verdict=Verdict.OK, reason=f"{reason}{begun}")
    span = " to ".join(duration_text(seconds * 1000) for seconds in takes)
    reason = f"≈ {span} at {byte_rate_text(rate)} per broker"
    if lowest is not None and lowest < rate:
        reason += f", {byte_rate_text(lowest)} where one is throttled already"
    return Check(name=TIME, verdict=Verdict.OK, reason=f"{reason}{begun}")


def expected_seconds(
    facts: ClusterFacts,
    waves: Waves,
    rate: int | None,
    *,
    is_adaptive: bool = False,
    spread: SpreadEstimate = NOT_SPREAD,
) -> tuple[float, float] | None:
    """(soonest, latest) at this throttle, or beginning at it; null without one."""
    if not rate or rate < 0:
        return None
    changes = [change for wave in waves for change in wave]
    return seconds_of(
        waves,
        rate=rate,
        produced=facts.produced,
        is_adaptive=is_adaptive,
        lower=lower_rates(facts.standing_rates, changes, rate),
        spread=spread,
    )


def spread_of(facts: ClusterFacts, waves: Waves, rules: WaveRules) -> SpreadEstimate:
    """Over which time it is spread for the sake of those who write to it, as far as is known."""
    leaders = {key: partition.leader for key, partition in facts.partitions.items()}
    writing = Writing(produced=facts.produced, leaders=leaders, backoff_ms=facts.fetch_backoff_ms)
    return estimate_spread(waves, writing, rules.spread_s)


def _demand(facts: ClusterFacts, wave: tuple[PartitionChange, ...]) -> tuple[int, float]:
    return busiest(demand_by_broker(wave, facts.produced)) or (-1, 0.0)
