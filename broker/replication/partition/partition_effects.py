"""The partitions of this node, and the one place where their effects are carried out."""

from collections.abc import Iterable
from typing import Any, Protocol

from broker.log.disk.disk_health import DiskHealth
from broker.replication.errors import NotEnoughReplicasAfterAppendError, NotLeaderError
from broker.replication.flush_by_count import FlushByCount
from broker.replication.partition.effects import (
    BecameLeader,
    FollowLeader,
    HighWatermarkAdvanced,
    LowWatermarkAdvanced,
    ProposeIsr,
    Resigned,
    StopFollowing,
)
from broker.replication.partition.events import Event
from broker.replication.partition.partition import Partition
from broker.replication.timer_wheel import TimerWheel


class FetchersPort(Protocol):
    """Fetches from leaders."""

    def follow(self, partition: Partition, leader: int) -> None: ...
    def unfollow(self, partition: Partition) -> None: ...


class IsrPort(Protocol):
    """Takes ISR proposals to the controller."""

    def propose(self, partition: Partition, proposal: ProposeIsr) -> None: ...


class PartitionEffects:
    """All replicas by name and by topic id.

    `fetchers` and `isr` are set once, before the first event. `disk` is where their logs lie.
    """

    def __init__(self, wheel: TimerWheel, disk: DiskHealth) -> None:
        self.wheel = wheel
        self.disk = disk
        self.flushes = FlushByCount(disk)
        self.by_name: dict[tuple[str, int], Partition] = {}
        self.by_id: dict[tuple[bytes, int], Partition] = {}
        self.fetchers: FetchersPort
        self.isr: IsrPort
        self.has_unsaved_high_watermark = False
        self._runners: dict[type[Any], Any] = {
            BecameLeader: self._became_leader,
            Resigned: self._resigned,
            FollowLeader: self._follow_leader,
            StopFollowing: self._stop_following,
            HighWatermarkAdvanced: self._high_watermark_advanced,
            LowWatermarkAdvanced: self._low_watermark_advanced,
            ProposeIsr: self._propose_isr,
        }

    def partitions(self) -> Iterable[Partition]:
        """Every replica of this node."""
        return self.by_name.values()

    def add(self, partition: Partition) -> None:
        """Take in a replica."""
        self.by_name[partition.topic, partition.partition] = partition
        self.by_id[partition.key] = partition

    def remove(self, partition: Partition) -> None:
        """Let a replica go: whatever waits for it is answered."""
        del self.by_name[partition.topic, partition.partition]
        del self.by_id[partition.key]
        self.fetchers.unfollow(partition)
        self._fail_waiting(partition)

    def apply(self, partition: Partition, event: Event) -> None:
        """Hand an event to the partition's state and do what it asks for."""
        for effect in partition.state.handle(event):
            self._runners[type(effect)](partition, effect)

    def _became_leader(self, partition: Partition, effect: BecameLeader) -> None:
        partition.log.epochs.assign(effect.leader_epoch, effect.start_offset)

    def _resigned(self, partition: Partition, effect: Resigned) -> None:
        self._fail_waiting(partition)

    def _fail_waiting(self, partition: Partition) -> None:
        waiting = list(partition.pending_appends)
        partition.pending_appends.clear()
        for pending in waiting:
            self.wheel.remove(pending)
            pending.finish(NotLeaderError())
        for watcher in (*partition.consumers, *partition.sessions):
            watcher.partition_changed(partition)
            watcher.records_appended(partition)
        for waiter in list(partition.low_watermark_waiters):
            waiter(-1)

    def _follow_leader(self, partition: Partition, effect: FollowLeader) -> None:
        self.fetchers.follow(partition, effect.leader)

    def _stop_following(self, partition: Partition, effect: StopFollowing) -> None:
        self.fetchers.unfollow(partition)

    def _high_watermark_advanced(self, partition: Partition, effect: HighWatermarkAdvanced) -> None:
        self.has_unsaved_high_watermark = True
        if partition.pending_appends:
            self._acknowledge(partition, effect.high_watermark)
        for consumer in tuple(partition.consumers):
            consumer.partition_changed(partition)
        for session in partition.sessions:
            session.partition_changed(partition)

    def _acknowledge(self, partition: Partition, high_watermark: int) -> None:
        error = None
        if not partition.state.has_enough_replicas:
            error = NotEnoughReplicasAfterAppendError()
        pending_appends = partition.pending_appends
        while pending_appends and pending_appends[0].required_offset <= high_watermark:
            pending = pending_appends.popleft()
            self.wheel.remove(pending)
            pending.finish(error)

    def _low_watermark_advanced(self, partition: Partition, effect: LowWatermarkAdvanced) -> None:
        for waiter in list(partition.low_watermark_waiters):
            waiter(effect.low_watermark)

    def _propose_isr(self, partition: Partition, effect: ProposeIsr) -> None:
        self.isr.propose(partition, effect)
