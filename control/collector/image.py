"""Keeps what the watched cluster told: brokers, partitions, offsets. Pure.

Metadata is taken by difference: a topic whose partitions are the same as in the last answer costs
a comparison and nothing else. ``version`` changes whenever leadership or placement did, so that
requests made from it can be kept until then.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.metrics_schema import LogDirSample
from control.kafka.ports import OngoingReassignment
from control.model.ids import TopicPartition

NO_LEADER: Final = -1
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerInfo:
    """A broker as Metadata and DescribeCluster list it."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False

    @property
    def has_address(self) -> bool:
        """False: it runs, but lacks the listener by which the cluster is asked."""
        return bool(self.host)


@dataclass(slots=True, kw_only=True)
class PartitionState:
    """One partition: where it lives, and the newest offsets that its leader told."""

    key: TopicPartition
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    adding: Sequence[int] = ()
    removing: Sequence[int] = ()
    log_start_offset: int | None = None
    high_watermark: int | None = None
    ends_read_ms: int = 0
    log_points: Sequence[int] | None = None
    """When the log ended where; see ``control.collector.log_times``."""
    readable_offset: int | None = None
    """See ``control.collector.readable_ends``."""
    bytes_in: float | None = None
    """Estimated bytes since the collector first saw it; see ``control.collector.traffic``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfigs:
    """Configs of a topic that figures rest on."""

    min_isr: int | None = None
    retention_ms: int | None = None
    """-1 for ever; null unless records are deleted by age."""
    retention_bytes: int | None = None
    """-1 where size deletes nothing; null: not told."""


@dataclass(slots=True, kw_only=True)
class BrokerLogs:
    """One broker's answer to DescribeLogDirs."""

    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    total_bytes: int | None = None
    usable_bytes: int | None = None
    """Of the file systems of live directories; None: the broker does not tell (before 3.3)."""
    directories: tuple[LogDirSample, ...] = ()
    read_ms: int = 0


class ClusterImage:
    """The watched cluster as of the newest answers."""

    def __init__(self) -> None:
        self.cluster_id = ""
        self.controller_id = UNKNOWN
        self.metadata_controller_id = UNKNOWN
        """What Metadata says: the truth before KRaft, any live broker since."""
        self.version = 0
        self.read_ms = 0
        self.brokers: dict[int, BrokerInfo] = {}
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.configs: dict[str, TopicConfigs] = {}
        self.logs: dict[int, BrokerLogs] = {}
        self._topics: dict[str, Any] = {}
        self._missed: dict[str, int] = {}
        self._by_broker: tuple[int, dict[int, list[PartitionState]]] = (-1, {})
        self._orphans: tuple[tuple[int, frozenset[int]], list[PartitionState]]
        self._orphans = (-1, frozenset()), []
        self._listed: frozenset[int] = frozenset()
        """Brokers that Metadata lists."""
        self._in_sync: tuple[int, set[int]] = (-1, set())

    @property
    def topics(self) -> Collection[str]:
        """Names of the topics that we may describe."""
        return self._topics.keys()

    def take_metadata(self, message: Any, read_ms: int) -> None:
        """A full Metadata answer. One from another cluster makes everything before it void."""
        if message.cluster_id != self.cluster_id and self.cluster_id:
            self._forget()
        self.cluster_id = message.cluster_id or ""
        self.read_ms = read_ms
        self.metadata_controller_id = message.controller_id
        live = {
            b.node_id: BrokerInfo(id=b.node_id, host=b.host, port=b.port, rack=b.rack)
            for b in message.brokers
        }
        self._take_brokers(live)
        self._listed = frozenset(live)
        topics = {t.name: t for t in message.topics if _is_readable(t)}
        for name in self._topics.keys() - topics.keys():
            self._drop(name)
        for name, topic in topics.items():
            known = self._topics.get(name)
            if known is None or known.partitions != topic.partitions:
                self._take_topic(topic)
        self._topics = topics
        self._add_hidden()

    def take_registered(self, brokers: Iterable[BrokerInfo]) -> None:
        """Every registered broker, from DescribeCluster where it tells of fenced ones."""
        self.brokers = {broker.id: broker for broker in brokers}
        self._add_hidden()

    def take_reassignments(self, ongoing: Iterable[OngoingReassignment]) -> None:
        """All running reassignments."""
        moving = {move.key: move for move in ongoing}
        for key, state in self.partitions.items():
            move = moving.get(key)
            state.adding = () if move is None else move.adding_replicas
            state.removing = () if move is None else move.removing_replicas

    def take_offsets(self, found: Mapping[TopicPartition, int], read_ms: int) -> None:
        """High watermarks, asked for at ``read_ms``."""
        for key, offset in found.items():
            state = self.partitions.get(key)
            if state is not None:
                state.high_watermark, state.ends_read_ms = offset, read_ms

    def take_starts(self, found: Mapping[TopicPartition, int]) -> None:
        """Log start offsets."""
        for key, offset in found.items():
            state = self.partitions.get(key)
            if state is not None:
                state.log_start_offset = offset

    def replicas_of(self, broker: int) -> list[PartitionState]:
        """Partitions that the broker holds, as assigned."""
        return self._index().get(broker, [])

    def led_by(self, broker: int) -> list[PartitionState]:
        """Partitions that the broker leads."""
        return [state for state in self.replicas_of(broker) if state.leader == broker]

    def orphans(self, told_by: frozenset[int]) -> Sequence[PartitionState]:
        """Partitions without a replica on any of these brokers."""
        key = self.version, told_by
        if self._orphans[0] != key:
            found = [it for it in self.partitions.values() if told_by.isdisjoint(it.replicas)]
            self._orphans = key, found
        return self._orphans[1]

    def assigned_brokers(self) -> set[int]:
        """Brokers that some assignment names, registered or not."""
        return set(self._index())

    def hidden_topics(self) -> set[str]:
        """Topics that log directories hold but Metadata does not show: no right to them.

        One that was deleted or created between the two readings is not hidden: it counts when
        log directories that were read after it was first missed still hold it.
        """
        held: dict[str, int] = {}
        for logs in self.logs.values():
            for topic in {key.topic for key in logs.sizes} - self._topics.keys():
                held[topic] = max(held.get(topic, 0), logs.read_ms)
        self._missed = {topic: self._missed.get(topic, self.read_ms) for topic in held}
        return {topic for topic, read_ms in held.items() if read_ms > self._missed[topic]}

    def _index(self) -> dict[int, list[PartitionState]]:
        version, index = self._by_broker
        if version != self.version:
            index = {}
            for state in self.partitions.values():
                for broker in state.replicas:
                    index.setdefault(broker, []).append(state)
            self._by_broker = (self.version, index)
        return index

    def _take_brokers(self, live: dict[int, BrokerInfo]) -> None:
        known = self.brokers
        self.brokers = live
        for broker in known.keys() - live.keys():
            # Where nobody lists fenced brokers, one that still holds replicas is away, not gone.
            if broker in self.assigned_brokers():
                old = known[broker]
                self.brokers[broker] = BrokerInfo(
                    id=old.id,
                    host=old.host,
                    port=old.port,
                    rack=old.rack,
                    is_fenced=old.has_address,
                )

    def _add_hidden(self) -> None:
        """Adds brokers that run but lack our listener, so that answers leave them out: a broker
        that does not run is in no ISR with others."""
        if self._in_sync[0] != self.version:
            isrs = (state.isr for state in self.partitions.values() if len(state.isr) > 1)
            led = (state.leader for state in self.partitions.values() if state.leader >= 0)
            self._in_sync = self.version, {*led, *(broker for isr in isrs for broker in isr)}
        for broker in sorted(self._in_sync[1] - self.brokers.keys()):
            self.brokers[broker] = BrokerInfo(id=broker, host="", port=UNKNOWN, rack=None)

    def _take_topic(self, topic: Any) -> None:
        seen = set()
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition_index)
            seen.add(key)
            epoch = getattr(partition, "leader_epoch", UNKNOWN)
            state = self.partitions.get(key)
            if state is None:
                state = PartitionState(key=key, leader=-1, leader_epoch=-1, replicas=(), isr=())
                self.partitions[key] = state
            state.leader, state.leader_epoch = self._leader_of(partition), epoch
            state.replicas = tuple(partition.replica_nodes)
            state.isr = tuple(partition.isr_nodes)
        self._drop(topic.name, keep=seen)
        self.version += 1

    def _leader_of(self, partition: Any) -> int:
        """Metadata does not name a leader that lacks our listener."""
        if partition.error_code is not ErrorCode.listener_not_found:
            leader: int = partition.leader_id
            return leader
        in_sync = (broker for broker in partition.replica_nodes if broker in partition.isr_nodes)
        return next((broker for broker in in_sync if broker not in self._listed), NO_LEADER)

    def _drop(self, topic: str, keep: set[TopicPartition] | None = None) -> None:
        known = self._topics.get(topic)
        if known is None:
            return
        for partition in known.partitions:
            key = TopicPartition(topic, partition.partition_index)
            if keep is None or key not in keep:
                self.partitions.pop(key, None)
        if keep is None:
            self.configs.pop(topic, None)
        self.version += 1

    def _forget(self) -> None:
        self.partitions.clear()
        self.configs.clear()
        self.logs.clear()
        self.brokers.clear()
        self._topics = {}
        self.version += 1


def _is_readable(topic: Any) -> bool:
    return topic.name is not None and topic.error_code in (
        ErrorCode.none,
        ErrorCode.leader_not_available,
        ErrorCode.replica_not_available,
        ErrorCode.listener_not_found,
    )
