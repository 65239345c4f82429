"""Plans as all faces show them: what each alternative costs and reaches, why a partition moves, and
what each broker carries. The chart of bytes moved against balance is drawn here for terminals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Final

from control.operations.reassignment.planning import BrokerPreview, Preview
from control.views import format as text
from control.views.tables import cells, units
from control.views.tables.column import Table, column
from control.views.tables.moves import CHANGES, change_row
from control.views.tables.partitions import LEADERS_HELP, REPLICAS_HELP
from control.views.tables.rows import Cell, Fact, Row
from planner.explain import Reasons
from planner.figures import Spread
from planner.optimizer import Alternative, Plan
from planner.planned_map import plan_name
from planner.proposal import Proposal
from planner.reassignment_json import format_reassignment
from planner.verify import Violation

CHANGES_MAX: Final = 200
_PLAN_TITLES: Final = {"before": "now", "after": "planned"}
VIOLATIONS_MAX: Final = 5
"""So many rules that a plan leaves broken are named."""
PLAN_COLUMNS: Final = tuple(
    replace(it, title=_PLAN_TITLES.get(it.id, it.title))
    for it in (*CHANGES.columns, *CHANGES.only("why"))
)
_MARGIN: Final = 9
"""Columns left of the chart's axis: ``+12.3 % │``."""
_DIGITS: Final = "123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One alternative as a point: what it costs, what it reaches."""

    name: str
    moved_bytes: int
    lower_bound_bytes: int | None
    """Proven: no plan to this balance moves less. None: nothing is proven."""
    fullest_percent: float
    """How far the fullest broker is above the mean afterwards."""


def offer_of(item: Alternative) -> Offer:
    """An alternative as a point of the chart."""
    spread = item.balance.bytes
    over = (spread.max / spread.mean - 1) * 100 if spread.mean else 0.0
    return Offer(
        name=item.name,
        moved_bytes=item.proposal.moved_bytes,
        lower_bound_bytes=item.lower_bound_bytes,
        fullest_percent=max(over, 0.0),
    )


def alternative_words(item: Alternative) -> str:
    """One line to choose by: what it moves, the proven minimum, what it reaches."""
    proposal = item.proposal
    if not proposal.changes:
        title, left = nothing_to_move(item.violations)
        return f"{item.name}: {'; '.join((title, *left))}"
    least, fewest = item.lower_bound_bytes, item.lower_bound_replicas
    gap = text.percent_text(gap_percent(item))
    proven = f"{gap} above the proven minimum, {text.bytes_text(least)}"
    bound = "" if least is None else f" ({proven})"
    number = "" if fewest is None else f" (minimum {text.count_text(fewest)})"
    broken = len(item.violations)
    violations = f", {text.plural_text(broken, 'violation')} left" if broken else ""
    return (
        f"{item.name}: moves {text.bytes_text(proposal.moved_bytes)}{bound}, "
        f"{text.plural_text(proposal.moved_replicas, 'replica')}{number}, "
        f"{text.plural_text(proposal.moved_leaders, 'new leader')}; "
        f"bytes {_spread_words(item.balance.bytes)} of the mean{violations}"
    )


def _spread_words(spread: Spread) -> str:
    """Emptiest and fullest broker: ``−3 % … +4 %``."""
    if not spread.mean:
        return "0 %"
    low, high = ((value / spread.mean - 1) * 100 for value in (spread.min, spread.max))
    return f"{text.signed_percent_text(low)} … {text.signed_percent_text(high)}"


def gap_percent(item: Alternative) -> float | None:
    """How far its moved bytes are above the proven least; None: above nothing."""
    moved, least = item.proposal.moved_bytes, item.lower_bound_bytes
    if moved == least:
        return 0.0
    return 100 * (moved / least - 1) if least else None


def nothing_to_move(
    violations: Sequence[Violation], limits: Sequence[str] = ()
) -> tuple[str, tuple[str, ...]]:
    """Message about plans without a change, and what they leave broken. It must not be taken for
    done after a decommission, nor where a limit keeps the plan from more (a broker that does not
    run keeps what it has)."""
    if not violations and limits:
        return "Nothing to move: the goal is reached as far as it can be", ()
    if not violations:
        return "Nothing to move: the goal is reached already", ()
    named = tuple(str(violation) for violation in violations[:VIOLATIONS_MAX])
    more = len(violations) - len(named)
    rest = (f"and {more:,} more",) if more else ()
    return "This plan moves nothing, and these rules stay broken", named + rest


def why_moved(plan: Plan, alternative: Alternative) -> tuple[str, ...]:
    """Why each of the first `CHANGES_MAX` partitions of an alternative moves."""
    reasons = Reasons(plan.before, plan.request)
    return tuple(reasons.why(change) for change in alternative.proposal.changes[:CHANGES_MAX])


def change_rows(proposal: Proposal, why: Sequence[str]) -> list[Row]:
    """The first `CHANGES_MAX` partitions of a proposal, with why they move as far as it is told."""
    reasons = chain(why, repeat(text.NONE))
    return [change_row(change, next(reasons)) for change in proposal.changes[:CHANGES_MAX]]


def preview_facts(preview: Preview) -> tuple[Fact, ...]:
    """Data, time and throttle of running a plan."""
    proposal, rate = preview.proposal, preview.throttle_bytes_per_s
    return (
        Fact("data to copy", cells.bytes_cell(proposal.moved_bytes)),
        Fact("replicas", cells.count_cell(proposal.moved_replicas)),
        Fact("new leaders", cells.count_cell(proposal.moved_leaders)),
        Fact("throttle", Cell(rate, preview.throttle_words)),
        Fact("takes", _seconds_cell(preview), "An interval: at the throttle alone, wave by wave"),
    )


def _seconds_cell(preview: Preview) -> Cell:
    least, most = preview.seconds_min, preview.seconds_max
    if least is None:
        return Cell(None, text.NA)
    first = text.duration_text(least * 1000, estimated=True)
    if most is None or most <= least:
        return Cell(least, first)
    return Cell(most, f"{first} – {text.duration_text(most * 1000)}")


def _change_cell(before: int, after: int) -> Cell:
    """``120 → 135 (+15)``."""
    if before == after:
        return cells.count_cell(before)
    difference = f"{after - before:+,}".replace("-", text.MINUS)
    return Cell(after, f"{text.count_text(before)} → {text.count_text(after)} ({difference})")


def _leaders_cell(it: BrokerPreview) -> Cell:
    return _change_cell(it.leaders_now, it.leaders_after)


PLAN_BROKERS: Final = Table(
    name="brokers of a plan",
    about="A row per broker of a plan: now, during the reassignment, and after it",
    key=lambda it: str(it.broker),
    path=lambda it: f"brokers/{it.broker}",
    columns=(
        column("broker", "broker", units.ID, rank=1, cell=lambda it: cells.id_cell(it.broker)),
        column("replicas", "replicas", units.COUNT, REPLICAS_HELP, rank=1,
               cell=lambda it: _change_cell(it.replicas_now, it.replicas_after)),
        column("leaders", "leaders", units.COUNT, LEADERS_HELP, rank=2, cell=_leaders_cell),
        column("bytes_now", "bytes now", units.BYTES, rank=2,
               cell=lambda it: cells.bytes_cell(it.bytes_now)),
        column("bytes_during", "during", units.BYTES,
               "Both copies exist until a partition has moved", rank=1,
               cell=lambda it: cells.bytes_cell(it.bytes_during)),
        column("bytes_after", "after", units.BYTES, rank=1,
               cell=lambda it: cells.bytes_cell(it.bytes_after)),
    ),
)  # fmt: skip


def plan_files(proposal: Proposal) -> dict[str, str]:
    """Kafka's reassignment JSON by file name: the plan, and the present assignment as its rollback.
    kafka-reassign-partitions and `partiscope reassign` take both."""
    name = f"partiscope-plan-{plan_name(proposal)}"
    return {
        f"{name}.json": format_reassignment(proposal.targets()),
        f"{name}.before.json": format_reassignment(proposal.inverse().targets()),
    }


def trade_off_lines(offers: Sequence[Offer], *, width: int, height: int) -> list[str]:
    """Bytes moved (across) against how far the fullest broker stays above the mean (up), in
    `height` rows and two for the axis; ``├──2 even`` runs from the proven minimum to the plan."""
    columns = max(10, width - _MARGIN - 1)
    most = max([offer.moved_bytes for offer in offers], default=0) or 1
    top = max([offer.fullest_percent for offer in offers], default=0.0) or 1.0
    rows = [[" "] * columns for _ in range(height)]
    scale: dict[int, str] = {}
    for number, offer in enumerate(offers):
        row = round((1 - offer.fullest_percent / top) * (height - 1))
        if row not in scale:
            scale[row] = f"{offer.fullest_percent:+.1f} %"
        least = offer.moved_bytes if offer.lower_bound_bytes is None else offer.lower_bound_bytes
        _draw(rows[row], _DIGITS[number % len(_DIGITS)], (least / most, offer.moved_bytes / most))
    for number, offer in enumerate(offers):
        row = round((1 - offer.fullest_percent / top) * (height - 1))
        _label(rows[row], _DIGITS[number % len(_DIGITS)], offer.name)
    lines = [
        f"{scale.get(number, ''):>{_MARGIN - 1}} │{''.join(row)}".rstrip()
        for number, row in enumerate(rows)
    ]
    end = text.bytes_text(most)
    lines.append(f"{'':>{_MARGIN - 1}} └{'─' * columns}")
    words = "0 B  bytes moved; ├ proven minimum"
    lines.append(f"{'':>{_MARGIN}} {words}{end:>{max(1, columns - len(words))}}")
    return lines


def _draw(row: list[str], mark: str, share: tuple[float, float]) -> None:
    """The mark at what is moved, a line to it from the minimum."""
    last = len(row) - 1
    first, at = (round(part * last) for part in share)
    for place in range(first, at):
        if row[place] == " ":
            row[place] = "├" if place == first else "─"
    free = [place for place in range(last + 1) if row[place] not in _DIGITS]
    row[min(free, key=lambda place: (abs(place - at), place))] = mark


def _label(row: list[str], mark: str, name: str) -> None:
    """The name right of its mark where it fits, else left, else not: the list has it."""
    at = begin = row.index(mark)
    while begin and row[begin - 1] in "├─":
        begin -= 1
    for start in (at + 2, begin - 1 - len(name)):
        stop = start + len(name)
        if start >= 0 and stop <= len(row) and not "".join(row[start - 1 : stop + 1]).strip(" ├"):
            row[start:stop] = name
            return
