"""The fewest bytes that any plan must move to reach the same balance: a proven bound.

Replica numbers per partition do not change, so bytes that leave brokers equal bytes that arrive.
Three relaxations, each true for every assignment within the reached balance (replicas per broker
and bytes per broker in [min, max] of those with the same share, no replica left on removed brokers,
racks as possible):

* out: a removed broker loses all it has; a broker above the largest bytes loses the excess, and
  one above the most replicas loses that many, at least its smallest ones; one that receives more
  traffic than the largest loses the excess, at least with the fewest bytes per byte a second (the
  last replica in part: a fractional knapsack); where every topic is even afterwards, one above a
  topic's share loses that many of the topic, at least the smallest;
* in: a broker below the fewest replicas receives that many distinct partitions, at least the
  smallest that it does not hold; one below the fewest bytes receives the difference;
* racks: a partition on k racks too few moves at least k replicas, off one of its crowded racks.

Out and racks are joined: what leaves a crowded rack may at the same time be what a broker must
lose, but no more of it than that broker must lose and than such partitions have there, and each
partition helps one broker at a time (control.planner.shared_bytes). So

    moved ≥ out + racks - min(racks, shared),

and where racks hold one replica of every partition each, the same rack by rack
(control.planner.rack_bound).

Worked example: brokers hold 100, 100 and 0 bytes, and the plan reaches at most 70. Two brokers
lose at least 30 each: 60 bytes move, whatever the plan.
"""

import numpy as np

from control.planner.columns import Columns, Flags, Floats, Numbers, rack_numbers
from control.planner.goals import PlanRequest
from control.planner.rack_bound import bytes_by_rack
from control.planner.shared_bytes import Crowded, shared_bytes
from control.planner.shares import Reached
from control.planner.topic_counts import TopicCounts
from control.planner.topology import Topology


def lower_bound_bytes(
    before: Topology,
    request: PlanRequest,
    reached: Reached,
    columns: Columns,
    *,
    mended: Flags,
    most_in: int | None = None,
    topics: TopicCounts | None = None,
) -> int:
    """Bytes that every plan reaching `reached` (over the brokers that stay) must move.

    `mended`: per partition, whether racks and removed brokers are asked of it. What is outside
    the scope, or what the plan leaves as it is, is not. `most_in`: bytes per second that no broker
    receives more of afterwards. `topics`: counts before, given when the plan leaves every topic
    even.
    """
    removed = np.isin(before.broker_ids, request.remove_brokers)
    out = _leaving(columns, removed, reached, mended)
    least = np.zeros(columns.brokers, dtype=np.int64)
    if most_in is not None:
        least = _with_traffic(columns, most_in)
    if topics is not None:
        least = np.maximum(least, _of_topics(columns, topics))
    out = np.where(removed, out, np.maximum(out, least))
    racks, crowded = _racks(before, columns, removed, mended)
    by_broker = np.bincount(
        crowded.on, weights=columns.size[crowded.of], minlength=columns.brokers
    ).astype(np.int64)
    shared = min(racks, int(np.minimum(out, by_broker).sum()), shared_bytes(crowded, out))
    arriving = _arriving(columns, removed, reached)
    whole = max(int(out.sum()) + racks - shared, int(arriving.sum()))
    rack = rack_numbers(before, removed)
    is_fixed = rack[1] > 1 and bool(mended.all()) and bool((columns.width == rack[1]).all())
    return max(whole, bytes_by_rack(columns, rack, out, arriving)) if is_fixed else whole


def added_bytes(columns: Columns, factor: int) -> int:
    """Bytes that a replication factor takes: whatever is placed where, the new copies travel."""
    missing = np.maximum(factor - columns.width, 0)
    return int((missing * columns.size).sum())


def _leaving(columns: Columns, removed: Flags, reached: Reached, mended: Flags) -> Numbers:
    """Per broker, the bytes that it must lose."""
    held, count = columns.held(), columns.count()
    sizes = columns.size[columns.of]
    order = np.lexsort((sizes, columns.on))
    running = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes[order])))
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(count)))[:-1]
    excess = np.maximum(count - reached.count_max, 0)
    smallest = running[starts + excess] - running[starts]
    needed = np.maximum(np.maximum(held - reached.bytes_max, smallest), 0)
    asked = np.where(mended[columns.of], sizes, 0)
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
    excess = np.where(topics.target, topics.count - topics.high, 0)
    code = topics.of[columns.of] * columns.brokers + columns.on
    sizes = columns.size[columns.of]
    order = np.lexsort((sizes, code))
    edges = np.searchsorted(code[order], np.arange(excess.size + 1))
    for topic, broker in np.argwhere(excess > 0).tolist():
        first = int(edges[topic * columns.brokers + broker])
        smallest = order[first : first + int(excess[topic, broker])]
        least[broker] += int(sizes[smallest].sum())
    return least


def _arriving(columns: Columns, removed: Flags, reached: Reached) -> Numbers:
    """Per broker, the bytes that it must receive."""
    count, held = columns.count(), columns.held()
    smallest_first = np.argsort(columns.size, kind="stable")
    needed = np.zeros(columns.brokers, dtype=np.int64)
    for broker in np.flatnonzero(~removed).tolist():
        missing = max(0, int(reached.count_min[broker] - count[broker]))
        least = max(0, int(reached.bytes_min[broker] - held[broker]))
        if missing:
            here = columns.of[columns.on == broker]
            first = smallest_first[: missing + len(here)]
            others = first[~np.isin(first, here)][:missing]
            least = max(least, int(columns.size[others].sum()))
        needed[broker] = least
    return needed


def _racks(
    before: Topology, columns: Columns, removed: Flags, mended: Flags
) -> tuple[int, Crowded]:
    """(bytes that repairs move, the replicas that a repair may take)."""
    rack, racks = rack_numbers(before, removed)
    nothing = np.zeros(0, dtype=np.int64)
    if racks == 1 or not len(columns.width):
        return 0, Crowded(of=nothing, on=nothing, weight=nothing)
    on_rack: Floats = np.zeros((len(columns.width), racks + 1), dtype=np.int16)
    places = np.where(removed[columns.on], racks, rack[columns.on])
    np.add.at(on_rack, (columns.of, places), 1)
    used = (on_rack[:, :racks] > 0).sum(axis=1)
    missing = np.where(mended, np.maximum(np.minimum(columns.width, racks) - used, 0), 0)
    is_crowded = (missing[columns.of] > 0) & (
        removed[columns.on] | (on_rack[columns.of, places] > 1)
    )
    weight = missing * columns.size
    crowded = Crowded(of=columns.of[is_crowded], on=columns.on[is_crowded], weight=weight)
    return int(weight.sum()), crowded
