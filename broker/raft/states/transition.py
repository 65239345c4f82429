"""Transitions: what a state wants its voter to become. `RaftRoles.apply` alone carries them out."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeUnattached:
    """Wait for a leader of `epoch`, for `patience_ms` or a random election timeout; an observer
    asks for it."""

    epoch: int
    voted_id: int | None = None
    patience_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeProspective:
    """Ask for promises, in the same epoch."""

    previous_leader: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeCandidate:
    """Raise the epoch, vote for oneself and ask for votes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeLeader:
    """Lead the epoch that was won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BecomeFollower:
    """Follow the leader of `epoch`."""

    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resign:
    """Give leadership away to the voter that has most of the log."""


Transition = (
    BecomeUnattached | BecomeProspective | BecomeCandidate | BecomeLeader | BecomeFollower | Resign
)
