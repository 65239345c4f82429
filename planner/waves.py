"""Cutting a proposal into waves: few partitions at a time, so that a move can be stopped early."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from planner.proposal import PartitionChange

LOOK_AHEAD: Final = 500
"""So many partitions whose brokers are taken are passed over before a wave is left as it is."""


class SizeOrder(StrEnum):
    """SMALL: what is soon done comes first. LARGE: what takes longest does."""

    SMALL = "small"
    LARGE = "large"


class LeaderTurn(StrEnum):
    """When partitions that get another preferred leader have their turn: ANY as their size says,
    FIRST before all others, LAST after them."""

    ANY = "any"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveRules:
    """How many partitions move at a time, and in which order."""

    partitions: int = 20
    """At most so many on the cluster."""
    per_broker: int | None = None
    """At most so many to which one broker sends (as the leader) or of which it receives a copy."""
    order: SizeOrder = SizeOrder.SMALL
    leaders: LeaderTurn = LeaderTurn.ANY
    spread_s: float = 300.0
    """Partitions that are written to are begun over at most so many seconds for their producers'
    sake (control.operations.reassignment.spreading); 0: as soon as may be."""


USUAL_WAVES: Final = WaveRules()
Wave = tuple[PartitionChange, ...]


def plan_waves(
    changes: Sequence[PartitionChange], rules: WaveRules = USUAL_WAVES
) -> tuple[Wave, ...]:
    """Stage by stage: changes that move no data first, all at once (new leaders among them last,
    where these have the last turn); then the others in the order of the rules.

    Deterministic, so a restarted executor cuts the same waves.

    :raises ValueError: a wave needs at least one partition, of each broker as well.
    """
    for least in (rules.partitions, rules.per_broker):
        if least is not None and least < 1:
            raise ValueError(f"a wave has at least one partition, not {least}")
    stages: dict[int, list[PartitionChange]] = {}
    for change in changes:
        stages.setdefault(change.stage, []).append(change)
    return tuple(wave for _, stage in sorted(stages.items()) for wave in _of_stage(stage, rules))


def _of_stage(changes: Sequence[PartitionChange], rules: WaveRules) -> Iterable[Wave]:
    may_be_late = rules.leaders is LeaderTurn.LAST
    free = [change for change in changes if not change.adding]
    late = tuple(c for c in free if may_be_late and c.has_new_leader)
    early = tuple(c for c in free if not (may_be_late and c.has_new_leader))
    sign = -1 if rules.order is SizeOrder.LARGE else 1
    moving = sorted(
        (c for c in changes if c.adding),
        key=lambda c: (_turn(c, rules.leaders), sign * c.moved_bytes, c.key),
    )
    return filter(None, (early, *_cut(moving, rules), late))


def _turn(change: PartitionChange, leaders: LeaderTurn) -> int:
    if leaders is LeaderTurn.ANY:
        return 0
    return int(change.has_new_leader is (leaders is LeaderTurn.LAST))


def _cut(moving: list[PartitionChange], rules: WaveRules) -> Iterable[Wave]:
    """In their order; with a limit per broker what does not fit waits for a later wave."""
    if rules.per_broker is None:
        for start in range(0, len(moving), rules.partitions):
            yield tuple(moving[start : start + rules.partitions])
        return
    while moving:
        wave, moving = _next_wave(moving, rules.partitions, rules.per_broker)
        yield wave


def _next_wave(
    moving: list[PartitionChange], partitions: int, per_broker: int
) -> tuple[Wave, list[PartitionChange]]:
    """(the wave, what is left, in its order)"""
    wave: list[PartitionChange] = []
    passed: list[PartitionChange] = []
    busy: dict[int, int] = {}
    for number, change in enumerate(moving):
        if len(wave) == partitions or len(passed) == LOOK_AHEAD:
            return tuple(wave), passed + moving[number:]
        brokers = {change.sender, *change.adding}
        if any(busy.get(broker, 0) >= per_broker for broker in brokers):
            passed.append(change)
            continue
        wave.append(change)
        busy |= {broker: busy.get(broker, 0) + 1 for broker in brokers}
    return tuple(wave), passed
