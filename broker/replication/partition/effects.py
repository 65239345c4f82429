"""Effects of a partition. The shell carries them out in their order."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BecameLeader:
    """Write the epoch into the log's epoch cache at `start_offset`, stop following."""

    leader_epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resigned:
    """Answer everything that waits here with NOT_LEADER_OR_FOLLOWER."""

    leader: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowLeader:
    """Fetch from this leader from now on."""

    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopFollowing:
    """There is no leader to fetch from, or this node is it."""


@dataclass(frozen=True, slots=True)
class HighWatermarkAdvanced:
    """Records below are committed: producers may be answered, consumers may read them."""

    high_watermark: int


@dataclass(frozen=True, slots=True)
class LowWatermarkAdvanced:
    """All replicas start at this offset or later: DeleteRecords may be answered."""

    low_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeIsr:
    """Ask the controller (AlterPartition) for this ISR.

    `broker_epochs` are the epochs under which the members fetched last (-1 unknown).
    """

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    broker_epochs: Mapping[int, int]


Effect = (
    BecameLeader
    | Resigned
    | FollowLeader
    | StopFollowing
    | HighWatermarkAdvanced
    | LowWatermarkAdvanced
    | ProposeIsr
)
Effects = tuple[Effect, ...]

NOTHING: Effects = ()
