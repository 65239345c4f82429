"""Reassign: scope and goal → alternatives → now beside planned and pre-flight → confirm."""

from typing import Any, Final

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from control.operations.commands import changes_document, parse_changes
from control.operations.planning import Preview
from control.operations.registry import REASSIGN
from control.planner.optimizer import Alternative
from control.planner.proposal import Proposal
from control.views import format as text
from control.views.paths import ViewPath
from dashboard import ids
from dashboard.components import operation_form as fields
from dashboard.components.forms import problem
from dashboard.components.parts import attributes, card, crumbs, empty, graph
from dashboard.context import Screen
from dashboard.desk import DeskError, Values
from dashboard.figures.moves import Offer, loads, trade_off
from dashboard.pages.plan_review import alternative_words, review

STEPS: Final = ("Scope and goal", "Choose", "Review and pre-flight", "Confirm", "Live")
RUN_FIELDS: Final = ("throttle", "partitions_per_wave", "reason")
"""Fields that say how to run a plan, not what to plan: asked for at its confirmation."""


def layout(screen: Screen, path: ViewPath) -> list[Any]:
    """The form, filled in from where one came; the rest appears below it."""
    if screen.watched.bootstrap is None:
        return [
            crumbs([("Plan", "plan")]),
            empty("No cluster to plan for", "Start with --bootstrap HOST:PORT"),
        ]
    shared: dict[str, Any] = {"given": path.query, "snapshot": screen.snapshot}
    scope = fields.form_fields(REASSIGN, fields.PLAN, without=RUN_FIELDS, **shared)
    run = fields.form_fields(REASSIGN, fields.PLAN, only=RUN_FIELDS, **shared)
    button = dmc.Button(REASSIGN.submit_label, id=ids.PLAN_BUTTON, className="submit")
    note = html.P("Planning changes nothing.", className="note")
    return [
        crumbs([("Plan", "plan")]),
        html.Ol(_steps(), id=ids.PLAN_STEP, className="steps"),
        card(
            "Scope and goal",
            html.Div([scope, html.Div([button, note], className="actions")], className="form"),
            class_name="operation-form",
        ),
        dcc.Store(id=ids.PLAN_CHOICES, data=[]),
        dcc.Loading(html.Div(id=ids.PLAN_RESULT), type="dot", delay_show=300),
        dcc.Loading(html.Div(id=ids.PLAN_REVIEW, className="form"), type="dot", delay_show=300),
        html.Div(
            card("Confirm", run, html.Div(id=ids.PLAN_LAST, className="actions")),
            id=ids.PLAN_RUN,
            hidden=True,
        ),
        html.Div(id=ids.PLAN_OUTCOME),
    ]


def _steps() -> list[html.Li]:
    first, *others = STEPS
    return [
        html.Li(first, **attributes({"aria-current": "step"})),
        *(html.Li(step) for step in others),
    ]


def register(app: Dash, screen: Screen) -> None:
    """Plan, review, confirm."""
    _register_plan(app, screen)
    _register_review(app, screen)
    _register_confirm(app, screen)

    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "markStep"),
        Input(ids.PLAN_RESULT, "children"),
        Input(ids.PLAN_REVIEW, "children"),
    )


def _register_plan(app: Dash, screen: Screen) -> None:
    @app.callback(
        Output(ids.PLAN_RESULT, "children"),
        Output(ids.PLAN_CHOICES, "data"),
        Output(ids.PLAN_REVIEW, "children", allow_duplicate=True),
        Output(ids.PLAN_RUN, "hidden", allow_duplicate=True),
        Output(ids.PLAN_OUTCOME, "children", allow_duplicate=True),
        fields.every_error(fields.PLAN),
        Input(ids.PLAN_BUTTON, "n_clicks"),
        State(ids.SCHEME, "data"),
        *fields.every_value(fields.PLAN),
        running=[(Output(ids.PLAN_BUTTON, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def make_plan(
        _: int, scheme: str | None, found: list[Any], values: list[Any]
    ) -> tuple[Any, ...]:
        given = fields.values_of(found, values)
        try:
            shown, choices = await planned(screen, given, scheme or "light")
        except DeskError as error:
            return problem(error), [], None, True, None, fields.errors_of(found, error)
        return shown, choices, None, True, None, fields.errors_of(found, None)


def _register_review(app: Dash, screen: Screen) -> None:
    @app.callback(
        Output(ids.PLAN_REVIEW, "children"),
        Output(ids.PLAN_LAST, "children"),
        Output(ids.PLAN_RUN, "hidden"),
        Output(ids.PLAN_OUTCOME, "children"),
        Input(ids.PLAN_CHOICE, "value"),
        Input(fields.field_id(fields.PLAN, "throttle"), "value"),
        Input(fields.field_id(fields.PLAN, "partitions_per_wave"), "value"),
        State(ids.PLAN_CHOICES, "data"),
        State(ids.SCHEME, "data"),
        *fields.every_value(fields.PLAN),
        prevent_initial_call=True,
        websocket=True,
    )
    async def show_review(choice: str | None, *rest: Any) -> tuple[Any, Any, Any, Any]:
        _, _, choices, scheme, found, values = rest
        if choice is None or not choices:
            return None, None, True, None
        given = fields.values_of(found, values)
        try:
            preview = await screen.desk.operator.preview(chosen(choices, choice), given)
        except DeskError as error:
            return problem(error), last_words(None), False, None
        return reviewed(preview, scheme or "light"), last_words(preview), False, None


def _register_confirm(app: Dash, screen: Screen) -> None:
    @app.callback(
        Output(ids.PLAN_OUTCOME, "children", allow_duplicate=True),
        Output(ids.LOCATION, "href"),
        Input(ids.PLAN_CONFIRM, "n_clicks"),
        State(ids.PLAN_CHOICE, "value"),
        State(ids.PLAN_CHOICES, "data"),
        *fields.every_value(fields.PLAN),
        running=[(Output(ids.PLAN_CONFIRM, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def confirm(
        clicks: int | None, choice: str, choices: Any, found: list[Any], values: list[Any]
    ) -> tuple[Any, Any]:
        if not clicks:
            return no_update, no_update
        given = fields.values_of(found, values)
        try:
            operation_id = await screen.desk.operator.reassign(chosen(choices, choice), given)
        except DeskError as error:
            return problem(error), no_update
        return None, f"/moves/{operation_id}"


async def planned(screen: Screen, values: Values, scheme: str) -> tuple[Any, list[Any]]:
    """The choice of alternatives, and their changes as the page keeps them."""
    plan = await screen.desk.operator.plan(values)
    moving = [item for item in plan.alternatives if item.proposal.changes]
    if not moving:
        return empty("Nothing to move: the goal is reached already", *plan.limits), []
    choices = [changes_document(item.proposal.changes) for item in moving]
    radios = dmc.Stack(
        [dmc.Radio(alternative_words(item), value=str(n)) for n, item in enumerate(moving)]
    )
    group = dmc.RadioGroup(radios, id=ids.PLAN_CHOICE, value="0", label="Alternatives")
    limits = [html.P(f"◆ {limit}", className="note") for limit in plan.limits]
    choice = card("Choose", group, *limits)
    if len(moving) == 1:
        return choice, choices
    chart: Any = graph(ids.PLAN_CURVE, 240)
    chart.figure = trade_off([offer_of(item) for item in moving], scheme)
    return html.Div([choice, card("What it costs", chart)], className="compare"), (choices)


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


def chosen(choices: list[Any], choice: str) -> Proposal:
    """The chosen alternative, from what the page kept of it."""
    return Proposal(name="chosen on the page", changes=parse_changes(choices[int(choice)]))


def reviewed(preview: Preview, scheme: str) -> list[Any]:
    """The review with its two charts."""
    blocks = review(preview)
    now = {item.broker: float(item.bytes_now) for item in preview.brokers}
    after = {item.broker: float(item.bytes_after) for item in preview.brokers}
    top = max([*now.values(), *after.values()], default=0.0)
    cards = blocks[1].children
    cards[0].children[1].figure = loads(now, top, scheme, is_plan=False)
    cards[1].children[1].figure = loads(after, top, scheme, is_plan=True)
    return blocks


def last_words(preview: Preview | None) -> list[Any]:
    """The button, with what it does; None: there is nothing that could be confirmed."""
    count = 0 if preview is None else len(preview.proposal.changes)
    is_refused = preview is None or preview.is_refused
    button = dmc.Button(
        f"Move {text.plural_text(count, 'partition')}" if count else "Move",
        id=ids.PLAN_CONFIRM,
        disabled=is_refused,
        color="red" if is_refused else "blue",
    )
    words = (
        "Pre-flight refuses this plan: see ✖ above."
        if is_refused
        else "It goes on when you leave; it can be cancelled and rolled back."
    )
    return [button, html.P(words, className="note")]
