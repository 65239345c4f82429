"""Review of a plan, and its confirmation: now and planned, diff, pre-flight; the word to type."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import dash_mantine_components as dmc
from dash import dcc, html

from control.move.check import Check, Verdict
from control.operations.catalogue.moves.reassign import Task
from control.operations.previews import Previewed
from control.operations.reassignment.planning import Preview
from control.views import format as text
from control.views.plan_map import NO_VALUES, map_path
from control.views.plans import CHANGES_MAX, PLAN_BROKERS, PLAN_COLUMNS, change_rows, preview_facts
from dashboard import ids
from dashboard.components.checks import check_line
from dashboard.components.forms import text_field
from dashboard.components.parts import attributes, card, folded, graph, tiles
from dashboard.components.replica_board import replica_board
from dashboard.components.tables import rows_table
from dashboard.figures.moves import loads
from dashboard.server.cluster_routing import chosen_cluster
from planner.planned_map import plan_name

_REFUSED: Final = "Pre-flight refuses this plan: see ✖ above."


def review(
    preview: Preview,
    scheme: str,
    why: Sequence[str] = (),
    values: Mapping[str, str] = NO_VALUES,
) -> list[Any]:
    """Everything between choosing and confirming; `why` its partitions move, in their order,
    and with which `values` of the form it was made."""
    proposal = preview.proposal
    name = plan_name(proposal)
    on_map = dcc.Link("Show on the map →", href=f"/{map_path(name, values=values)}")
    return [
        html.Div(tiles(preview_facts(preview)), className="tiles"),
        html.Div(_now_and_planned(preview, scheme), className="compare"),
        html.Div([on_map, *_files(name)], className="actions"),
        _preflight(preview.checks),
        card("What changes", *changes_table(preview, why)),
        folded(
            "Brokers: now, during, after",
            rows_table(PLAN_BROKERS.rows(preview.brokers), PLAN_BROKERS.columns),
        ),
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


def changes_table(preview: Preview, why: Sequence[str]) -> list[Any]:
    """Partition by partition, the first ``CHANGES_MAX``."""
    changes = preview.proposal.changes
    rows = change_rows(preview.proposal, why)
    table = html.Div(rows_table(rows, PLAN_COLUMNS), className="short", tabIndex=0)
    if len(changes) <= CHANGES_MAX:
        return [table]
    return [html.P(f"the first {CHANGES_MAX} of {len(changes):,}", className="note"), table]


def last_step() -> Any:
    """The word to type and the button. The button stays the same one, so that a click while
    pre-flight still runs is not lost."""
    button = dmc.Button("Move", id=ids.PLAN_CONFIRM)
    actions = [
        html.Div(id=ids.PLAN_TYPE, style={"display": "contents"}),
        button,
        html.P(id=ids.PLAN_NOTE, className="note"),
        dcc.Store(id=ids.PLAN_REVIEWED),
    ]
    return html.Div(actions, id=ids.PLAN_LAST, className="actions")


def question(previewed: Previewed) -> html.Div:
    """The question before a move begins, with both answers."""
    answers = [
        dmc.Button("Yes", id=ids.PLAN_YES, size="sm", color="red"),
        dmc.Button("Leave it", id=ids.PLAN_LEAVE, size="sm", variant="light"),
    ]
    asked = [html.P(line, className="empty-title") for line in previewed.effect.lines]
    return html.Div(
        [*asked, html.Div(answers, className="actions")],
        className="finding edge-warning stacked",
        role="alertdialog",
        **attributes({"aria-label": "Confirm"}),
    )


def last_words(
    previewed: Previewed | None,
    reviewed: Mapping[str, str] = NO_VALUES,
    typed: str = "",
    changed: str = "",
) -> tuple[list[Any], dict[str, str] | None, str, bool, str, str]:
    """The word to type; what the review is of, with ``reviewed``; the button's words, whether it
    is off, its colour; the words beside it. None: there is nothing to confirm.
    ``typed`` and ``changed`` are as ``Previewed.keeps`` has them."""
    if previewed is None or previewed.effect.review is None:
        return [], None, "Move", True, "red", _REFUSED
    proposal = previewed.effect.review.proposal
    label = f"Move {text.plural_text(len(proposal.changes), 'partition')}"
    of = {"preview": previewed.name, **reviewed}
    if previewed.effect.refusal is not None:
        return [], of, label, True, "red", _REFUSED
    word = previewed.word
    asked = f"Type {word} to confirm"
    asks = [text_field(ids.PLAN_TYPED, asked, word, typed)] if word else []
    words = changed or "It goes on when you leave; it can be cancelled and rolled back."
    return asks, of, label, False, "blue", words
