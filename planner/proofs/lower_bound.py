"""The fewest bytes, and replicas, that any plan must move to reach the same balance: proven bounds.

Replica numbers per partition do not change, so bytes that leave brokers equal bytes that arrive.
Three relaxations, each true for every assignment within the reached balance (replicas per broker
in [min, max] of those with the same share, bytes at most theirs, no replica left on removed
brokers, racks as possible):

* out: a removed broker loses all it has; a broker above the largest bytes loses the excess, and
  one above the most replicas loses that many, at least its smallest ones; one that receives more
  traffic than the largest loses the excess, at least with the fewest bytes per byte a second (the
  last replica in part: a fractional knapsack); where every topic is even afterwards, one above a
  topic's share loses that many of the topic, at least the smallest;
* in: a broker below the fewest replicas receives that many distinct partitions, at least the
  smallest that it does not hold;
* racks: a partition on k racks too few moves at least k replicas, off one of its crowded racks.

Out and racks are joined: what leaves a crowded rack may at the same time be what a broker must
lose, but no more of it than that broker must lose and than such partitions have there, and each
partition helps one broker at a time (proofs.shared_bytes). So

    moved ≥ out + racks - min(racks, shared),

and where racks hold one replica of every partition each, the same rack by rack
(proofs.rack_bound). Replicas are counted in the same way, each for one: where bytes are
to be lost, the largest replicas are the fewest.

Worked example: brokers hold 100, 100 and 0 bytes, and the plan reaches at most 70. Two brokers
lose at least 30 each: 60 bytes move, whatever the plan.
"""

import numpy as np

from planner.columns import Columns, Flags, Floats, Numbers
from planner.proofs.demand import Demand
from planner.proofs.rack_bound import bytes_by_rack
from planner.proofs.shared_bytes import Crowded, shared_bytes
from planner.search.shares import Reached
from planner.search.topic_counts import TopicCounts


def lower_bound_bytes(demand: Demand) -> int:
    """Bytes that every plan must move."""
    columns, removed = demand.columns, demand.removed
    out = _bytes_leaving(columns, removed, demand.reached, demand.leaves)
    least = np.zeros(columns.brokers, dtype=np.int64)
    if demand.most_in is not None:
        least = _with_traffic(columns, demand.most_in)
    if demand.topics is not None:
        least = np.maximum(least, _of_topics(columns, demand.topics))
    out = np.where(removed, out, np.maximum(out, least))
    return _joined(demand, out, _bytes_arriving(columns, removed, demand.reached))


def lower_bound_replicas(demand: Demand) -> int:
    """Replicas that every plan must move."""
    columns, removed, reached = demand.columns, demand.removed, demand.reached
    count = columns.count()
    out = np.maximum(count - reached.count_max, 0)
    out = np.maximum(out, _fewest(columns, columns.size, columns.held() - reached.bytes_max))
    if demand.most_in is not None:
        busier = columns.traffic_in() - demand.most_in
        out = np.maximum(out, _fewest(columns, columns.bytes_in, busier))
    if demand.topics is not None:
        out = np.maximum(out, _too_many(demand.topics).sum(axis=0))
    asked = np.bincount(columns.on[demand.leaves[columns.of]], minlength=columns.brokers)
    arriving = np.where(removed, 0, np.maximum(reached.count_min - count, 0))
    return _joined(demand.each_as_one(), np.where(removed, asked, out), arriving)


def _joined(demand: Demand, out: Numbers, arriving: Numbers) -> int:
    """Replicas that leave, arrive and change racks, each counted once. `out`, `arriving`: per
    broker, what it must lose and receive."""
    columns, mended = demand.columns, demand.mended
    racks, crowded = _racks(demand)
    by_broker = np.bincount(
        crowded.on, weights=columns.size[crowded.of], minlength=columns.brokers
    ).astype(np.int64)
    shared = min(racks, int(np.minimum(out, by_broker).sum()), shared_bytes(crowded, out))
    whole = max(int(out.sum()) + racks - shared, int(arriving.sum()))
    number = demand.rack[1]
    is_fixed = number > 1 and bool(mended.all()) and bool((columns.width == number).all())
    return max(whole, bytes_by_rack(columns, demand.rack, out, arriving)) if is_fixed else whole


def added_replicas(columns: Columns, factor: int) -> int:
    """Copies that a replication factor takes."""
    return int(np.maximum(factor - columns.width, 0).sum())


def added_bytes(columns: Columns, factor: int) -> int:
    """Bytes that a replication factor takes: whatever is placed where, the new copies travel."""
    missing = np.maximum(factor - columns.width, 0)
    return int((missing * columns.size).sum())


def _bytes_leaving(columns: Columns, removed: Flags, reached: Reached, leaves: Flags) -> Numbers:
    """Per broker, the bytes that it must lose."""
    held, count = columns.held(), columns.count()
    sizes = columns.size[columns.of]
    order = np.lexsort((sizes, columns.on))
    running = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes[order])))
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(count)))[:-1]
    excess = np.maximum(count - reached.count_max, 0)
    smallest = running[starts + excess] - running[starts]
    needed = np.maximum(np.maximum(held - reached.bytes_max, smallest), 0)
    asked = np.where(leaves[columns.of], sizes, 0)
    leaving = np.bincount(columns.on, weights=asked, minlength=columns.brokers).astype(np.int64)
    return np.where(removed, leaving, needed)


def _with_traffic(columns: Columns, most: int) -> Numbers:
    """Per broker, the fewest bytes that take its arriving traffic down to `most`."""
    least = np.zeros(columns.brokers, dtype=np.int64)
    load = columns.traffic_in()
    for broker in np.flatnonzero(load > most).tolist():
        here = columns.of[columns.on == broker]
        size, rate = columns.size[here], columns.bytes_in[here]
        order = np.argsort(size / np.maximum(rate, 1e-9), kind="stable")
        carried = np.cumsum(rate[order])
        excess = int(load[broker]) - most
        whole = int(np.searchsorted(carried, excess, side="left"))
        before = int(carried[whole - 1]) if whole else 0
        part = (excess - before) * int(size[order][whole]) // max(1, int(rate[order][whole]))
        least[broker] = int(size[order][:whole].sum()) + part
    return least


def _of_topics(columns: Columns, topics: TopicCounts) -> Numbers:
    """Per broker, the smallest replicas of each topic that it has too many of."""
    least = np.zeros(columns.brokers, dtype=np.int64)
    excess = _too_many(topics)
    code = topics.of[columns.of] * columns.brokers + columns.on
    sizes = columns.size[columns.of]
    order = np.lexsort((sizes, code))
    edges = np.searchsorted(code[order], np.arange(excess.size + 1))
    for topic, broker in np.argwhere(excess > 0).tolist():
        first = int(edges[topic * columns.brokers + broker])
        smallest = order[first : first + int(excess[topic, broker])]
        least[broker] += int(sizes[smallest].sum())
    return least


def _too_many(topics: TopicCounts) -> Numbers:
    """Replicas of each topic (row) that each broker has above the topic's share."""
    return np.where(topics.target, np.maximum(topics.count - topics.high, 0), 0)


def _bytes_arriving(columns: Columns, removed: Flags, reached: Reached) -> Numbers:
    """Per broker, the bytes that it must receive."""
    smallest_first = np.argsort(columns.size, kind="stable")
    needed = np.zeros(columns.brokers, dtype=np.int64)
    missing = np.where(removed, 0, np.maximum(reached.count_min - columns.count(), 0))
    for broker in np.flatnonzero(missing).tolist():
        here = columns.of[columns.on == broker]
        first = smallest_first[: missing[broker] + len(here)]
        others = first[~np.isin(first, here)][: missing[broker]]
        needed[broker] = int(columns.size[others].sum())
    return needed


def _fewest(columns: Columns, of_partition: Numbers, excess: Numbers) -> Numbers:
    """Per broker, the fewest replicas that together have so much (where it is above zero)."""
    fewest = np.zeros(columns.brokers, dtype=np.int64)
    for broker in np.flatnonzero(excess > 0).tolist():
        here = np.sort(of_partition[columns.of[columns.on == broker]])[::-1]
        fewest[broker] = 1 + np.searchsorted(np.cumsum(here), excess[broker])
    return fewest


def _racks(demand: Demand) -> tuple[int, Crowded]:
    """(what repairs move, the replicas that a repair may take)."""
    columns, removed, (rack, racks) = demand.columns, demand.removed, demand.rack
    nothing = np.zeros(0, dtype=np.int64)
    if racks == 1 or not len(columns.width):
        return 0, Crowded(of=nothing, on=nothing, weight=nothing)
    on_rack: Floats = np.zeros((len(columns.width), racks + 1), dtype=np.int16)
    places = np.where(removed[columns.on], racks, rack[columns.on])
    np.add.at(on_rack, (columns.of, places), 1)
    used = (on_rack[:, :racks] > 0).sum(axis=1)
    missing = np.where(demand.mended, np.maximum(np.minimum(columns.width, racks) - used, 0), 0)
    is_crowded = (missing[columns.of] > 0) & (
        removed[columns.on] | (on_rack[columns.of, places] > 1)
    )
    weight = missing * columns.size
    crowded = Crowded(of=columns.of[is_crowded], on=columns.on[is_crowded], weight=weight)
    return int(weight.sum()), crowded
