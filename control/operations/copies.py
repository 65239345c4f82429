"""Each partition that moves by itself: bytes, rate, time left. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from control.model.ids import TopicPartition
from control.operations.catching_up import Replica
from control.operations.eta import RateWindow
from control.operations.events import MovingPartition
from control.planner.proposal import PartitionChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """What has arrived of a partition's new replicas, and how much that will be in all."""

    key: TopicPartition
    bytes_done: int
    bytes_total: int


class CopyWatch:
    """Remembers how fast each of them gets on."""

    def __init__(self) -> None:
        self._rates: dict[TopicPartition, RateWindow] = {}

    def look(self, copies: Sequence[Copy], now_s: float) -> tuple[MovingPartition, ...]:
        """All that move at this moment, in their order; `now_s` is a monotonic clock in
        seconds. Who is not among them any more is forgotten."""
        self._rates = {copy.key: self._rates.get(copy.key, RateWindow()) for copy in copies}
        return tuple(_moving(copy, self._rates[copy.key], now_s) for copy in copies)


def missing_bytes(
    changes: Iterable[PartitionChange],
    sizes: Mapping[TopicPartition, int],
    copied: Mapping[Replica, int],
) -> dict[Replica, int]:
    """What each of their new replicas lacks."""
    return {
        (change.key, broker): max(sizes[change.key] - copied.get((change.key, broker), 0), 0)
        for change in changes
        for broker in change.adding
    }


def copying_s(
    missing: Mapping[Replica, int], rate: int, lower: Mapping[int, int] | None = None
) -> float:
    """Seconds until the last broker has all that its new replicas lack, at `rate` bytes per second
    each, or a lower one."""
    by_broker: dict[int, int] = {}
    for (_, broker), lacking in missing.items():
        by_broker[broker] = by_broker.get(broker, 0) + lacking
    rates = lower or {}
    return max((n / (rates.get(broker) or rate) for broker, n in by_broker.items()), default=0.0)


def _moving(copy: Copy, rates: RateWindow, now_s: float) -> MovingPartition:
    rates.add(now_s, copy.bytes_done)
    rate = rates.rate_bytes_per_s()
    eta = rates.eta_s(copy.bytes_total - copy.bytes_done)
    return MovingPartition(
        topic=copy.key.topic,
        partition=copy.key.partition,
        bytes_done=copy.bytes_done,
        bytes_total=copy.bytes_total,
        rate_bytes_per_s=None if rate is None else round(rate, 1),
        eta_s_low=None if eta is None else round(eta[0], 1),
        eta_s_high=None if eta is None else round(eta[1], 1),
    )
