"""The planner's input: brokers, racks, and where every partition lives with how many bytes.

The file format (``partiscope plan --topology``)::

    {"brokers": [{"id": 101, "rack": "a", "capacity": 10000000}],
     "partitions": [{"topic": "t", "partition": 0, "replicas": [101, 102], "size": 123456,
                     "leader": 101, "isr": [101, 102], "min_isr": 2,
                     "bytes_in": 1000, "bytes_out": 3000}]}

The first replica is the preferred leader. May be absent: ``rack``; ``size``, where it is unknown;
``capacity``, the bytes that a broker's disks may hold in all; ``down``, true for a broker that does
not run; ``cordoned``, true for one all of whose log directories are cordoned; ``leader``, who
leads now; ``isr``, the replicas in sync; ``min_isr``, ``min.insync.replicas`` of the topic;
``bytes_in`` and ``bytes_out``, what clients write to and read from the partition's leader in bytes
per second; ``leaderless``, true for a partition that has no leader and so cannot move;
``reassigning``, true for one that is being reassigned already; ``remove_brokers``, a list of ids,
says which brokers go.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, starmap
from operator import attrgetter, le
from typing import Any, Final

from control.model.ids import TopicPartition

_DOCUMENT_KEYS: Final = frozenset({"brokers", "partitions", "remove_brokers"})
_BROKER_KEYS: Final = frozenset({"id", "rack", "capacity", "down", "cordoned"})
_PARTITION_KEYS: Final = frozenset(
    {
        *("topic", "partition", "replicas", "size", "bytes_in", "bytes_out"),
        *("leader", "isr", "min_isr", "leaderless", "reassigning"),
    }
)


NUMBER_MAX: Final = 2**53
"""Largest number that a file may hold: JSON readers round larger ones."""
TOTAL_MAX: Final = 2**62
"""Largest sum of bytes over all replicas."""


class TopologyError(ValueError):
    """An entry of a topology document that cannot be; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyBroker:
    """A broker that may hold replicas. `rack` is null where racks are not configured,
    `capacity_bytes` where it is not known. One that does not run, or is cordoned, keeps what it
    has and gets nothing."""

    id: int
    rack: str | None = None
    capacity_bytes: int | None = None
    is_running: bool = True
    is_cordoned: bool = False
    lacks_listener: str = ""
    """The listener by which the cluster was asked; not empty: it runs, but only for others."""

    @property
    def why_no_target(self) -> str:
        """Why it gets no replica: ``does not run``, ``is cordoned``; empty where it may."""
        if not self.is_running:
            return "does not run"
        if self.lacks_listener:
            return f"has no listener {self.lacks_listener}"
        return "is cordoned" if self.is_cordoned else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyPartition:
    """A partition and its replicas, the preferred leader first; bytes of one replica; bytes per
    second that clients write and read at its leader. One without a leader stays as it is."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    size_bytes: int
    in_bytes_per_s: int = 0
    out_bytes_per_s: int = 0
    has_leader: bool = True
    is_size_known: bool = True
    """An unknown size counts as 0 bytes, and an unknown rate as none; both are told."""
    is_rate_known: bool = True
    leader: int | None = None
    """Leads now; None: unknown, or nobody does."""
    isr: tuple[int, ...] | None = None
    """Replicas in sync; None: unknown."""
    min_isr: int | None = None
    """``min.insync.replicas``; None: unknown."""
    is_reassigning: bool = False
    """Being reassigned already: the replicas are those that it is going to have."""

    @property
    def key(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)

    def in_sync(self, down: Collection[int]) -> tuple[int, ...]:
        """Replicas in sync that run; empty also where nothing is known."""
        return tuple(id_ for id_ in self.isr or () if id_ not in down)

    def placed_on(self, replicas: tuple[int, ...]) -> "TopologyPartition":
        """The same partition once it is on other replicas, where every copy is in sync."""
        isr = self.isr
        if isr is not None:
            stale = set(self.replicas).difference(isr)
            isr = tuple(id_ for id_ in replicas if id_ not in stale)
        leader = self.leader if self.leader in replicas else None
        return replace(self, replicas=replicas, isr=isr, leader=leader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Brokers and partitions at one moment. Brokers without partitions have just joined."""

    brokers: tuple[TopologyBroker, ...]
    partitions: tuple[TopologyPartition, ...]
    remove_brokers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_brokers(self)
        _check_partitions(self)

    def named(self, keys: Container[TopicPartition]) -> dict[TopicPartition, TopologyPartition]:
        """These of its partitions, by name; quick also where there are many others."""
        names = map(attrgetter("topic", "partition"), self.partitions)
        return {p.key: p for name, p in zip(names, self.partitions, strict=True) if name in keys}

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids in the order of the document."""
        return tuple(broker.id for broker in self.brokers)

    @property
    def down(self) -> frozenset[int]:
        """Brokers that do not run."""
        return frozenset(broker.id for broker in self.brokers if not broker.is_running)

    def in_order(self) -> "Topology":
        """The same cluster with its brokers and partitions in the order of their names, so that the
        order of a file changes no plan."""
        ids, keys = self.broker_ids, [partition.key for partition in self.partitions]
        if all(starmap(le, chain(pairwise(ids), pairwise(keys)))):
            return self
        return replace(
            self,
            brokers=tuple(sorted(self.brokers, key=attrgetter("id"))),
            partitions=tuple(sorted(self.partitions, key=attrgetter("key"))),
        )

    def with_replicas(self, targets: Mapping[TopicPartition, Sequence[int]]) -> "Topology":
        """The same cluster with some partitions placed elsewhere."""
        partitions = tuple(
            p.placed_on(tuple(targets[p.key])) if p.key in targets else p for p in self.partitions
        )
        return replace(self, partitions=partitions)


def parse_topology(document: object) -> Topology:
    """Read a decoded topology file.

    :raises TopologyError: naming the entry and what is wrong with it.
    """
    fields = _mapping(document, "the topology", allowed=_DOCUMENT_KEYS)
    return Topology(
        brokers=tuple(
            _parse_broker(entry, f"brokers[{i}]")
            for i, entry in enumerate(_list(fields.get("brokers"), "brokers"))
        ),
        partitions=tuple(
            _parse_partition(entry, f"partitions[{i}]")
            for i, entry in enumerate(_list(fields.get("partitions"), "partitions"))
        ),
        remove_brokers=_ids(fields.get("remove_brokers", []), "remove_brokers"),
    )


def topology_document(topology: Topology) -> dict[str, Any]:
    """The inverse of parse_topology."""
    return {
        "brokers": [_broker_document(broker) for broker in topology.brokers],
        "partitions": [_partition_document(partition) for partition in topology.partitions],
    }


def _broker_document(broker: TopologyBroker) -> dict[str, Any]:
    document: dict[str, Any] = {"id": broker.id, "rack": broker.rack}
    if broker.capacity_bytes is not None:
        document["capacity"] = broker.capacity_bytes
    if not broker.is_running:
        document["down"] = True
    if broker.is_cordoned:
        document["cordoned"] = True
    return document


def _partition_document(partition: TopologyPartition) -> dict[str, Any]:
    document: dict[str, Any] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "replicas": list(partition.replicas),
        **({"size": partition.size_bytes} if partition.is_size_known else {}),
    }
    if partition.in_bytes_per_s or partition.out_bytes_per_s:
        document["bytes_in"] = partition.in_bytes_per_s
        document["bytes_out"] = partition.out_bytes_per_s
    for key, value in (
        ("leader", partition.leader),
        ("isr", None if partition.isr is None else list(partition.isr)),
        ("min_isr", partition.min_isr),
        ("leaderless", not partition.has_leader or None),
        ("reassigning", partition.is_reassigning or None),
    ):
        if value is not None:
            document[key] = value
    return document


def _check_brokers(topology: Topology) -> None:
    seen: set[int] = set()
    for i, broker in enumerate(topology.brokers):
        if broker.id in seen:
            raise TopologyError(f"brokers[{i}]: broker {broker.id} is listed twice")
        seen.add(broker.id)
    for id_ in topology.remove_brokers:
        if id_ not in seen:
            raise TopologyError(f"remove_brokers: broker {id_} is not among the brokers")


def _check_partitions(topology: Topology) -> None:
    known = set(topology.broker_ids)
    seen: set[TopicPartition] = set()
    total = 0
    for i, p in enumerate(topology.partitions):
        where = f"partitions[{i}] ({p.key})"
        if p.key in seen:
            raise TopologyError(f"{where}: listed twice")
        seen.add(p.key)
        if not p.replicas:
            raise TopologyError(f"{where}: replicas is empty")
        if len(set(p.replicas)) < len(p.replicas):
            raise TopologyError(f"{where}: replicas {list(p.replicas)} names a broker twice")
        for replica in p.replicas:
            if replica not in known:
                raise TopologyError(f"{where}: replica {replica} is not among the brokers")
        if p.size_bytes < 0:
            raise TopologyError(f"{where}: size {p.size_bytes} is negative")
        total += (p.size_bytes + p.in_bytes_per_s + p.out_bytes_per_s) * len(p.replicas)
        if not p.is_reassigning:
            _check_sync(p, where)
    if total > TOTAL_MAX:
        raise TopologyError(f"all replicas together hold {total} bytes, more than {TOTAL_MAX}")


def _check_sync(partition: TopologyPartition, where: str) -> None:
    """One that is being reassigned may be led by a replica that it is about to lose."""
    leader, replicas = partition.leader, partition.replicas
    if leader is not None and leader not in replicas:
        raise TopologyError(f"{where}: leader {leader} is not among its replicas {list(replicas)}")
    if leader is not None and not partition.has_leader:
        raise TopologyError(f"{where}: leader {leader} contradicts leaderless")
    if partition.isr is not None and not set(partition.isr).issubset(replicas):
        raise TopologyError(
            f"{where}: isr {list(partition.isr)} names others than its replicas {list(replicas)}"
        )


def _parse_broker(entry: object, where: str) -> TopologyBroker:
    fields = _mapping(entry, where, allowed=_BROKER_KEYS)
    rack = fields.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise TopologyError(f"{where}: rack must be a text or null, not {rack!r}")
    capacity = fields.get("capacity")
    return TopologyBroker(
        id=_whole(fields.get("id"), f"{where}.id"),
        rack=rack,
        capacity_bytes=None if capacity is None else _whole(capacity, f"{where}.capacity"),
        is_running=not _flag(fields.get("down", False), f"{where}.down"),
        is_cordoned=_flag(fields.get("cordoned", False), f"{where}.cordoned"),
    )


def _parse_partition(entry: object, where: str) -> TopologyPartition:
    fields = _mapping(entry, where, allowed=_PARTITION_KEYS)
    topic = fields.get("topic")
    if not isinstance(topic, str) or not topic or not topic.isprintable():
        raise TopologyError(f"{where}.topic must be a printable name, not {topic!r}")
    return TopologyPartition(
        topic=topic,
        partition=_whole(fields.get("partition"), f"{where}.partition"),
        replicas=_ids(fields.get("replicas"), f"{where}.replicas"),
        size_bytes=_whole(fields.get("size", 0), f"{where}.size"),
        is_size_known="size" in fields,
        in_bytes_per_s=_whole(fields.get("bytes_in", 0), f"{where}.bytes_in"),
        out_bytes_per_s=_whole(fields.get("bytes_out", 0), f"{where}.bytes_out"),
        has_leader=not _flag(fields.get("leaderless", False), f"{where}.leaderless"),
        leader=_maybe_whole(fields, "leader", where),
        isr=_ids(fields["isr"], f"{where}.isr") if "isr" in fields else None,
        min_isr=_maybe_whole(fields, "min_isr", where),
        is_reassigning=_flag(fields.get("reassigning", False), f"{where}.reassigning"),
    )


def _mapping(value: object, where: str, *, allowed: frozenset[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TopologyError(f"{where} must be an object, not {type(value).__name__}")
    unknown = sorted(set(value) - allowed)
    if unknown:
        raise TopologyError(f"{where} has unknown keys {unknown}; known are {sorted(allowed)}")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise TopologyError(f"{where} must be a list, not {type(value).__name__}")
    return value


def _ids(value: object, where: str) -> tuple[int, ...]:
    return tuple(_whole(id_, f"{where}[{i}]") for i, id_ in enumerate(_list(value, where)))


def _maybe_whole(fields: Mapping[str, Any], key: str, where: str) -> int | None:
    return _whole(fields[key], f"{where}.{key}") if key in fields else None


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise TopologyError(f"{where} must be true or false, not {value!r}")
    return value


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= NUMBER_MAX:
        raise TopologyError(f"{where} must be a whole number from 0 to {NUMBER_MAX}, not {value!r}")
    return value
