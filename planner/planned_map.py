"""A plan as it lies on the map: what each broker holds of each topic, before and after. Pure.

Plans that were shown lately are kept under a short name made of their changes, so that a map and
the way back to the plan can be links.
"""

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from planner.optimizer import Alternative, Plan
from planner.proposal import PartitionChange, Proposal
from planner.topology import Topology

TOPICS_MAX: Final = 40
PLANS_MAX: Final = 16
PARTITIONS_MAX: Final = 500_000
"""Of all kept plans together, save for the newest, which is always kept."""
MEASURES: Final = ("size_bytes", "replicas", "leaders")

Grid = tuple[tuple[int, ...], ...]
"""``[broker][topic]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMap:
    """Bytes, replicas or preferred leaders of the topics that a plan changes, those that move most
    first; `topics_left_out` change as well."""

    brokers: tuple[int, ...]
    topics: tuple[str, ...]
    before: Grid
    after: Grid
    topics_left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPlan:
    """A plan, which of its alternatives was meant, and the form's values that asked for it. One
    that was edited by hand also has the name of what was edited, and the entries."""

    plan: Plan
    chosen: int
    values: Mapping[str, str]
    base: str = ""
    entries: str = ""

    @property
    def alternative(self) -> Alternative:
        """The one that was meant."""
        return self.plan.alternatives[self.chosen]


class KeptPlans:
    """The last few plans by name."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, KeptPlan] = OrderedDict()

    def keep(
        self, plan: Plan, values: Mapping[str, str], *, base: str = "", entries: str = ""
    ) -> Plan:
        """Keep all alternatives, as edits of ``base`` where it is given; answers the plan as it
        is."""
        kept = KeptPlan(plan=plan, chosen=0, values=dict(values), base=base, entries=entries)
        for chosen, alternative in enumerate(plan.alternatives):
            name = plan_name(alternative.proposal)
            # Entries that change nothing leave what they edit as it was.
            if name != base:
                self._plans[name] = replace(kept, chosen=chosen)
                self._plans.move_to_end(name)
        while self._is_too_much(newest=plan):
            self._plans.popitem(last=False)
        return plan

    def find(self, name: str) -> KeptPlan | None:
        """None: never kept, or replaced by ones that were looked at since."""
        kept = self._plans.get(name)
        if kept is not None:
            self._plans.move_to_end(name)
        return kept

    def _is_too_much(self, newest: Plan) -> bool:
        plans = {id(kept.plan): kept.plan for kept in self._plans.values()}
        held = sum(len(plan.before.partitions) for plan in plans.values())
        too_much = len(plans) > PLANS_MAX or held > PARTITIONS_MAX
        return too_much and any(plan is not newest for plan in plans.values())


def plan_name(proposal: Proposal) -> str:
    """The same for the same changes, whoever made them."""
    digest = hashlib.sha256()
    for change in proposal.changes:
        digest.update(f"{change.key}:{change.before}:{change.after}\n".encode())
    return digest.hexdigest()[:12]


def planned_map_of(before: Topology, proposal: Proposal, measure: str) -> PlannedMap:
    """`measure` is one of `MEASURES`."""
    moved: Counter[str] = Counter()
    for change in proposal.changes:
        moved[change.topic] += change.moved_bytes
    topics = sorted(moved, key=lambda topic: (-moved[topic], topic))
    shown = {topic: place for place, topic in enumerate(topics[:TOPICS_MAX])}
    row_of = {id_: row for row, id_ in enumerate(before.broker_ids)}
    now = [[0] * len(shown) for _ in row_of]
    for partition in before.partitions:
        if partition.topic in shown:
            _add(
                now,
                shown[partition.topic],
                (row_of[id_] for id_ in partition.replicas),
                _amounts(measure, partition.size_bytes),
            )
    after = [row.copy() for row in now]
    for change in proposal.changes:
        if change.topic in shown:
            _apply(after, shown[change.topic], row_of, change, measure)
    return PlannedMap(
        brokers=before.broker_ids,
        topics=tuple(shown),
        before=tuple(map(tuple, now)),
        after=tuple(map(tuple, after)),
        topics_left_out=len(topics) - len(shown),
    )


def _apply(
    grid: list[list[int]],
    topic: int,
    row_of: Mapping[int, int],
    change: PartitionChange,
    measure: str,
) -> None:
    first, others = _amounts(measure, change.size_bytes)
    _add(grid, topic, (row_of[id_] for id_ in change.before), (-first, -others))
    _add(grid, topic, (row_of[id_] for id_ in change.after if id_ in row_of), (first, others))


def _amounts(measure: str, size: int) -> tuple[int, int]:
    """Amount of the first replica, and of each other one."""
    return {"size_bytes": (size, size), "replicas": (1, 1), "leaders": (1, 0)}[measure]


def _add(grid: list[list[int]], topic: int, rows: Iterable[int], amounts: tuple[int, int]) -> None:
    for place, row in enumerate(rows):
        grid[row][topic] += amounts[min(place, 1)]
