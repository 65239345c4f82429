"""Rollbacks: the reassignment that one asks for."""

from dataclasses import dataclass, field
from typing import Final

from control.model.watched_cluster import Site
from control.move.commands import TopicIds
from control.move.throttle import Throttle
from planner.proposal import Proposal
from planner.waves import WaveRules

SETTLED_WITHIN_S: Final = 15.0
"""Every broker knows by then how the operation to roll back ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """The inverse of an operation, in its waves, at the throttle that was asked for last."""

    rolled_back: str
    bootstrap: str
    proposal: Proposal
    throttle: Throttle
    waves: WaveRules
    is_running: bool
    """Whether the operation must be cancelled first."""
    is_settled: bool = False
    """Whether it ended so long ago that every broker has heard of it."""
    cluster_id: str = ""
    topic_ids: TopicIds = field(default_factory=dict)
    """Of the topics that the operation moved."""

    @property
    def site(self) -> Site:
        """The cluster that it is about."""
        return Site(self.bootstrap, self.cluster_id)
