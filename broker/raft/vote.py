"""Epoch and vote, kept in Kafka's quorum-state file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """The highest epoch this node has seen, its leader if known, and whom this node voted for."""

    epoch: int = 0
    leader_id: int | None = None
    voted_id: int | None = None
