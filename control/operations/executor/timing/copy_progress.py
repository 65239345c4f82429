"""Each partition that moves by itself: bytes, rate, time left. Pure.

A copy that shares its brokers with others gets faster as these arrive. Its own rate says how long
it takes at the latest; all that its leader sends and its new brokers receive says so too. The
smaller of the two is told.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from control.model.ids import TopicPartition
from control.move.events import MovingPartition
from control.operations.executor.catching_up import Replica
from control.operations.executor.timing.eta import RateWindow
from control.operations.reassignment.calibration import Interval
from planner.proposal import PartitionChange

Link = tuple[str, int]
"""``sends`` or ``receives``, and the broker that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Bytes that have arrived of a partition's new replicas, and their total."""

    key: TopicPartition
    bytes_done: int
    bytes_total: int
    links: Mapping[Link, tuple[int, int]] = field(default_factory=dict)
    """The same of each link that carries a part of it: (done, total)."""


class CopyWatch:
    """Remembers how fast each of them gets on, and all of them together over each link."""

    def __init__(self) -> None:
        self._rates: dict[TopicPartition, RateWindow] = {}
        self._links: dict[Link, _LinkWindow] = {}

    def begin_anew(self) -> None:
        """Forgets the measured rates."""
        self._rates.clear()
        self._links.clear()

    def look(
        self, copies: Sequence[Copy], now_s: float, *, shown_max: int
    ) -> tuple[MovingPartition, ...]:
        """The first `shown_max` of all that move at this moment, in their order; `now_s` is a
        monotonic clock in seconds. What is not among them any more is forgotten."""
        carried: dict[Link, dict[TopicPartition, tuple[int, int]]] = {}
        for copy in copies:
            for link, part in copy.links.items():
                carried.setdefault(link, {})[copy.key] = part
        self._links = {link: self._links.get(link, _LinkWindow()) for link in carried}
        bounds = {link: self._links[link].look(parts, now_s) for link, parts in carried.items()}
        shown = copies[:shown_max]
        self._rates = {copy.key: self._rates.get(copy.key, RateWindow()) for copy in shown}
        return tuple(_moving(copy, self._rates[copy.key], bounds, now_s) for copy in shown)


@dataclass(slots=True)
class _LinkWindow:
    """How fast all that one link carries comes together."""

    _rate: RateWindow = field(default_factory=RateWindow)
    _done: dict[TopicPartition, int] = field(default_factory=dict)
    _came: int = 0

    def look(
        self, parts: Mapping[TopicPartition, tuple[int, int]], now_s: float
    ) -> Interval | None:
        """Until all of it is there; None while nothing can be said."""
        for key, (done, _) in parts.items():
            self._came += max(done - self._done.get(key, done), 0)
        self._done = {key: done for key, (done, _) in parts.items()}
        self._rate.add(now_s, self._came)
        return self._rate.eta_s(sum(total - done for done, total in parts.values()))


def copy_of(
    change: PartitionChange, *, size: int, copied: Mapping[Replica, int], leader: int | None
) -> Copy:
    """Progress of a moving partition of this size, in all and over each link."""
    came = {broker: min(size, copied.get((change.key, broker), 0)) for broker in change.adding}
    links: dict[Link, tuple[int, int]] = {
        ("receives", broker): (done, size) for broker, done in came.items()
    }
    done, total = sum(came.values()), size * len(came)
    if leader is not None:
        links["sends", leader] = done, total
    return Copy(key=change.key, bytes_done=done, bytes_total=total, links=links)


def missing_bytes(
    changes: Iterable[PartitionChange],
    sizes: Mapping[TopicPartition, int],
    copied: Mapping[Replica, int],
) -> dict[Replica, int]:
    """Bytes that each new replica lacks."""
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


def _moving(
    copy: Copy, rates: RateWindow, bounds: Mapping[Link, Interval | None], now_s: float
) -> MovingPartition:
    rates.add(now_s, copy.bytes_done)
    rate = rates.rate_bytes_per_s()
    left = rates.eta_s(copy.bytes_total - copy.bytes_done)
    together = [bounds[link] for link in copy.links]
    known = [bound for bound in together if bound is not None]
    if left is not None and known and len(known) == len(together):
        soonest, latest = max(low for low, _ in known), max(high for _, high in known)
        left = min(left[0], soonest), min(left[1], latest)
    return MovingPartition(
        topic=copy.key.topic,
        partition=copy.key.partition,
        bytes_done=copy.bytes_done,
        bytes_total=copy.bytes_total,
        rate_bytes_per_s=None if rate is None else round(rate, 1),
        eta_s_low=None if left is None else left[0],
        eta_s_high=None if left is None else left[1],
    )
