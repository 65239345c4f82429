"""Check of a plan of any tool: pasted or uploaded, judged beside the cluster as it is now."""

from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from control.model.command_line import typed
from control.move.check import Verdict
from control.operations.catalogue.moves.reassign import Task
from control.operations.errors import InvalidInputError
from control.operations.reassignment.plan_check import PlanCheck
from control.views.checked_plan import (
    BALANCES,
    FIGURES,
    VERDICTS,
    balance_rows,
    checked,
    figure_rows,
    uploaded_text,
    worst_first,
)
from control.views.paths import ViewPath
from control.views.plan_choices import PlanChoices
from control.views.tables.rows import Cell
from dashboard import ids
from dashboard.cluster_actions import ClusterActionError
from dashboard.components.checks import check_line
from dashboard.components.forms import good, problem
from dashboard.components.parts import card, crumbs, empty, redirect
from dashboard.context import PageContext

HINT = "Kafka's reassignment JSON, or what its tool prints with --generate"


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """A field to paste into, an upload, the result."""
    field = dmc.Textarea(
        id=ids.CHECK_PLAN,
        label="Plan",
        description=HINT,
        placeholder='{"version": 1, "partitions": […]}',
        autosize=True,
        minRows=4,
        maxRows=14,
        size="sm",
    )
    buttons = [
        dmc.Button("Check", id=ids.CHECK_BUTTON, className="submit"),
        dcc.Upload(html.Button("upload a file", className="export"), id=ids.CHECK_FILE),
    ]
    note = html.P("Checking changes nothing.", className="note")
    form = html.Div([field, html.Div([*buttons, note], className="actions")], className="form")
    return [
        crumbs([("Plan", "plan"), ("Check", "")]),
        card("Check a plan of any tool", form, class_name="operation-form"),
        dcc.Loading(html.Div(id=ids.CHECK_RESULT, className="form"), type="dot", delay_show=300),
    ]


def register(app: Dash, context: PageContext) -> None:
    """An uploaded file fills the field; the button judges what stands there."""

    @app.callback(
        Output(ids.CHECK_PLAN, "value"),
        Output(ids.CHECK_RESULT, "children", allow_duplicate=True),
        Input(ids.CHECK_FILE, "contents"),
        State(ids.CHECK_FILE, "filename"),
        prevent_initial_call=True,
        websocket=True,
    )
    def fill(contents: str | None, name: str | None) -> Any:
        if not contents:
            raise PreventUpdate
        try:
            return uploaded_text(b64decode(contents.partition(",")[2]), name or ""), []
        except InvalidInputError as error:
            return no_update, problem(error)

    @app.callback(
        Output(ids.CHECK_RESULT, "children"),
        Input(ids.CHECK_BUTTON, "n_clicks"),
        State(ids.CHECK_PLAN, "value"),
        prevent_initial_call=True,
        websocket=True,
    )
    async def judge(_: int | None, text: str | None) -> Any:
        try:
            return result(await checked(context.actions.session, text or ""))
        except ClusterActionError as error:
            return problem(error)

    @app.callback(
        Output(ids.CHECK_RESULT, "children", allow_duplicate=True),
        Output(ids.REDIRECT, "data", allow_duplicate=True),
        Input(ids.CHECK_RUN, "n_clicks", allow_optional=True),
        State(ids.CHECK_PLAN, "value"),
        running=[(Output(ids.CHECK_RUN, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def open_review(clicks: int | None, text: str | None) -> Any:
        if not clicks:
            raise PreventUpdate
        given = {"task": Task.BY_HAND, "by_hand": text or ""}
        try:
            plan = await context.actions.session.plan(given)
        except ClusterActionError as error:
            return problem(error), no_update
        choices = PlanChoices.of_plan(plan)
        if not choices.items:
            return empty("Nothing to move: the replicas lie as the plan says"), no_update
        query = {"task": Task.BY_HAND, "made": choices.chosen.name}
        return no_update, redirect("check", str(ViewPath(view="plan", query=query)))


def result(found: PlanCheck) -> list[Any]:
    """The verdict, figures, balance, checks."""
    verdict = found.verdict()
    words = f"The plan {VERDICTS[verdict]}"
    head = (
        html.Div(f"✖ {words}", className="finding edge-critical", role="status")
        if verdict is Verdict.FAIL
        else good(words)
    )
    return [
        head,
        *(() if verdict is Verdict.FAIL else (_how_to_run(),)),
        card("What it moves", _table(FIGURES, figure_rows(found))),
        card("Balance of the brokers", _table(BALANCES, balance_rows(found))),
        card("Checks", html.Div([check_line(it) for it in worst_first(found)])),
    ]


def _how_to_run() -> html.Div:
    """The button that opens its review, where it is run, and the command that does."""
    command = typed("`partiscope reassign plan.json`").strip("`")
    note = html.P(["Run it there, or ", html.Code(command)], className="note")
    return html.Div([dmc.Button("Review it", id=ids.CHECK_RUN), note], className="actions")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str | Cell]]) -> html.Div:
    classes = ("text", *("number" for _ in heads[1:]))
    head = html.Tr([html.Th(it, className=kind) for it, kind in zip(heads, classes, strict=True)])
    body = [
        html.Tr([html.Td(str(it), className=kind) for it, kind in zip(row, classes, strict=True)])
        for row in rows
    ]
    table = html.Table([html.Thead(head), html.Tbody(body)], className="rows")
    return html.Div(table, className="rows-frame")
