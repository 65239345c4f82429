"""The map of a plan in words: cells before and after, and which grow or shrink."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from control.views import format as text
from control.views.paths import ViewPath
from control.views.snapshots.overview import HeatMap
from planner.planned_map import KeptPlan, PlannedMap, plan_name, planned_map_of

MEASURES: Final = {"size_bytes": "bytes", "replicas": "replicas", "leaders": "leaders"}
GROWS, SHRINKS = "▲", "▼"
VALUE_MAX: Final = 200
"""A longer value of the form (a file of entries) is not written into the way back."""
NO_VALUES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCell:
    """One broker and topic. ``sign`` is ``GROWS``, ``SHRINKS`` or empty, where nothing changes."""

    broker: int
    topic: str
    before: int
    after: int
    sign: str
    difference: str
    """``+1.2 GiB``, ``−3``; empty where nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMap:
    """A plan on the map of what changes; ``cells`` broker by broker."""

    measure: str
    now: HeatMap
    planned: HeatMap
    cells: tuple[tuple[PlanCell, ...], ...]
    topics_left_out: int


def plan_map(kept: KeptPlan, measure: str) -> PlanMap:
    """The chosen alternative on the map; an unknown measure is bytes."""
    wanted = measure if measure in MEASURES else "size_bytes"
    planned = planned_map_of(kept.plan.before, kept.alternative.proposal, wanted)
    return PlanMap(
        measure=wanted,
        now=_heat(planned, wanted, planned.before),
        planned=_heat(planned, wanted, planned.after),
        cells=tuple(
            tuple(
                _cell(wanted, broker, topic, planned.before[row][at], planned.after[row][at])
                for at, topic in enumerate(planned.topics)
            )
            for row, broker in enumerate(planned.brokers)
        ),
        topics_left_out=planned.topics_left_out,
    )


def to_text(measure: str) -> Callable[[float], str]:
    """How values of a measure are written."""
    return text.bytes_text if measure == "size_bytes" else text.count_text


def map_path(name: str, measure: str = "", values: Mapping[str, str] = NO_VALUES) -> ViewPath:
    """The map of a kept plan; with the form's values the way to plan it anew outlives it."""
    return ViewPath(view="map", query={"plan": name, "measure": measure, **_short(values)})


def plan_path(kept: KeptPlan) -> ViewPath:
    """Back to the plan: its form filled in, its alternatives offered."""
    name = plan_name(kept.alternative.proposal)
    return ViewPath(view="plan", query={**_short(kept.values), "made": name})


def form_path(of_map: ViewPath) -> ViewPath:
    """From the map of a plan that is no longer kept: its form, filled in."""
    values = {key: value for key, value in of_map.query.items() if key not in ("plan", "measure")}
    return ViewPath(view="plan", query=values)


def long_values(values: Mapping[str, str]) -> dict[str, str]:
    """Values of a kept plan's form that addresses leave out."""
    return {key: value for key, value in values.items() if len(value) > VALUE_MAX}


def _short(values: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if len(value) <= VALUE_MAX}


def _heat(planned: PlannedMap, measure: str, grid: tuple[tuple[int, ...], ...]) -> HeatMap:
    values = [[float(value) if value > 0 else float("nan") for value in row] for row in grid]
    return HeatMap(measure=measure, brokers=planned.brokers, topics=planned.topics, values=values)


def _cell(measure: str, broker: int, topic: str, before: int, after: int) -> PlanCell:
    change = after - before
    amount = to_text(measure)(abs(change))
    return PlanCell(
        broker=broker,
        topic=topic,
        before=before,
        after=after,
        sign=(GROWS if change > 0 else SHRINKS) if change else "",
        difference=f"{'+' if change > 0 else text.MINUS}{amount}" if change else "",
    )
