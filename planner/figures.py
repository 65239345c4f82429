"""How evenly brokers are loaded: the balance figures of a topology."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from planner.columns import Columns, columns_of
from planner.proposal import PartitionChange
from planner.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Largest, smallest and mean over brokers."""

    max: int
    min: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """Load of one broker; `leaders` counts first replicas."""

    broker: int
    replicas: int
    leaders: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Spreads over the brokers that stay."""

    replicas: Spread
    leaders: Spread
    bytes: Spread
    bytes_in: Spread | None = None
    """Bytes per second that arrive, with replication; null where no rate is known."""
    bytes_out: Spread | None = None
    """Bytes per second that leaders send, to clients and followers; null likewise."""
    topics_uneven: int | None = None
    """Replicas that must move before each topic is even for itself; null where not asked for."""


def loads_of(topology: Topology, columns: Columns | None = None) -> tuple[BrokerLoad, ...]:
    """Replicas, leaders and bytes per broker, in the topology's order."""
    columns = columns or columns_of(topology)
    figures = zip(
        topology.broker_ids,
        columns.count().tolist(),
        columns.leaders().tolist(),
        columns.held().tolist(),
        strict=True,
    )
    return tuple(
        BrokerLoad(broker=b, replicas=replicas, leaders=leaders, bytes=held)
        for b, replicas, leaders, held in figures
    )


def loads_after(
    loads: Sequence[BrokerLoad], changes: Iterable[PartitionChange]
) -> tuple[BrokerLoad, ...]:
    """The loads when these changes are made. Brokers that are not listed are left out."""
    after = {load.broker: [load.replicas, load.leaders, load.bytes] for load in loads}
    for change in changes:
        for brokers, sign in ((change.before, -1), (change.after, 1)):
            for place, broker in enumerate(brokers):
                figures = after.setdefault(broker, [0, 0, 0])
                figures[0] += sign
                figures[1] += sign * (place == 0)
                figures[2] += sign * change.size_bytes
    return tuple(
        BrokerLoad(broker=load.broker, replicas=count, leaders=leaders, bytes=held)
        for load in loads
        for count, leaders, held in (after[load.broker],)
    )


def balance_of(topology: Topology, removed: Collection[int] = ()) -> Balance:
    """The balance over all brokers but the removed ones; an empty broker counts."""
    return balance_among(loads_of(topology), removed)


def balance_among(loads: Iterable[BrokerLoad], removed: Collection[int] = ()) -> Balance:
    """balance_of, from loads."""
    kept = [load for load in loads if load.broker not in removed]
    return Balance(
        replicas=_spread([load.replicas for load in kept]),
        leaders=_spread([load.leaders for load in kept]),
        bytes=_spread([load.bytes for load in kept]),
    )


def traffic_among(
    columns: Columns, broker_ids: Sequence[int], removed: Collection[int] = ()
) -> tuple[Spread, Spread]:
    """Bytes per second that the brokers that stay receive and send."""
    kept = [b for b, id_ in enumerate(broker_ids) if id_ not in removed]
    arriving, leaving = columns.traffic_in().tolist(), columns.traffic_out().tolist()
    return _spread([arriving[b] for b in kept]), _spread([leaving[b] for b in kept])


def _spread(values: list[int]) -> Spread:
    if not values:
        return Spread(max=0, min=0, mean=0.0)
    return Spread(max=max(values), min=min(values), mean=sum(values) / len(values))
