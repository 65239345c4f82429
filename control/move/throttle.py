"""Replication throttles (KIP-73), set and removed as Kafka's reassignment tool does.

Brokers concerned get `leader.` and `follower.replication.throttled.rate`; topics concerned get
`leader.replication.throttled.replicas` for every replica that exists before the move, and
`follower.replication.throttled.replicas` for the destinations only. Example: 0 moves from
(101, 102) to (102, 103): leader `0:101,0:102`, follower `0:103`.

What is set is recorded first (`ThrottleRecord`) and only that is removed: a rate that somebody
else set stays as it is, entries of others in a replicas list stay, `*` stays.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from control.model.ids import TopicPartition
from planner.proposal import PartitionChange

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
REPLICA_LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
ALL_REPLICAS: Final = "*"

THROTTLE_AUTO: Final = "auto"
THROTTLE_NONE: Final = "none"

Throttle = int | str
"""Bytes per second, or THROTTLE_AUTO or THROTTLE_NONE."""

RATE_MIN_BYTES_PER_S: Final = 1024
"""Kafka's tool refuses less."""
RATE_MAX_BYTES_PER_S: Final = 2**63 - 1
"""Kafka's config is a signed number of 64 bits."""
LIST_BYTES_MAX: Final = 32_767
"""A config's value is a string of Kafka's protocol, and those are no longer."""

Configs = Mapping[str, str | None]
Lists = Mapping[str, Mapping[str, tuple[str, ...]]]
"""topic → config name → entries ``partition:broker``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleRecord:
    """The throttle of one operation: the rate per broker, and its entries per topic and list."""

    rate: int
    brokers: tuple[int, ...]
    entries: Lists
    former_rates: tuple[int, ...] = ()
    """Rates that this operation set before: a crash may have left one on a broker."""
    unreached: tuple[int, ...] = ()
    """Of `brokers` those that were down each time a rate was set: none of ours is there."""

    def document(self) -> dict[str, Any]:
        """JSON values."""
        entries = {
            topic: {name: list(values) for name, values in lists.items()}
            for topic, lists in self.entries.items()
        }
        return {
            "rate": self.rate,
            "brokers": list(self.brokers),
            "entries": entries,
            "former_rates": list(self.former_rates),
            "unreached": list(self.unreached),
        }

    @property
    def is_left_behind(self) -> bool:
        """Whether only brokers that were down when it was removed still have it."""
        return not self.entries

    @property
    def own_values(self) -> frozenset[str]:
        """Values in a broker's config that may be ours."""
        return frozenset(map(str, (self.rate, *self.former_rates)))

    def rates_before_next(self, most: int | None) -> tuple[int, ...]:
        """`former_rates` of a record with another rate: each once, the newest last, at most so
        many."""
        newest_first = dict.fromkeys((self.rate, *reversed(self.former_rates)))
        return tuple(newest_first)[:most][::-1]

    def of_topics(self, topics: Collection[str]) -> "ThrottleRecord":
        """The same rates; what it has in the lists of these topics."""
        return replace(self, entries={t: e for t, e in self.entries.items() if t in topics})

    def to_list(
        self, at_leaders: Collection[TopicPartition], at_followers: Collection[TopicPartition]
    ) -> Lists:
        """Its entries of these partitions."""
        kept = {LEADER_REPLICAS: at_leaders, FOLLOWER_REPLICAS: at_followers}
        return {
            topic: {
                name: tuple(entry for entry in entries if _partition(topic, entry) in kept[name])
                for name, entries in lists.items()
            }
            for topic, lists in self.entries.items()
        }

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "ThrottleRecord":
        """The inverse of document()."""
        entries = {
            topic: {name: tuple(values) for name, values in lists.items()}
            for topic, lists in document["entries"].items()
        }
        return cls(
            rate=document["rate"],
            brokers=tuple(document["brokers"]),
            entries=entries,
            former_rates=tuple(document.get("former_rates", ())),
            unreached=tuple(document.get("unreached", ())),
        )


def brokers_between(changes: Iterable[PartitionChange]) -> set[int]:
    """Between which data moves."""
    return {b for c in changes if c.adding for b in (*c.before, *c.after)}


def plan_throttle(
    changes: Iterable[PartitionChange],
    *,
    rate: int,
    broker_configs: Mapping[int, Configs],
    topic_configs: Mapping[str, Configs],
) -> ThrottleRecord:
    """The throttle to set, given the configs of now; brokers with a rate of somebody else are left
    out."""
    changes = tuple(changes)
    entries: dict[str, dict[str, list[str]]] = {}
    for change in changes:
        if not change.adding:
            continue
        lists = entries.setdefault(change.topic, {name: [] for name in REPLICA_LISTS})
        for name, replicas in _listed(change).items():
            lists[name] += replicas
    theirs = {
        (topic, name): set(listed_entries(topic_configs.get(topic, {}), name))
        for topic, lists in entries.items()
        for name in lists
    }
    ours = {
        topic: {
            name: tuple(entry for entry in values if entry not in theirs[topic, name])
            for name, values in lists.items()
        }
        for topic, lists in entries.items()
    }
    free = (
        broker
        for broker in sorted(brokers_between(changes))
        if not any(broker_configs.get(broker, {}).get(name) for name in RATES)
    )
    return ThrottleRecord(rate=rate, brokers=tuple(free), entries=ours)


def broker_changes_to_set(
    record: ThrottleRecord, now: Mapping[int, Configs], *, anew_on: Collection[int] = ()
) -> dict[int, dict[str, str | None]]:
    """Config changes per broker, given what is set now: a rate of somebody else stays but on
    `anew_on`, and a broker that has two of them is absent."""
    changes: dict[int, dict[str, str | None]] = {}
    for broker in record.brokers:
        ours = RATES if broker in anew_on else _ours(record, now.get(broker, {}))
        if ours:
            changes[broker] = dict.fromkeys(ours, str(record.rate))
    return changes


def broker_changes_to_remove(
    record: ThrottleRecord, now: Mapping[int, Configs]
) -> dict[int, dict[str, str | None]]:
    """Deletes of rates, unless somebody set another value since: that one is theirs.

    A rate that is not seen is deleted as well: the broker may not have shown it yet.
    """
    changes: dict[int, dict[str, str | None]] = {}
    for broker in record.brokers:
        ours = _ours(record, now.get(broker, {}))
        if ours:
            changes[broker] = dict.fromkeys(ours, None)
    return changes


def topic_changes(
    ours: Lists, wanted: Lists, now: Mapping[str, Configs]
) -> dict[str, dict[str, str | None]]:
    """Config changes per topic that leave only the wanted ones of our entries; None deletes an
    empty list."""
    changes: dict[str, dict[str, str | None]] = {}
    for topic, lists in ours.items():
        for name, entries in lists.items():
            present = listed_entries(now.get(topic, {}), name)
            add = () if ALL_REPLICAS in present else wanted.get(topic, {}).get(name, ())
            there, gone = set(present), set(entries).difference(add)
            listed = [entry for entry in present if entry not in gone]
            listed += [entry for entry in add if entry not in there]
            if listed != present:
                changes.setdefault(topic, {})[name] = ",".join(listed) or None
    return changes


def list_bytes(changes: Iterable[PartitionChange]) -> dict[str, int]:
    """Length of each topic's longest list while these move."""
    found: dict[str, dict[str, int]] = {}
    for change in changes:
        if change.adding:
            lists = found.setdefault(change.topic, dict.fromkeys(REPLICA_LISTS, -1))
            for name, replicas in _listed(change).items():
                lists[name] += sum(len(entry) + 1 for entry in replicas)
    return {topic: max(lists.values()) for topic, lists in found.items()}


def why_too_long(waves: Iterable[Iterable[PartitionChange]]) -> str | None:
    """Why a wave cannot be throttled: a list of replicas would be longer than Kafka takes."""
    for changes in waves:
        wave = tuple(changes)
        length, topic = max(((n, t) for t, n in list_bytes(wave).items()), default=(0, ""))
        if length > LIST_BYTES_MAX:
            moved = [change for change in wave if change.topic == topic and change.adding]
            works = LIST_BYTES_MAX // max(list_bytes([change])[topic] + 1 for change in moved)
            return (
                f"{len(moved):,} partitions of {topic} in one wave: their list of throttled "
                f"replicas has {length:,} bytes, Kafka takes {LIST_BYTES_MAX:,}; waves of {works} "
                "partitions work"
            )
    return None


def _ours(record: ThrottleRecord, configs: Configs) -> list[str]:
    """Rates that are not set, or by us."""
    own = {None, *record.own_values}
    return [name for name in RATES if configs.get(name) in own]


def _listed(change: PartitionChange) -> dict[str, list[str]]:
    """Its entries ``partition:broker`` in each list."""
    return {
        LEADER_REPLICAS: [f"{change.partition}:{b}" for b in change.before],
        FOLLOWER_REPLICAS: [f"{change.partition}:{b}" for b in change.adding],
    }


def listed_entries(configs: Configs, name: str) -> list[str]:
    """Entries ``partition:broker`` of a replicas list."""
    return [entry for entry in (configs.get(name) or "").split(",") if entry]


def _partition(topic: str, entry: str) -> TopicPartition:
    return TopicPartition(topic, int(entry.partition(":")[0]))
