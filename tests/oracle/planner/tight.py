"""Small clusters on tight disks, and whether a request can be done there at all. Plain data.

It imports nothing of the planner. A request is done *wholly* when every partition that it may touch
has its number of replicas on distinct brokers that may hold it, and none on a removed broker. Each
partition moves at most once, one after the other in some order: both copies exist until the new
ones are there. A broker that receives a copy never holds more than its disks take. No partition
loses racks that it had and could have.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from random import Random
from typing import Any

from tests.oracle.planner.cases import Case

Placed = tuple[frozenset[int], ...]
STATES_MAX = 200_000


def tight_case(seed: int) -> Case:
    """Disks between three quarters and all full, some a little over."""
    dice = Random(seed)
    ids = list(range(1, dice.randint(3, 5) + 1))
    has_racks = dice.random() < 0.4
    partitions: list[dict[str, Any]] = []
    for number in range(dice.randint(2, 6)):
        width = min(len(ids) - 1, dice.choice((1, 1, 2, 2, 3)))
        replicas = dice.sample(ids, width)
        size = dice.choice((5, 10, 10, 20, 30, 40, 60))
        partitions.append({"topic": "t", "partition": number, "replicas": replicas, "size": size})
    held = {id_: sum(p["size"] for p in partitions if id_ in p["replicas"]) for id_ in ids}
    brokers = []
    for id_ in ids:
        spare = dice.choice((0, 0, 5, 10, 20, 30, 40, 60, 80))
        over = dice.random() < 0.05
        capacity = max(1, held[id_] - 5) if over else held[id_] + spare
        broker: dict[str, Any] = {"id": id_, "capacity": capacity}
        if has_racks:
            broker["rack"] = "abc"[id_ % 3]
        brokers.append(broker)
    topology = {"brokers": brokers, "partitions": partitions}
    return Case(topology=topology, request=_asked(dice, ids))


def crowded_case(seed: int) -> Case:
    """More brokers and partitions, whose disks are nearly full, some of them over."""
    dice = Random(seed)
    ids = list(range(1, dice.randint(4, 9) + 1))
    partitions: list[dict[str, Any]] = []
    for number in range(dice.randint(20, 80)):
        replicas = dice.sample(ids, dice.choice((1, 2, 2, 3)))
        size = int(dice.lognormvariate(10, 1.2))
        partitions.append({"topic": "t", "partition": number, "replicas": replicas, "size": size})
    held = {id_: sum(p["size"] for p in partitions if id_ in p["replicas"]) for id_ in ids}
    mean = sum(held.values()) / len(ids)
    brokers = []
    for id_ in ids:
        capacity = int(max(held[id_] * dice.choice((0.97, 1.0, 1.02, 1.1)), mean * 1.03))
        broker: dict[str, Any] = {"id": id_, "capacity": capacity}
        if seed % 3:
            broker["rack"] = "abc"[id_ % 3]
        brokers.append(broker)
    if dice.random() < 0.5:
        brokers[0]["capacity"] = int(held[1] * dice.choice((0.7, 0.9, 0.99)))
    asked: dict[str, Any] = {"goal": dice.choice(("balance", "minimal", "racks", "topics"))}
    if dice.random() < 0.3:
        asked["remove_brokers"] = (dice.choice(ids),)
    elif dice.random() < 0.2:
        asked = {"goal": "relieve", "relieve_brokers": (1,)}
    return Case(topology={"brokers": brokers, "partitions": partitions}, request=asked)


def _asked(dice: Random, ids: Sequence[int]) -> dict[str, Any]:
    kind = dice.random()
    asked: dict[str, Any] = {"goal": dice.choice(("balance", "minimal", "racks", "topics"))}
    if kind < 0.55:
        asked["remove_brokers"] = (dice.choice(ids),)
    elif kind < 0.85:
        asked = {"goal": "replication", "replication_factor": dice.randint(1, min(4, len(ids)))}
        if dice.random() < 0.2:
            asked["remove_brokers"] = (dice.choice(ids),)
    if dice.random() < 0.1:
        asked["exclude_brokers"] = tuple(
            {dice.choice(ids)}.difference(asked.get("remove_brokers", ()))
        )
    if dice.random() < 0.1:
        asked["keep_partitions"] = ("t-0",)
    return asked


class Disks:
    """One case as sets and sums."""

    def __init__(self, case: Case) -> None:
        brokers, self.request = case.topology["brokers"], case.request
        self.partitions: list[dict[str, Any]] = case.topology["partitions"]
        self.ids: list[int] = [broker["id"] for broker in brokers]
        self.most: dict[int, int] = {b["id"]: b["capacity"] for b in brokers}
        self.rack: dict[int, str] = {b["id"]: b["rack"] for b in brokers if "rack" in b}
        self.removed = set(self.request.get("remove_brokers", ()))
        self.excluded = set(self.request.get("exclude_brokers", ()))
        self.size: list[int] = [p["size"] for p in self.partitions]
        self.before: Placed = tuple(frozenset(p["replicas"]) for p in self.partitions)

    def held(self, placed: Placed) -> dict[int, int]:
        """Bytes on each broker."""
        return {
            id_: sum(size for size, on in zip(self.size, placed, strict=True) if id_ in on)
            for id_ in self.ids
        }

    def is_free(self, number: int) -> bool:
        """Whether the request lets a plan touch this partition."""
        name = f"t-{self.partitions[number]['partition']}"
        return name not in self.request.get("keep_partitions", ())

    def is_whole(self, placed: Placed) -> bool:
        """Whether all that was asked for is done."""
        return all(
            on in self.choices[number] for number, on in enumerate(placed) if self.is_free(number)
        )

    @cached_property
    def choices(self) -> list[list[frozenset[int]]]:
        """Sets of brokers on which each partition may end."""
        return [self._choices(number) for number in range(len(self.before))]

    def _choices(self, number: int) -> list[frozenset[int]]:
        """Sets of brokers on which a partition may end."""
        now = self.before[number]
        width = self.request.get("replication_factor") or len(now)
        stays = now & self.excluded
        others = [id_ for id_ in self.ids if id_ not in self.removed | self.excluded]
        found = (
            stays | frozenset(chosen) for chosen in combinations(others, max(0, width - len(stays)))
        )
        return [on for on in found if len(on) == width and not self.breaks_rack(now, on)]

    def breaks_rack(self, now: frozenset[int], then: frozenset[int]) -> bool:
        """Whether it was as spread over racks as it then could be, and is not any more."""
        staying = [self.rack[id_] for id_ in self.ids if id_ in self.rack if self._stays(id_)]
        racks = set(staying)
        if len(racks) < 2:
            return False
        possible = min(len(then), len(racks))
        crowd = next(
            most
            for most in range(1, len(then) + 1)
            if most == len(then) or sum(min(most, staying.count(r)) for r in racks) >= len(then)
        )

        def is_fine(on: frozenset[int]) -> bool:
            used = [self.rack[id_] for id_ in on]
            return len(set(used)) >= possible and max(map(used.count, used)) <= crowd

        return is_fine(now) and not is_fine(then)

    def _stays(self, broker: int) -> bool:
        return broker not in self.removed

    def steps(self, placed: Placed) -> Iterator[Placed]:
        """Every way to move one partition that has not moved yet."""
        held = self.held(placed)
        for number, on in enumerate(placed):
            if on != self.before[number] or not self.is_free(number):
                continue
            for then in self.choices[number]:
                coming = then - on
                if then != on and all(
                    held[id_] + self.size[number] <= self.most[id_] for id_ in coming
                ):
                    yield (*placed[:number], then, *placed[number + 1 :])


def whole_plan(disks: Disks) -> Placed | None:
    """Where everything is after some plan that does all that was asked for; None: there is none.

    :raises OverflowError: more than `STATES_MAX` placements would have to be looked at.
    """
    reached, seen = [disks.before], {disks.before}
    for placed in reached:
        if disks.is_whole(placed):
            return placed
        for then in disks.steps(placed):
            if then not in seen:
                seen.add(then)
                reached.append(then)
        if len(seen) > STATES_MAX:
            raise OverflowError(f"more than {STATES_MAX} placements")
    return None


Copy = tuple[Sequence[int], Sequence[int], int]
"""(replicas before, replicas after, bytes of one)."""


def overfull(disks: Disks, waves: Sequence[Sequence[Copy]]) -> list[str]:
    """Brokers that hold more than their disks take while a wave runs, or after it."""
    held, found = disks.held(disks.before), []
    for number, wave in enumerate(waves, 1):
        for broker, size in _copies(wave, 1).items():
            held[broker] += size
            if held[broker] > disks.most[broker]:
                found.append(
                    f"wave {number}: broker {broker} holds {held[broker]} of {disks.most[broker]}"
                )
        for broker, size in _copies(wave, 0).items():
            held[broker] -= size
    return found


def _copies(wave: Sequence[Copy], comes: int) -> Mapping[int, int]:
    """Bytes that come to brokers, or leave them."""
    found: dict[int, int] = {}
    for before, after, size in wave:
        gone, come = set(before) - set(after), set(after) - set(before)
        for broker in come if comes else gone:
            found[broker] = found.get(broker, 0) + size
    return found
