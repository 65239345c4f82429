"""Costs of the plans that findings lead to: bytes, and time.

The planner is asked as the plan view asks it, on the cluster itself, in a thread of its own: only
while somebody looks at such a finding, and anew only once the placement has changed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from zlib import crc32

import numpy as np

from control.kafka.errors import KafkaPortError
from control.model.columns import exploded, floats
from control.model.snapshot import ClusterSnapshot
from control.model.units import bytes_text, counted, duration_text, estimate_mark
from control.model.watched_cluster import WatchedCluster
from control.operations.errors import OperationError
from control.views.next_steps import plan_values
from control.views.tables.findings import FindingRow
from control.views.tables.rows import Cell

if TYPE_CHECKING:
    from control.operations.operation_session import OperationSession

PAUSE_S: Final = 10.0
"""So long after an answer the planner is not asked again."""
SHARE_MAX: Final = 0.05
"""Nor for so long that asking takes more than this share of the time."""
RETRY_S: Final = 60.0
"""After an error."""
GROWN: Final = 1.1
"""A cost is asked anew once the cluster holds so many times the bytes, or the inverse."""
PATHS_MAX: Final = 20
"""So many plans are kept, those that were asked for last."""
PARTITIONS_MAX: Final = 30_000
"""No cost is told of a larger cluster: a plan takes seconds there, for which screens would wait."""
WITHIN_S: Final = 3.0
"""A command waits no longer."""

_log: Final = logging.getLogger(__name__)


class PlacementKey(NamedTuple):
    """A digest of a placement: the same while no replica and no broker comes or goes."""

    partitions: int
    replicas: int
    """Checksum of all replica lists."""
    brokers: tuple[int, ...]
    down: tuple[int, ...]
    size_bytes: float

    @classmethod
    def of(cls, cluster: ClusterSnapshot, down: Collection[int]) -> Self:
        """The digest of a cluster while these brokers are down."""
        _, replicas = exploded(cluster.partitions["replicas"])
        return cls(
            partitions=len(cluster.partitions),
            replicas=crc32(replicas.tobytes()),
            brokers=tuple(sorted(cluster.broker_ids)),
            down=tuple(sorted(down)),
            size_bytes=float(np.nansum(floats(cluster.partitions["size_bytes"]))),
        )

    def is_like(self, other: PlacementKey) -> bool:
        """Whether a plan made for one costs about the same for the other."""
        least, most = sorted((self.size_bytes, other.size_bytes))
        return self[:-1] == other[:-1] and most <= max(least, 1.0) * GROWN


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """Bytes and time of a plan's first alternative."""

    moved_bytes: int
    replicas: int
    leaders: int
    seconds_min: float | None
    """None: nothing is copied, or nobody knows."""
    seconds_max: float | None

    @property
    def words(self) -> str:
        """``1.2 GiB, ≈ 40 s to 2 m``; ``12 new leaders``; ``nothing to move``."""
        if not self.replicas:
            return counted(self.leaders, "new leader") if self.leaders else "nothing to move"
        moved, least, most = bytes_text(self.moved_bytes), self.seconds_min, self.seconds_max
        if least is None or most is None:
            return moved
        ends = dict.fromkeys(duration_text(it * 1000) for it in (least, most))
        return f"{moved}, {estimate_mark(True)}{' to '.join(ends)}"


class _Answer(NamedTuple):
    cost: PlanCost | None
    placement: PlacementKey
    at_s: float


class _Question(NamedTuple):
    values: Mapping[str, str]
    """Fields of the plan."""
    placement: PlacementKey


class PlanCosts:
    """Costs of plans of one cluster, as far as they are known. Safe to use from any thread."""

    def __init__(
        self, watched: WatchedCluster | None, bus: str | None = None, *, pause_s: float = PAUSE_S
    ) -> None:
        """``watched`` None: no cost is ever known."""
        self._watched = watched
        self._bus = bus
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._answers: dict[str, _Answer] = {}
        self._questions: dict[str, _Question] = {}
        self._thread: threading.Thread | None = None
        self._free_s = 0.0
        """When the planner may be asked next."""

    def on(self, row: FindingRow, placement_of: Callable[[], PlacementKey | None]) -> FindingRow:
        """The row with the cost in its next step where that is a plan and the cost is known; what
        is not known is asked for. ``placement_of`` gives None: nothing is told, nothing asked."""
        values = {} if self._watched is None else plan_values(row)
        placement = placement_of() if values else None
        if placement is None or placement.partitions > PARTITIONS_MAX:
            return row
        name = "&".join(map("=".join, sorted(values.items())))
        with self._lock:
            answer = self._answers.get(name)
            if answer is None or _is_old(answer, placement):
                self._ask(name, _Question(values, placement))
                return row
        return row if answer.cost is None else _with_cost(row, answer.cost)

    def wait(self, seconds: float) -> None:
        """Wait until what was asked for is known."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _ask(self, name: str, question: _Question) -> None:
        if len(self._questions) < PATHS_MAX or name in self._questions:
            self._questions[name] = question
        if self._thread is None and time.monotonic() >= self._free_s:
            self._thread = threading.Thread(target=self._fill, name="plan-costs", daemon=True)
            self._thread.start()

    def _fill(self) -> None:
        began_s = time.monotonic()
        try:
            asyncio.run(self._answer_all())
        except Exception as error:  # noqa: BLE001 (a screen goes on without costs)
            _log.warning("costs of plans cannot be told: %s", error)
        with self._lock:
            for name, question in self._questions.items():
                self._note(name, None, question.placement)
            self._questions.clear()
            ended_s = time.monotonic()
            self._free_s = ended_s + max(self._pause_s, (ended_s - began_s) / SHARE_MAX)
            self._thread = None

    async def _answer_all(self) -> None:
        # Loaded here: a screen is there before the planner.
        from control.operations.operation_session import OperationSession

        assert self._watched is not None
        async with OperationSession(self._watched, bus=self._bus) as session:
            while self._questions:
                name, question = next(iter(self._questions.items()))
                cost = await _cost_of(session, question.values)
                with self._lock:
                    self._note(name, cost, question.placement)
                    del self._questions[name]

    def _note(self, name: str, cost: PlanCost | None, placement: PlacementKey) -> None:
        self._answers.pop(name, None)
        self._answers[name] = _Answer(cost, placement, time.monotonic())
        while len(self._answers) > PATHS_MAX:
            del self._answers[next(iter(self._answers))]


def _is_old(answer: _Answer, placement: PlacementKey) -> bool:
    is_due = answer.cost is None and time.monotonic() - answer.at_s > RETRY_S
    return is_due or not answer.placement.is_like(placement)


NO_COSTS: Final = PlanCosts(None)
"""Nobody asks a planner."""


def _with_cost(row: FindingRow, cost: PlanCost) -> FindingRow:
    words = f"{row.next_step.text} (plan: {cost.words})"
    return row.with_cells(next_step=Cell(words, words))


async def _cost_of(session: OperationSession, values: Mapping[str, str]) -> PlanCost | None:
    """The cost of the plan that the plan view shows first for these fields; None: the planner
    cannot answer now."""
    from control.operations.catalogue.moves.reassign import Reassign
    from control.operations.reassignment.preview import whole_preview
    from planner.goals import GoalError

    try:
        plan = await session.plan(values)
        offered = [it for it in plan.alternatives if it.proposal.changes]
        proposal = (offered or plan.alternatives)[0].proposal
        run = Reassign.of_plan(proposal, values)
        review = await whole_preview(
            session.planning,
            session.moves,
            proposal,
            site=session.watched.site,
            throttle=run.throttle,
            rules=run.waves,
        )
    except (KafkaPortError, OperationError, GoalError) as error:
        _log.debug("no cost of the plan %s: %s", values, error)
        return None
    return PlanCost(
        moved_bytes=proposal.moved_bytes,
        replicas=proposal.moved_replicas,
        leaders=proposal.moved_leaders,
        seconds_min=review.seconds_min,
        seconds_max=review.seconds_max,
    )
