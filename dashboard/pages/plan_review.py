"""Review of a plan before it is confirmed: alternatives, now and planned, diff, pre-flight."""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any
from urllib.parse import urlencode

from dash import dcc, html

from control.operations.catalogue.reassign import Task
from control.operations.reassignment.planning import BrokerPreview, Preview
from control.operations.verdict import Check, Verdict
from control.planner.figures import Spread
from control.planner.ghost import plan_name
from control.planner.optimizer import Alternative
from control.views import format as text
from control.views.plan_map import NO_VALUES, map_path
from control.views.plans import CHANGES_MAX, PLAN_COLUMNS, gap_text, nothing_to_move
from control.views.tables.moves import change_row
from control.views.tables.rows import Cell
from dashboard import ids
from dashboard.components.checks import check_line
from dashboard.components.parts import card, folded, graph, tile
from dashboard.components.replica_board import replica_board
from dashboard.components.tables import rows_table
from dashboard.figures.moves import loads
from dashboard.server.cluster_routing import chosen_cluster


def alternative_words(alternative: Alternative) -> str:
    """One line to choose by: what it moves, the proven least, what it reaches."""
    proposal = alternative.proposal
    if not proposal.changes:
        title, left = nothing_to_move(alternative.violations)
        return f"{alternative.name}: {'; '.join((title, *left))}"
    least, fewest = alternative.lower_bound_bytes, alternative.lower_bound_replicas
    proven = f"{gap_text(alternative)} above the proven minimum, {text.bytes_text(least)}"
    bound = "" if least is None else f" ({proven})"
    number = "" if fewest is None else f" (minimum {text.count_text(fewest)})"
    broken = len(alternative.violations)
    violations = f", {text.plural_text(broken, 'violation')} left" if broken else ""
    return (
        f"{alternative.name}: moves {text.bytes_text(proposal.moved_bytes)}{bound}, "
        f"{text.plural_text(proposal.moved_replicas, 'replica')}{number}, "
        f"{text.plural_text(proposal.moved_leaders, 'new leader')}; "
        f"bytes {_spread_words(alternative.balance.bytes)} of the mean{violations}"
    )


def review(
    preview: Preview,
    scheme: str,
    why: Sequence[str] = (),
    values: Mapping[str, str] = NO_VALUES,
) -> list[Any]:
    """Everything between choosing and confirming; `why` its partitions move, in their order,
    and with which `values` of the form it was made."""
    proposal = preview.proposal
    tiles = [
        tile("data to copy", Cell(proposal.moved_bytes, text.bytes_text(proposal.moved_bytes))),
        tile("replicas", Cell(0, text.count_text(proposal.moved_replicas))),
        tile("new leaders", Cell(0, text.count_text(proposal.moved_leaders))),
        tile("throttle", _throttle_cell(preview)),
        tile("takes", _time_cell(preview), "An interval: at the throttle alone, and wave by wave"),
    ]
    name = plan_name(proposal)
    on_map = dcc.Link("Show on the map →", href=f"/{map_path(name, values=values)}")
    return [
        html.Div(tiles, className="tiles"),
        html.Div(_now_and_planned(preview, scheme), className="compare"),
        html.Div([on_map, *_files(name)], className="actions"),
        _preflight(preview.checks),
        card("What changes", *changes_table(preview, why)),
        folded("Brokers: now, during, after", broker_table(preview)),
        replica_board(
            proposal.changes,
            [item.broker for item in preview.brokers],
            is_open=values.get("task") == Task.BY_HAND,
        ),
    ]


def _preflight(checks: Sequence[Check]) -> html.Section:
    """Risks in sight; the checks that pass are folded."""
    passed = [check for check in checks if check.verdict is Verdict.OK]
    risks = [check_line(check) for check in checks if check not in passed]
    title = f"{text.plural_text(len(passed), 'check')} passed"
    fine = html.Details([html.Summary(title), *map(check_line, passed)])
    return card("Pre-flight", *risks, *([fine] if passed else []))


def _now_and_planned(preview: Preview, scheme: str) -> list[html.Section]:
    """Bytes of each broker, on one scale."""
    now = {item.broker: float(item.bytes_now) for item in preview.brokers}
    after = {item.broker: float(item.bytes_after) for item in preview.brokers}
    top = max([*now.values(), *after.values()], default=0.0)
    return [
        card("Now", graph(ids.PLAN_NOW, 220, figure=loads(now, top, scheme, is_plan=False))),
        card("Planned", graph(ids.PLAN_AFTER, 220, figure=loads(after, top, scheme, is_plan=True))),
    ]


def _files(name: str) -> list[Any]:
    """Both files of the plan, as Kafka's tool takes them."""
    about = {"name": name, "cluster": chosen_cluster.get()}
    return [
        html.A(words, href=f"/export/plan?{urlencode({**about, 'way': way})}", download="")
        for way, words in {"there": "Plan as Kafka's JSON ↓", "back": "Rollback ↓"}.items()
    ]


def broker_table(preview: Preview) -> html.Div:
    """Per broker what it has, what it must bear meanwhile, and what it will have."""
    heads = ("broker", "replicas", "leaders", "bytes now", "during", "after")
    head = html.Tr([html.Th(word, className="number") for word in heads])
    body = [
        html.Tr([html.Td(cell, className="number") for cell in _broker_cells(broker)])
        for broker in preview.brokers
    ]
    table = html.Table([html.Thead(head), html.Tbody(body)], className="rows")
    return html.Div(table, className="rows-frame", tabIndex=0)


def changes_table(preview: Preview, why: Sequence[str]) -> list[Any]:
    """Partition by partition, the first ``CHANGES_MAX``."""
    changes = preview.proposal.changes
    reasons = chain(why, repeat(text.NONE))
    rows = [change_row(change, next(reasons)) for change in changes[:CHANGES_MAX]]
    table = html.Div(rows_table(rows, PLAN_COLUMNS), className="short", tabIndex=0)
    if len(changes) <= CHANGES_MAX:
        return [table]
    return [html.P(f"the first {CHANGES_MAX} of {len(changes):,}", className="note"), table]


def _broker_cells(broker: BrokerPreview) -> tuple[str, ...]:
    return (
        str(broker.broker),
        _change_words(broker.replicas_now, broker.replicas_after),
        _change_words(broker.leaders_now, broker.leaders_after),
        text.bytes_text(broker.bytes_now),
        text.bytes_text(broker.bytes_during),
        text.bytes_text(broker.bytes_after),
    )


def _change_words(before: int, after: int) -> str:
    """``120 → 135 (+15)``."""
    if before == after:
        return text.count_text(before)
    difference = f"{after - before:+,}".replace("-", text.MINUS)
    return f"{text.count_text(before)} → {text.count_text(after)} ({difference})"


def _spread_words(spread: Spread) -> str:
    if not spread.mean:
        return "0 %"
    low, high = ((value / spread.mean - 1) * 100 for value in (spread.min, spread.max))
    return f"{text.signed_percent_text(low)} … {text.signed_percent_text(high)}"


def _throttle_cell(preview: Preview) -> Cell:
    rate = preview.throttle_bytes_per_s
    return Cell(rate, "none" if rate is None else text.byte_rate_text(rate))


def _time_cell(preview: Preview) -> Cell:
    least, most = preview.seconds_min, preview.seconds_max
    if least is None:
        return Cell(None, text.NA)
    first = text.duration_text(least * 1000, estimated=True)
    if most is None or most <= least:
        return Cell(least, first)
    return Cell(most, f"{first} – {text.duration_text(most * 1000)}")
