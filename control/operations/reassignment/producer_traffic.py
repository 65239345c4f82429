"""Traffic of producers to moving partitions, and the throttle that it needs (KIP-73). Pure.

A throttle limits what a broker sends (as leader) and receives (as follower) of throttled replicas,
new records included. A copy that is slower than the producers never catches up, so the move would
never end.

Worked example: producers write 4 MiB/s to a partition that moves from (1, 2) to (3, 2). Broker 3
receives at least 4 MiB/s; broker 1, its leader, sends 4 MiB/s to each of 2 and 3: 8 MiB/s. A
throttle of 6 MiB/s would starve the copy; one of 10 leaves 2 MiB/s to catch up with.
"""

from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from math import log, log1p
from typing import Final

from control.model.ids import TopicPartition
from control.operations.reassignment.spreading import NOT_SPREAD, SpreadEstimate
from planner.proposal import PartitionChange

CATCH_UP_SHARE: Final = 0.25
"""A working throttle leaves at least this share of what producers write for the old data."""
AUTO_MIN_BYTES_PER_S: Final = 10 << 20
AUTO_FLOOR_BYTES_PER_S: Final = 1 << 20
"""An automatic rate begins between the others, and is not halved below this."""
AUTO_MAX_BYTES_PER_S: Final = 100 << 20
AUTO_SECONDS: Final = 600
EARNED: Final = 0.1
"""Share of every second: so much more may come than the throttle lets through."""
SETTLE_S: Final = 10.0
"""After an automatic rate changed, before its effect shows (Kafka averages throttles over 10 s)."""
UP: Final = 1.25
"""By so much an automatic rate grows at a time."""
_MIB: Final = 1 << 20


def demands(
    changes: Iterable[PartitionChange], produced: Mapping[TopicPartition, float]
) -> tuple[dict[int, float], dict[int, float]]:
    """Bytes per second of new records that each broker must (receive, send) for the moves;
    partitions whose rate is not known count as idle."""
    receives: dict[int, float] = {}
    sends: dict[int, float] = {}
    for change in changes:
        rate = produced.get(change.key, 0.0)
        if not rate or not change.adding:
            continue
        for broker in change.adding:
            receives[broker] = receives.get(broker, 0.0) + rate
        copies = len({*change.before, *change.after}) - 1
        sends[change.sender] = sends.get(change.sender, 0.0) + rate * copies
    return receives, sends


def demand_by_broker(
    changes: Iterable[PartitionChange], produced: Mapping[TopicPartition, float]
) -> dict[int, float]:
    """Bytes per second that each broker must receive or send, whichever is more."""
    receives, sends = demands(changes, produced)
    brokers = receives.keys() | sends.keys()
    return {b: max(receives.get(b, 0.0), sends.get(b, 0.0)) for b in sorted(brokers)}


def busiest(demand: Mapping[int, float]) -> tuple[int, float] | None:
    """The broker with the largest demand, and how large; None when nobody writes."""
    if not demand:
        return None
    broker = max(demand, key=lambda b: (demand[b], -b))
    return broker, demand[broker]


def working_rate(
    changes: Iterable[PartitionChange], produced: Mapping[TopicPartition, float]
) -> int:
    """The smallest sensible throttle, in whole MiB/s; 0 when nobody writes."""
    most = busiest(demand_by_broker(changes, produced))
    if most is None:
        return 0
    return -int(-most[1] * (1 + CATCH_UP_SHARE) // _MIB) * _MIB


def auto_rate(changes: Iterable[PartitionChange], produced: Mapping[TopicPartition, float]) -> int:
    """Bytes/s to begin with: the busiest destination is done in ten minutes, within 10-100 MiB/s,
    and never less than what leaves copies room to catch up with producers."""
    changes = tuple(changes)
    wanted = max(bytes_in(changes).values(), default=0) // AUTO_SECONDS
    wanted = min(max(wanted, AUTO_MIN_BYTES_PER_S), AUTO_MAX_BYTES_PER_S)
    return max(wanted, 2 * working_rate(changes, produced))


def bytes_in(changes: Iterable[PartitionChange]) -> dict[int, int]:
    """Bytes that each broker receives as copies."""
    arriving: dict[int, int] = {}
    for change in changes:
        for broker in change.adding:
            arriving[broker] = arriving.get(broker, 0) + change.size_bytes
    return arriving


def bytes_off(changes: Iterable[PartitionChange]) -> dict[int, int]:
    """Bytes that each broker drops once the copies are complete."""
    leaving: dict[int, int] = {}
    for change in changes:
        for broker in change.removing:
            leaving[broker] = leaving.get(broker, 0) + change.size_bytes
    return leaving


def seconds_of(
    waves: Iterable[tuple[PartitionChange, ...]],
    *,
    rate: int,
    produced: Mapping[TopicPartition, float],
    is_adaptive: bool = False,
    lower: Mapping[int, int] | None = None,
    spread: SpreadEstimate = NOT_SPREAD,
) -> tuple[float, float]:
    """(soonest, latest), meant to hold the truth eight times in ten; how often they do on a
    cluster is learned (control.operations.reassignment.calibration; benchmarks/moves.py).

    Each wave waits for its busiest link, at what producers leave of the rate; what it costs to
    set the throttle, to notice that copies are complete and to clean up comes on top, and in large
    waves what each partition costs. What arrives last may pass the throttle by
    (``executor.catching_up``). An adaptive throttle may have grown meanwhile, as
    ``executor.adaptive_throttle`` lets it. `lower`: brokers whose rate is less, and stays.
    `spread`: how long each wave waits for producers' sake; its last partition is copied after that.
    """
    copying, held, ends, count, many = 0.0, 0.0, 0.0, 0, 0
    lower = lower or {}
    for wave, wave_s in zip(waves, chain(spread.waves_s, repeat(0.0)), strict=False):
        demand = demand_by_broker(wave, produced)
        count += 1
        many += max(len(wave) - FEW, 0)
        takes = {
            broker: _link_seconds(size, lower.get(broker, rate), demand.get(broker, 0.0))
            for broker, size in _link_bytes(wave).items()
        }
        takes_s = max(takes.values(), default=0.0)
        copying += takes_s
        held += max((takes[broker] for broker in takes.keys() & lower.keys()), default=0.0)
        last_s = max((change.size_bytes / rate for change in wave if change.adding), default=0.0)
        ends += max(takes_s, wave_s + last_s)
    grown = _GROWTH_S * log1p(copying / _GROWTH_S)
    soonest = max(grown, held) if is_adaptive else copying
    low, high = (
        around + count * each_wave + many * each_partition
        for around, each_wave, each_partition in zip(_AROUND_S, _WAVE_S, _PARTITION_S, strict=True)
    )
    soonest = max(soonest * _SPREAD[0], sum(spread.waves_s)) + spread.elected_s
    return soonest + low, (ends + spread.elected_s) * _SPREAD[1] + high


_AROUND_S: Final = (0.25, 1.1)
"""Before the first and after the last wave."""
_WAVE_S: Final = (0.15, 0.5)
"""Of up to FEW partitions."""
FEW: Final = 20
_PARTITION_S: Final = (0.002, 0.012)
"""Each beyond that: replicas are made, join the ISR and are removed, however little they hold."""
_SPREAD: Final = (1 / (1 + EARNED), 1.1)
_GROWTH_S: Final = SETTLE_S / log(UP)
"""T: a rate that grows by UP every SETTLE_S has moved rate · T · (e^(t/T) - 1) bytes after t."""


def _link_seconds(size: int, rate: int, demand: float) -> float:
    """At what producers leave of the rate, at least a tenth of it."""
    return size / max(rate - demand, 0.1 * rate, 1.0)


def _link_bytes(changes: Iterable[PartitionChange]) -> dict[int, int]:
    """The larger of what a broker receives and, as a leader, sends."""
    receives = bytes_in(changes := tuple(changes))
    sends: dict[int, int] = {}
    for change in changes:
        sends[change.sender] = sends.get(change.sender, 0) + change.moved_bytes
    brokers = receives.keys() | sends.keys()
    return {b: max(receives.get(b, 0), sends.get(b, 0)) for b in brokers}
