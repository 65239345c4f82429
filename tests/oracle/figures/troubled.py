"""Clusters to which things happen by dice, and what is wrong with them at each second.

Brokers die and come back, replicas fall behind, disks fill, clocks go wrong, directories are
cordoned. What is wrong is told by Kafka's definitions alone: nothing here knows how findings are
found. A source reads each broker once a second or so, and misses a reading now and then.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

BROKERS: Final = (1, 2, 3, 4)
PARTITIONS: Final = 12
REPLICAS: Final = 3
MIN_ISR: Final = 2
T0_MS: Final = 1_790_000_000_000
TOTAL_BYTES: Final = 1_000_000
REJOINS_S: Final = 6
"""A replica that came back is in the ISR so much later."""
LASTS_S: Final = (20, 60)
"""Things last so long, and then it is calm for as long."""
MISSED: Final = 0.15
"""So many readings of a broker are missed."""
EVENTS: Final = ("dies", "falls behind", "fills", "clock", "cordoned")


@dataclass(slots=True)
class Partition:
    """Its first replica is preferred."""

    number: int
    replicas: list[int]
    isr: list[int]
    leader: int


@dataclass(slots=True)
class Broker:
    """Its state, and since when a replica on it may be in sync again."""

    id: int
    is_up: bool = True
    is_behind: bool = False
    back_s: int = -REJOINS_S
    used: float = 0.5
    skew_ms: int = 0
    is_cordoned: bool = False
    until_s: int = 0


@dataclass
class Troubled:
    """One cluster; ``step`` each second, then ask what is wrong and what a source tells."""

    dice: Random
    brokers: dict[int, Broker] = field(default_factory=dict)
    partitions: list[Partition] = field(default_factory=list)
    second: int = 0
    _told: dict[int, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.brokers = {it: Broker(id=it) for it in BROKERS}
        for number in range(PARTITIONS):
            replicas = [BROKERS[(number + n) % len(BROKERS)] for n in range(REPLICAS)]
            self.partitions.append(Partition(number, replicas, list(replicas), replicas[0]))
        for broker in self.brokers.values():
            broker.until_s = self.dice.randint(*LASTS_S)

    def step(self) -> None:
        """A second passes."""
        self.second += 1
        for broker in self.brokers.values():
            if self.second >= broker.until_s:
                broker.until_s = self.second + self.dice.randint(*LASTS_S)
                self._turn(broker)
        for partition in self.partitions:
            self._elect(partition)

    def _turn(self, broker: Broker) -> None:
        """Calm follows trouble, and trouble calm."""
        is_calm = broker.is_up and not (broker.is_behind or broker.skew_ms or broker.is_cordoned)
        if not is_calm or broker.used > 0.5:
            broker.back_s = self.second
            broker.is_up, broker.is_behind, broker.is_cordoned = True, False, False
            broker.used, broker.skew_ms = 0.5, 0
            return
        event = self.dice.choice(EVENTS)
        broker.is_up = event != "dies"
        broker.is_behind = event == "falls behind"
        broker.is_cordoned = event == "cordoned"
        broker.used = self.dice.choice((0.85, 0.95)) if event == "fills" else 0.5
        broker.skew_ms = self.dice.choice((-40_000, 90_000)) if event == "clock" else 0

    def _elect(self, partition: Partition) -> None:
        """The ISR never becomes empty; whoever came back joins it while somebody leads."""
        here = [it for it in partition.replicas if self._follows(it)]
        kept = [it for it in partition.isr if it in here]
        partition.isr = kept or partition.isr[:1]
        alive = [it for it in partition.isr if self.brokers[it].is_up]
        if partition.leader not in alive:
            partition.leader = alive[0] if alive else -1
        if partition.leader >= 0:
            joined = {*partition.isr, *here}
            partition.isr = [it for it in partition.replicas if it in joined]

    def _follows(self, broker: int) -> bool:
        it = self.brokers[broker]
        return it.is_up and not it.is_behind and self.second - it.back_s >= REJOINS_S

    @property
    def wrong(self) -> set[str]:
        """What is wrong now: a word, and the broker where it is about one."""
        found = set()
        for it in self.brokers.values():
            facts = {
                "broker-fenced": not it.is_up,
                "disk": it.used >= 0.8,
                "clock": it.is_up and it.skew_ms != 0,
                "cordoned": it.is_up and it.is_cordoned,
            }
            found |= {f"{word} broker {it.id}" for word, holds in facts.items() if holds}
        for each in self.partitions:
            short, count = each.leader >= 0 and len(each.isr) < REPLICAS, len(each.isr)
            words = {
                "offline": each.leader < 0,
                "under-min-isr": short and count < MIN_ISR,
                "at-min-isr": short and count == MIN_ISR,
                "not-preferred": each.leader >= 0 and each.leader != each.replicas[0],
            }
            found |= {word for word, holds in words.items() if holds}
        return found

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The newest rows that a source has of each broker, as it told them."""
        at_ms = T0_MS + 1_000 * self.second
        for it in self.brokers.values():
            if it.id not in self._told or (it.is_up and self.dice.random() >= MISSED):
                self._told[it.id] = self._row(it, at_ms)
        lives = any(it.is_up for it in self.brokers.values())
        rows = [
            {**self._told[it.id], "is_fenced": lives and not it.is_up}
            for it in self.brokers.values()
        ]
        return {
            "brokers": rows,
            "partitions": [self._partition_row(it, at_ms) for it in self.partitions],
        }

    @staticmethod
    def _row(it: Broker, at_ms: int) -> dict[str, Any]:
        directory = {
            "path": "/data", "total_bytes": TOTAL_BYTES, "size_bytes": 0, "replicas": 9,
            "usable_bytes": round(TOTAL_BYTES * (1 - it.used)), "is_cordoned": it.is_cordoned,
            "is_failed": False,
        }  # fmt: skip
        return {
            "cluster": "c", "broker": it.id, "host": "127.0.0.1", "port": 9092,
            "is_controller": False, "interval_ms": 1_000, "sampled_ms": at_ms, "read_ms": at_ms,
            "clock_skew_ms": it.skew_ms, "directories": [directory],
            "disk_total_bytes": TOTAL_BYTES, "disk_usable_bytes": directory["usable_bytes"],
        }  # fmt: skip

    @staticmethod
    def _partition_row(it: Partition, at_ms: int) -> dict[str, Any]:
        return {
            "cluster": "c", "topic": "t", "partition": it.number, "leader": it.leader,
            "replicas": it.replicas, "isr": it.isr, "adding_replicas": [],
            "removing_replicas": [], "min_isr": MIN_ISR, "log_start_offset": 0,
            "high_watermark": 100, "log_end_offset": 100, "size_bytes": 1_000, "segments": 1,
            "in_records_per_s": 0.0, "in_bytes_per_s": 0.0, "out_bytes_per_s": 0.0,
            "read_ms": at_ms,
        }  # fmt: skip
