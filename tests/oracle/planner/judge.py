"""What must hold of every plan, from Kafka's definitions. Plain data in, broken rules out.

It imports nothing of what it judges. A partition's *live in-sync* replicas are those of its ISR
whose broker runs. Kafka drops replicas once all copies are in sync, so copies count as in sync.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

Key = tuple[str, int]
Targets = Mapping[Key, Sequence[int]]
"""Replicas of each changed partition afterwards."""


class Judge:
    """Judges plans for one topology file and one request."""

    def __init__(self, topology: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        brokers = topology["brokers"]
        self.known = {b["id"] for b in brokers}
        self.down = {b["id"] for b in brokers if b.get("down")}
        self.cordoned = {b["id"] for b in brokers if b.get("cordoned")}
        self.rack = {b["id"]: b.get("rack") for b in brokers}
        self.capacity = {b["id"]: b["capacity"] for b in brokers if "capacity" in b}
        self.partitions = {(p["topic"], p["partition"]): p for p in topology["partitions"]}
        self.removed = set(request.get("remove_brokers", ()))
        self.excluded = set(request.get("exclude_brokers", ()))
        self.factor: int | None = request.get("replication_factor")
        self.request = request

    def broken(self, targets: Targets, told: Iterable[str]) -> list[str]:
        """Every broken rule. `told`: the violations that the plan itself admits."""
        found = []
        admitted = " ".join(told)
        for key, after in targets.items():
            name = f"{key[0]}-{key[1]}"
            for rule in (*self._unlawful(key, after), *self._unsafe(key, after)):
                found.append(f"{name} {self.partitions[key]['replicas']} → {list(after)}: {rule}")
        for key, partition in self.partitions.items():
            name = f"{key[0]}-{key[1]}"
            lacks = self._lacks(key, targets.get(key, partition["replicas"]), key in targets)
            if lacks and f"{name}:" not in admitted:
                found.append(f"{name}: {lacks}, and nobody says so")
        return [*found, *self._overfull(targets, admitted)]

    def in_sync(self, key: Key) -> set[int] | None:
        """Its live in-sync replicas; None: unknown."""
        isr = self.partitions[key].get("isr")
        return None if isr is None else set(isr) - self.down

    def may_touch(self, key: Key) -> bool:
        """Whether the request lets a plan change it."""
        topic, name = key[0], f"{key[0]}-{key[1]}"
        if name in self.request.get("keep_partitions", ()):
            return False
        if any(fnmatchcase(topic, it) for it in self.request.get("exclude_topics", ())):
            return False
        wanted = self.request.get("topics")
        if wanted and not any(fnmatchcase(topic, it) for it in wanted):
            return False
        return not (self.factor is not None and topic.startswith("__"))

    def _unlawful(self, key: Key, after: Sequence[int]) -> Iterable[str]:
        """What Kafka refuses, never ends, or was not asked for."""
        partition, now = self.partitions[key], set(self.partitions[key]["replicas"])
        then = set(after)
        if not after or len(then) < len(after) or not then <= self.known:
            yield "no list of distinct brokers"
        if then & self.down:
            yield "waits for ever for a broker that does not run"
        if then & self.cordoned:
            yield "Kafka refuses a list that names a cordoned broker"
        if partition.get("leaderless") or partition.get("reassigning"):
            yield "nothing moves it"
        if not self.may_touch(key):
            yield "not asked for"
        if (then ^ now) & self.excluded:
            yield "an excluded broker loses or gets a replica"
        if (then - now) & self.removed:
            yield "goes to a broker that is decommissioned"
        if self.request["goal"] == "leaders" and then != now:
            yield "leaders move no data"
        if self.factor is None and len(then) != len(now):
            yield "nobody asked for another replication factor"

    def _unsafe(self, key: Key, after: Sequence[int]) -> Iterable[str]:
        """Keeps the dead or the slow in place of those that have all records."""
        in_sync = self.in_sync(key)
        now, then = set(self.partitions[key]["replicas"]), set(after)
        if not in_sync:
            return
        stays, gone, leader = in_sync & then, in_sync - then, self.partitions[key].get("leader")
        kept_slow, is_copied = (now & then) - in_sync, bool(then - now)
        if not gone or gone <= self.removed or in_sync == now:
            return  # decommissioned, or all are in sync: it may move like any other
        if kept_slow and not stays:
            yield f"keeps {sorted(kept_slow)}, which lack records, and drops all that are in sync"
        if kept_slow - self.excluded and not is_copied:
            yield f"drops {sorted(gone)}, which are in sync, and keeps {sorted(kept_slow)}"
        if leader in gone - self.removed and not now & then <= self.excluded:
            yield f"drops the leader {leader}, while not all are in sync"

    def _lacks(self, key: Key, after: Sequence[int], is_changed: bool) -> str:
        """What was asked for and is not done, though nothing hinders it; what producers lose."""
        partition = self.partitions[key]
        in_sync, least = self.in_sync(key), partition.get("min_isr")
        if is_changed and in_sync and least is not None:
            left = len(in_sync & set(after)) + len(set(after) - set(partition["replicas"]))
            if left < min(least, len(in_sync)):
                return f"{left} in sync afterwards, fewer than min.insync.replicas {least}"
        if not self.may_touch(key) or self.is_hindered(key):
            return ""
        if self.factor is not None and len(after) != self.factor:
            return f"{len(after)} replicas, {self.factor} were asked for"
        if self.removed & set(after):
            return "still on a decommissioned broker"
        return ""

    def is_hindered(self, key: Key) -> bool:
        """Whether nothing may move it, or a move would wait for a dead or cordoned broker."""
        partition, now = self.partitions[key], set(self.partitions[key]["replicas"])
        if partition.get("leaderless") or partition.get("reassigning"):
            return True
        if now & (self.cordoned - self.removed):
            return True
        dead = now & (self.down - self.removed)
        if not dead:
            return False
        fit = self.known - self.down - self.cordoned - self.removed - self.excluded
        possible = len(fit | (now - self.down - self.removed))
        has_factor = self.factor in (None, len(now))
        return has_factor or bool(dead & self.excluded) or possible < (self.factor or 0)

    def _overfull(self, targets: Targets, admitted: str) -> Iterable[str]:
        now, then = Counter[int](), Counter[int]()
        for key, partition in self.partitions.items():
            for count, replicas in (
                (now, partition["replicas"]),
                (then, targets.get(key, partition["replicas"])),
            ):
                for broker in replicas:
                    count[broker] += partition.get("size", 0)
        for broker, most in self.capacity.items():
            if then[broker] > max(most, now[broker]) and f"broker {broker}:" not in admitted:
                yield f"broker {broker} gets {then[broker]} bytes, its disks take {most}"


def crowded(
    waves: Iterable[Iterable[tuple[Key, Sequence[int], Sequence[int], int]]], most: int
) -> list[str]:
    """Waves in which a broker sends or receives more than `most` partitions; each entry is (key,
    replicas before, replicas after, leader)."""
    found = []
    for number, wave in enumerate(waves, 1):
        busy = Counter[int]()
        for _, before, after, leader in wave:
            coming = set(after) - set(before)
            busy.update({leader, *coming} if coming else ())
        found += [f"wave {number}: broker {b} has {n}" for b, n in busy.items() if n > most]
    return found
