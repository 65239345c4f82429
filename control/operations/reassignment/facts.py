"""State of a cluster right now, as far as planning and pre-flight need it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from control.kafka.connection.together import together
from control.kafka.errors import KafkaPortError, RefusedError
from control.kafka.ports import (
    AdminPort,
    BrokerNode,
    ConfigResource,
    ConfigScope,
    LogDir,
    MissingRight,
    OngoingReassignment,
    PartitionMetadata,
)
from control.model.ids import TopicPartition
from control.operations.reassignment.disks.directory_placement import (
    Disks,
    even_room,
    read_disks,
    read_in_flight,
)
from control.operations.reassignment.placements import Placements, left_as_they_are
from planner.in_sync import why_too_few, why_unsafe
from planner.proposal import PartitionChange
from planner.topology import Topology, TopologyBroker, TopologyPartition

MIN_ISR: Final = "min.insync.replicas"
UNNAMED: Final = "of the kind that was asked"
"""A listener whose name nobody tells."""
DISK_RESERVE: Final = 0.05
"""Share of what is free that a move must leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """One reading of the cluster. `brokers` are the live ones; fenced ones are not among them.

    `sizes` are bytes of the largest replica; `usable_bytes` counts what new replicas may come to,
    and is absent where a broker does not tell, `min_isr` where it does not or nobody needs it.
    """

    cluster_id: str
    brokers: tuple[BrokerNode, ...]
    partitions: Mapping[TopicPartition, PartitionMetadata]
    reassigning: Mapping[TopicPartition, OngoingReassignment]
    sizes: Mapping[TopicPartition, int]
    usable_bytes: Mapping[int, int]
    min_isr: Mapping[str, int]
    produced: Mapping[TopicPartition, float] = field(default_factory=dict)
    """Bytes per second that producers write, by leader; absent where not measured."""
    readers: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    """Groups that have committed in moving partitions, with these partitions."""
    log_dirs: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    """Log directories of brokers that have several or a failed one."""
    in_flight: Mapping[int, Mapping[TopicPartition, int]] = field(default_factory=dict)
    """Bytes that running reassignments have still to copy, by broker."""
    missing_rights: tuple[MissingRight, ...] = ()
    """What we lack to move them; empty also where brokers do not tell."""
    fetch_backoff_ms: Mapping[int, int] = field(default_factory=dict)
    """``replica.fetch.backoff.ms`` of brokers that replicate what moves; absent where not told."""
    standing_rates: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Throttle rates that brokers between which data moves have already, and not of ours."""
    cordoned: frozenset[int] = frozenset()
    """Live brokers all of whose live log directories are cordoned."""
    untold_cordons: frozenset[int] = frozenset()
    """Live brokers that may be cordoned: they do not describe their log directories."""
    untold_sync: frozenset[TopicPartition] = frozenset()
    """Partitions of which nobody tells which replicas are in sync."""
    disk_reserve: float = DISK_RESERVE
    """Share of what is free that a move must leave."""
    created_anew: frozenset[str] = frozenset()
    """Topics that were left out: others than those asked for, under their names."""
    hidden: frozenset[int] = frozenset()
    """Brokers that run, but lack the listener by which the cluster was asked."""
    listener: str = ""
    """Its name; empty: nobody lacks it."""
    is_settled: bool = False
    """Whether every broker has heard of the end of the operation to roll back."""

    @property
    def broker_ids(self) -> frozenset[int]:
        """Live brokers."""
        return frozenset(broker.id for broker in self.brokers) | self.hidden

    @property
    def targets(self) -> frozenset[int]:
        """Brokers that a reassignment may name."""
        return self.broker_ids - self.cordoned - self.hidden

    @property
    def disks(self) -> Disks:
        """Free bytes on brokers."""
        return Disks(
            usable_bytes=self.usable_bytes, log_dirs=self.log_dirs, in_flight=self.in_flight
        )

    @property
    def places(self) -> Placements:
        """Where partitions are and where they are going."""
        return Placements(
            placed=self.partitions, moving=self.reassigning, is_settled=self.is_settled
        )

    def as_now(self, changes: Iterable[PartitionChange]) -> tuple[PartitionChange, ...]:
        """The same changes with what their partitions hold now and who leads them; where that is
        not known, with what held when they were planned."""
        live, now = self.broker_ids, []
        for change in changes:
            size = self.sizes.get(change.key, change.size_bytes)
            partition = self.partitions.get(change.key)
            leader = None if partition is None else _leader(partition, live)
            leader = change.leader if leader is None else leader
            now.append(replace(change, size_bytes=size, leader=leader))
        return tuple(now)

    def has_leader(self, partition: PartitionMetadata) -> bool:
        """Whether a live broker leads it, or is about to."""
        return _leader(partition, self.broker_ids) is not None

    def in_sync(self, partition: PartitionMetadata) -> tuple[int, ...]:
        """Replicas in sync on live brokers."""
        live = self.broker_ids
        return tuple(broker for broker in partition.isr if broker in live)

    def placement_of(self, key: TopicPartition) -> tuple[int, ...] | None:
        """The replicas a partition has, or is going to have; null when it does not exist."""
        moving = self.reassigning.get(key)
        if moving is not None:
            return moving.target_replicas
        partition = self.partitions.get(key)
        return None if partition is None else partition.replicas


def _leader(partition: PartitionMetadata, live: Collection[int]) -> int | None:
    """Metadata may name one that has just died, and another in sync takes over; or none, where
    the leader lacks our listener."""
    if partition.leader in live:
        return partition.leader
    if partition.leader < 0 and not partition.is_leader_hidden:
        return None
    in_sync = (b for b in partition.replicas if b in partition.isr and b in live)
    return next(in_sync, None)


def nears_min_isr(change: PartitionChange, partition: PartitionMetadata | None) -> bool:
    """Whether it leaves fewer replicas, or not all are in sync."""
    lacks = partition is not None and len(partition.isr) < len(partition.replicas)
    return lacks or len(change.after) < len(change.before)


def to_go(
    facts: ClusterFacts, changes: Iterable[PartitionChange], *, rolled_back: str | None
) -> tuple[PartitionChange, ...]:
    """Changes that a run which begins now has to make: partitions that exist, are elsewhere and are
    not on their way anywhere. A rollback (`rolled_back`) leaves out what others have moved since
    and what cannot move now; it finds the copies that are there already."""
    existing = [change for change in changes if change.key in facts.partitions]
    others = left_as_they_are(facts.places, existing, rolled_back=rolled_back)
    left = [c for c in existing if c.key not in others and not facts.places.is_there(c)]
    if rolled_back is None:
        return tuple(c for c in left if c.key not in facts.reassigning)
    stuck = cannot_move(facts, left)
    return tuple(
        replace(change, before=facts.partitions[change.key].replicas)
        for change in left
        if change.key not in stuck
    )


def cannot_move(
    facts: ClusterFacts, changes: Iterable[PartitionChange]
) -> dict[TopicPartition, str]:
    """Why these cannot move. A partition without a leader can neither copy nor change its replicas.
    A move ends once all of its target is in sync. What is in sync must not go."""
    stuck = {}
    for change in changes:
        partition = facts.partitions.get(change.key)
        if partition is None or set(partition.replicas) == set(change.after):
            continue
        down = sorted(set(change.after) - facts.broker_ids)
        if not facts.has_leader(partition):
            away = sorted(set(partition.isr or partition.replicas) - facts.broker_ids)
            back = f"; its records in sync are on broker {' and '.join(map(str, away))}"
            stuck[change.key] = f"has no leader{back if away else ''}"
        elif down:
            stuck[change.key] = f"would be on broker {down[0]}, which does not run"
        elif lost := loses_sync(facts, change) or goes_below_min_isr(facts, change):
            stuck[change.key] = lost
    return stuck


def loses_sync(facts: ClusterFacts, change: PartitionChange) -> str:
    """Why a change drops what is in sync today; empty where it does not."""
    partition = facts.partitions.get(change.key)
    if partition is None or change.key in facts.untold_sync:
        return ""
    return why_unsafe(partition.replicas, change.after, facts.in_sync(partition))


def goes_below_min_isr(facts: ClusterFacts, change: PartitionChange) -> str:
    """Why a change leaves fewer in sync than producers with acks=all need, and have today."""
    partition = facts.partitions.get(change.key)
    if partition is None or change.key in facts.untold_sync:
        return ""
    least = facts.min_isr.get(change.topic)
    return why_too_few(partition.replicas, change.after, facts.in_sync(partition), least)


def as_cancelled(facts: ClusterFacts, changes: Iterable[PartitionChange]) -> ClusterFacts:
    """The cluster once the moves in flight of these changes are cancelled."""
    partitions, reassigning = dict(facts.partitions), dict(facts.reassigning)
    for change in changes:
        if change.key in partitions and facts.places.is_moving(change):
            del reassigning[change.key]
            at = partitions[change.key]
            isr = tuple(broker for broker in at.isr if broker in change.before)
            partitions[change.key] = replace(at, replicas=change.before, isr=isr)
    return replace(facts, partitions=partitions, reassigning=reassigning)


async def read_facts(admin: AdminPort, *, changes: Iterable[PartitionChange] = ()) -> ClusterFacts:
    """Read the cluster; `min_isr` only for topics of those `changes` that bring it nearer or find
    replicas out of sync, rights only for those that they name.

    :raises KafkaPortError: unreachable.
    """
    changes = tuple(changes)
    cluster = await admin.describe_cluster()
    async with together() as group:
        topics = group.create_task(admin.topics())
        ongoing = group.create_task(admin.list_reassignments())
        directories = group.create_task(_log_dirs(admin))
    metadata, moving, log_dirs = topics.result(), ongoing.result(), directories.result()
    disks, sizes = read_disks(log_dirs), sizes_of(log_dirs)
    known = {topic.name for topic in metadata}
    partitions = {p.key: p for topic in metadata for p in topic.partitions}
    listed = {broker.id for broker in cluster.brokers}
    hidden = _hidden(partitions.values(), listed)
    near = {c.topic for c in changes if nears_min_isr(c, partitions.get(c.key))} & known
    return ClusterFacts(
        cluster_id=cluster.cluster_id,
        brokers=cluster.brokers,
        partitions=partitions,
        reassigning={reassignment.key: reassignment for reassignment in moving},
        sizes=sizes,
        usable_bytes=disks.usable_bytes,
        log_dirs=disks.log_dirs,
        in_flight=read_in_flight(moving, log_dirs, sizes),
        cordoned=cordoned_of(log_dirs),
        untold_cordons=frozenset(
            {broker.id for broker in cluster.brokers} - {it.broker for it in log_dirs}
        ),
        hidden=hidden,
        listener=await _listener(admin, cluster.brokers) if hidden else "",
        min_isr=await read_min_isr(admin, near),
        missing_rights=await _missing_rights(admin, {change.topic for change in changes} & known),
    )


def facts_of(topology: Topology) -> ClusterFacts:
    """The inverse of topology_of: what a topology tells of a cluster. Where it does not tell who is
    in sync or leads, live replicas are taken for it (`untold_sync`)."""
    down = topology.down
    capacity = {b.id: b.capacity_bytes for b in topology.brokers if b.is_running}
    held = dict.fromkeys(capacity, 0)
    partitions, untold = {}, set()
    for p in topology.partitions:
        if p.isr is None:
            untold.add(p.key)
        live = tuple(id_ for id_ in p.replicas if id_ not in down)
        isr = live if p.isr is None else p.isr
        leader = next(iter(isr), -1) if p.leader is None else p.leader
        partitions[p.key] = PartitionMetadata(
            topic=p.topic,
            partition=p.partition,
            leader=leader if p.has_leader else -1,
            leader_epoch=0,
            replicas=p.replicas,
            isr=isr,
        )
        for broker in live:
            held[broker] += p.size_bytes
    moving = (p for p in topology.partitions if p.is_reassigning)
    return ClusterFacts(
        cluster_id="",
        brokers=tuple(
            BrokerNode(id=b.id, host="", port=0, rack=b.rack)
            for b in topology.brokers
            if b.is_running
        ),
        partitions=partitions,
        reassigning={
            p.key: OngoingReassignment(
                topic=p.topic,
                partition=p.partition,
                replicas=p.replicas,
                adding_replicas=(),
                removing_replicas=(),
            )
            for p in moving
        },
        sizes={p.key: p.size_bytes for p in topology.partitions if p.is_size_known},
        usable_bytes={
            broker: max(0, most - held[broker])
            for broker, most in capacity.items()
            if most is not None
        },
        disk_reserve=0.0,
        min_isr={p.topic: p.min_isr for p in topology.partitions if p.min_isr is not None},
        cordoned=frozenset(b.id for b in topology.brokers if b.is_cordoned and b.is_running),
        untold_sync=frozenset(untold),
    )


def topology_of(facts: ClusterFacts) -> Topology:
    """The planner's input. Brokers that are down and hold replicas are listed, of an unknown rack:
    they get nothing, and a plan can move their replicas away."""
    racks = {broker.id: broker.rack for broker in facts.brokers}
    running, partitions = facts.broker_ids, []
    for key, metadata in sorted(facts.partitions.items()):
        replicas = facts.placement_of(key) or metadata.replicas
        for replica in replicas:
            racks.setdefault(replica, None)
        partitions.append(
            TopologyPartition(
                topic=key.topic,
                partition=key.partition,
                replicas=replicas,
                size_bytes=facts.sizes.get(key, 0),
                in_bytes_per_s=int(facts.produced.get(key, 0.0)),
                has_leader=(leader := _leader(metadata, running)) is not None,
                is_size_known=key in facts.sizes,
                is_rate_known=key in facts.produced or not facts.produced,
                leader=leader if leader in replicas or key in facts.reassigning else None,
                isr=None if key in facts.untold_sync else _isr(metadata, replicas),
                min_isr=facts.min_isr.get(key.topic),
                is_reassigning=key in facts.reassigning,
            )
        )
    capacity = _capacities(facts)
    brokers = tuple(
        TopologyBroker(
            id=id_,
            rack=rack,
            capacity_bytes=capacity.get(id_),
            is_running=id_ in running,
            is_cordoned=id_ in facts.cordoned,
            lacks_listener=facts.listener if id_ in facts.hidden else "",
        )
        for id_, rack in sorted(racks.items())
    )
    return Topology(brokers=brokers, partitions=tuple(partitions))


def _isr(partition: PartitionMetadata, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Those of these replicas that are in sync."""
    if replicas == partition.isr:
        return replicas
    return tuple(broker for broker in partition.isr if broker in replicas)


def _capacities(facts: ClusterFacts) -> dict[int, int]:
    """Bytes that each broker may hold in all, where it tells what is free: the planner counts
    every replica at its partition's largest size, and so does this."""
    held = dict.fromkeys(facts.usable_bytes, 0)
    for key, metadata in facts.partitions.items():
        for replica in facts.placement_of(key) or metadata.replicas:
            if replica in held:
                held[replica] += facts.sizes.get(key, 0)
    room = {
        broker: even_room(facts.log_dirs[broker]) if broker in facts.log_dirs else usable
        for broker, usable in facts.usable_bytes.items()
    }
    return {
        broker: held[broker] + int(free * (1 - facts.disk_reserve))
        for broker, free in room.items()
        if free is not None
    }


def sizes_of(log_dirs: Iterable[LogDir]) -> dict[TopicPartition, int]:
    """Bytes of the largest replica of each partition."""
    sizes: dict[TopicPartition, int] = {}
    for log_dir in log_dirs:
        for replica in log_dir.replicas:
            key = TopicPartition(replica.topic, replica.partition)
            if not replica.is_future:
                sizes[key] = max(sizes.get(key, 0), replica.size_bytes)
    return sizes


def _hidden(partitions: Iterable[PartitionMetadata], listed: Collection[int]) -> frozenset[int]:
    """Brokers that Metadata leaves out though they run: it lists those with the listener that was
    asked, and the controller takes who does not run out of every ISR with others in it."""
    in_sync = (p.isr for p in partitions if len(p.isr) > 1)
    return frozenset(broker for isr in in_sync for broker in isr if broker not in listed)


async def _listener(admin: AdminPort, brokers: Collection[BrokerNode]) -> str:
    """The name of the listener by which these are known, as the first tells it."""
    node = next(iter(brokers))
    resource = ConfigResource(scope=ConfigScope.BROKER, name=str(node.id))
    try:
        entries = await admin.describe_configs(resource, ("advertised.listeners", "listeners"))
    except KafkaPortError:
        return UNNAMED
    told = (part for entry in entries for part in (entry.value or "").split(","))
    named = (part.strip().partition("://") for part in told)
    ports = {at.rpartition(":")[2]: name for name, _, at in named}
    return ports.get(str(node.port), UNNAMED)


async def _missing_rights(admin: AdminPort, topics: set[str]) -> tuple[MissingRight, ...]:
    try:
        return await admin.missing_rights(topics) if topics else ()
    except KafkaPortError:
        return ()


async def _log_dirs(admin: AdminPort) -> tuple[LogDir, ...]:
    """Log directories, or none where the rights or the API lack: sizes are then unknown."""
    try:
        return await admin.log_dirs()
    except KafkaPortError:
        return ()


async def cordoned_brokers(admin: AdminPort) -> frozenset[int]:
    """Live brokers that take no new replica, as far as brokers tell."""
    try:
        return cordoned_of(await admin.log_dirs(partitions=()))
    except KafkaPortError:
        return frozenset()


def cordoned_of(log_dirs: Iterable[LogDir]) -> frozenset[int]:
    """Brokers without a live log directory that takes new replicas: the controller refuses every
    target list that names one, also for replicas that it has already."""
    live = [log_dir for log_dir in log_dirs if not log_dir.is_failed]
    open_brokers = {log_dir.broker for log_dir in live if not log_dir.is_cordoned}
    return frozenset(log_dir.broker for log_dir in live) - open_brokers


async def read_min_isr(admin: AdminPort, topics: Iterable[str]) -> dict[str, int]:
    """min.insync.replicas of the topics that may be described."""

    async def of_one(topic: str) -> int | None:
        resource = ConfigResource(scope=ConfigScope.TOPIC, name=topic)
        try:
            entries = await admin.describe_configs(resource, (MIN_ISR,))
        except RefusedError:
            return None
        return next((int(entry.value) for entry in entries if entry.value is not None), 1)

    named = sorted(topics)
    async with together() as group:
        told = {topic: group.create_task(of_one(topic)) for topic in named}
    found = {topic: answer.result() for topic, answer in told.items()}
    return {topic: least for topic, least in found.items() if least is not None}
