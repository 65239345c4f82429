"""Ways back: what a rollback asks for, and how it begins."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from control.model.watched_cluster import Site
from control.operations.bus.commands import Throttle
from control.operations.executor.move_watch import MoveWatch
from control.operations.executor.run_context import RunContext
from control.operations.reassignment.topic_ids import TopicIds
from planner.proposal import PartitionChange, Proposal
from planner.waves import WaveRules

SETTLED_WITHIN_S: Final = 15.0
SETTLED_POLL_S: Final = 0.5


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


async def settle(watch: MoveWatch, changes: Iterable[PartitionChange], context: RunContext) -> None:
    """Waits until brokers know how the operation to roll back ended. A broker that lags tells old
    and new replicas together, as if somebody had added some."""
    until_s = time.monotonic() + SETTLED_WITHIN_S
    await watch.refresh()
    while any(map(watch.places.is_between, changes)) and time.monotonic() < until_s:
        if context.flags().is_cancelled:
            return
        await context.flags().wait(SETTLED_POLL_S)
        await watch.refresh()
