"""The least that any plan must move, by trying all assignments of a small cluster. Plain data in.

It imports nothing of what it judges. An assignment counts where the request allows it, nothing is
left on decommissioned brokers, and every partition is on as many racks as possible, save for what
the judged plan itself leaves; and where it is as even as that plan over all brokers that stay: its
fewest and most replicas, its most bytes; with goal traffic its most bytes per second in, with goal
topics each topic, with goal relieve the bytes on relieved brokers.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, product
from typing import Any, NamedTuple

from tests.oracle.planner.judge import Judge, Key

Sets = Mapping[Key, Collection[int]]
"""The brokers of each partition."""


class Moved(NamedTuple):
    """What an assignment moves."""

    bytes: int
    replicas: int


class Extremes(NamedTuple):
    """Of the brokers that stay."""

    fewest: int
    most: int
    fullest: int
    busiest: int
    relieved: int
    """Most bytes on a broker that is to be relieved."""
    uneven: int
    """Of any topic, the broker with most replicas against the one with fewest, of those that may
    receive; where there are no racks and topics are to be even, else 0."""


class Left(NamedTuple):
    """Partitions that need not be right."""

    crowded: Collection[Key]
    """On fewer racks than possible."""
    staying: Collection[Key]
    """On decommissioned brokers."""


class Every:
    """All assignments of one topology file and one request."""

    def __init__(self, topology: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        self.judge = judge = Judge(topology, request)
        self._now = {key: set(p["replicas"]) for key, p in judge.partitions.items()}
        self.kept = judge.known - judge.removed
        self._racks = Counter(judge.rack[b] for b in self.kept if judge.rack[b] is not None)

    def least(self, after: Sets, left: Left) -> Moved:
        """The fewest bytes, and the fewest replicas, that lead to a balance as good as `after`."""
        limit = self.extremes(after)
        found = [
            self.moved(sets)
            for sets in self.allowed(left)
            if _is_within(self.extremes(sets), limit)
        ]
        assert found, "what was planned is not among all assignments"
        return Moved(min(m.bytes for m in found), min(m.replicas for m in found))

    def allowed(self, left: Left) -> Iterator[Sets]:
        """Assignments that the request allows."""
        keys = list(self._now)
        ways = [list(self._ways(key, left)) for key in keys]
        for chosen in product(*ways):
            yield dict(zip(keys, chosen, strict=True))

    def moved(self, sets: Sets) -> Moved:
        """What leads there."""
        coming = {key: len(set(sets[key]) - now) for key, now in self._now.items()}
        size = {key: p.get("size", 0) for key, p in self.judge.partitions.items()}
        return Moved(sum(size[k] * n for k, n in coming.items()), sum(coming.values()))

    def extremes(self, sets: Sets) -> Extremes:
        """The balance of an assignment."""
        count, held, arriving = Counter[int](), Counter[int](), Counter[int]()
        for key, brokers in sets.items():
            partition = self.judge.partitions[key]
            for broker in brokers:
                count[broker] += 1
                held[broker] += partition.get("size", 0)
                arriving[broker] += partition.get("bytes_in", 0)
        counts = [count[b] for b in self.kept]
        is_asked = self.judge.request["goal"] == "traffic"
        busiest = max(arriving[b] for b in self.kept) if is_asked else 0
        relieved = [held[b] for b in self.judge.request.get("relieve_brokers", ())]
        fullest = max(held[b] for b in self.kept)
        most = max(relieved, default=0)
        return Extremes(min(counts), max(counts), fullest, busiest, most, self._uneven(sets))

    @property
    def has_racks(self) -> bool:
        """Whether partitions are to be on several."""
        return len(self._racks) > 1

    def _uneven(self, sets: Sets) -> int:
        judge = self.judge
        if judge.request["goal"] != "topics" or self.has_racks:
            return 0
        open_ = self.kept - judge.excluded - judge.down - judge.cordoned
        count = Counter((topic, b) for (topic, _), brokers in sets.items() for b in brokers)
        topics = {topic for topic, _ in sets}
        counts = [[count[topic, b] for b in open_] for topic in topics]
        return max((max(max(of_one) - min(of_one), 1) for of_one in counts if of_one), default=1)

    def _ways(self, key: Key, left: Left) -> Iterator[frozenset[int]]:
        judge, now = self.judge, self._now[key]
        hindered = judge.down | judge.cordoned
        if not judge.may_touch(key) or judge.is_hindered(key):
            yield frozenset(now)
            return
        for chosen in combinations(sorted(judge.known), judge.factor or len(now)):
            then = frozenset(chosen)
            is_lawful = not (
                (then - now) & (judge.removed | hindered) or (then ^ now) & judge.excluded
            )
            leaves = key in left.staying or not then & judge.removed
            if is_lawful and leaves and (key in left.crowded or self.is_spread(then)):
                yield then

    def is_spread(self, brokers: Collection[int]) -> bool:
        """Whether these are on as many racks as possible, and as evenly."""
        if len(self._racks) < 2:
            return True
        racks = Counter(self.judge.rack[b] for b in brokers)
        unknown = racks.pop(None, 0)
        if len(racks) + unknown < min(len(brokers), len(self._racks)):
            return False
        most = 1
        while sum(min(most, n) for n in self._racks.values()) < len(brokers) and most < len(
            brokers
        ):
            most += 1
        return max(racks.values(), default=0) <= most


def _is_within(extremes: Extremes, limit: Extremes) -> bool:
    return (
        extremes.fewest >= limit.fewest
        and extremes.most <= limit.most
        and extremes.fullest <= limit.fullest
        and extremes.busiest <= limit.busiest
        and extremes.relieved <= limit.relieved
        and extremes.uneven <= limit.uneven
    )
