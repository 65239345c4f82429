"""Events of a partition. Offsets are Kafka offsets, times monotonic ms."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentChanged:
    """The metadata image says who replicates and who leads; leader -1 means nobody."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibleReplicasChanged:
    """Brokers that may join an ISR (neither fenced nor shutting down), with their epochs."""

    broker_epochs: Mapping[int, int]
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MinInsyncReplicasChanged:
    """The topic's min.insync.replicas is set."""

    min_insync_replicas: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class LeaderAppended:
    """The leader's own log has grown to this end offset."""

    log_end_offset: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class ReplicaFetched:
    """A follower asks from `fetch_offset` on, so it has everything before; it is its ack."""

    replica: int
    fetch_offset: int
    log_start_offset: int
    broker_epoch: int
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrScanDue:
    """Time to look for followers that have fallen behind."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrCommitted:
    """The controller has accepted a proposal (or says what the ISR is)."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrRejected:
    """The controller has definitely not applied the proposal of this partition epoch."""

    partition_epoch: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class FollowerAppended:
    """A fetch was written: own end offset, and the leader's high watermark."""

    log_end_offset: int
    leader_high_watermark: int


@dataclass(frozen=True, slots=True)
class LogTruncated:
    """The follower's log was cut back (or started anew) to end at this offset."""

    log_end_offset: int


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """The own log starts later: retention or DeleteRecords."""

    log_start_offset: int


Event = (
    AssignmentChanged
    | EligibleReplicasChanged
    | MinInsyncReplicasChanged
    | LeaderAppended
    | ReplicaFetched
    | IsrScanDue
    | IsrCommitted
    | IsrRejected
    | FollowerAppended
    | LogTruncated
    | LogStartMoved
)
