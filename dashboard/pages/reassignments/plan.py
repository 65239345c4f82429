"""Reassign: scope and goal → alternatives → now beside planned and pre-flight → confirm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from control.operations.catalogue.moves.reassign import (
    REASSIGN,
    RUN_FIELDS,
    Reassign,
    Task,
    with_task,
)
from control.operations.errors import InvalidInputError, PlanGoneError
from control.operations.previews import Previewed
from control.views.paths import ViewPath
from control.views.plan_choices import PREFLIGHT_FIELDS, PlanChoices, edited, recalled
from control.views.plan_map import long_values
from control.views.plans import nothing_to_move
from dashboard import ids
from dashboard.cluster_actions import ClusterActionError
from dashboard.components import operation_form as fields
from dashboard.components.forms import parts_of, problem
from dashboard.components.parts import attributes, card, crumbs, empty, folded, graph, redirect
from dashboard.context import PageContext
from dashboard.figures.moves import trade_off
from dashboard.page_frame import rights
from dashboard.pages.reassignments.plan_map import find_plan
from dashboard.pages.reassignments.plan_review import last_step, last_words, question, review

STEPS: Final = ("Scope and goal", "Choose", "Review and pre-flight", "Confirm", "Live")
EDIT_DEBOUNCE_MS: Final = 700


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """The form, filled in from where one came; the rest appears below it."""
    if context.watched.bootstrap is None:
        return [
            crumbs([("Plan", "plan")]),
            empty("No cluster to plan for", "Start with --bootstrap HOST:PORT"),
        ]
    kept = find_plan(context, path.query.get("made", ""))
    given = {**(long_values(kept.values) if kept else {}), **path.query}
    is_by_hand = with_task(given)["task"] == Task.BY_HAND
    shared: dict[str, Any] = {"given": given, "snapshot": context.snapshot}
    scope = fields.form_fields(REASSIGN, fields.PLAN, without=RUN_FIELDS, **shared)
    run = fields.form_fields(REASSIGN, fields.PLAN, only=RUN_FIELDS, **shared)
    button = dmc.Button(
        REASSIGN.submit_label,
        id=ids.PLAN_BUTTON,
        className="submit",
        disabled=rights.is_denied(context, REASSIGN.name),
    )
    another = dcc.Link("Check a plan of another tool", href="/check")
    note = html.Div(
        [
            html.P(["Planning changes nothing. ", another], className="note"),
            rights.lacking(context, REASSIGN.name),
        ]
    )
    return [
        crumbs([("Plan", "plan")]),
        html.Ol(_steps(), id=ids.PLAN_STEP, className="steps"),
        card(
            "Scope and goal",
            html.Div([scope, html.Div([button, note], className="actions")], className="form"),
            class_name="operation-form",
        ),
        dcc.Store(id=ids.PLAN_CHOICES, data=[]),
        dcc.Store(id=ids.PLAN_MADE, data=path.query.get("made")),
        dcc.Store(id=ids.PLAN_DEFAULTS, data=REASSIGN.defaults()),
        dcc.Loading(html.Div(id=ids.PLAN_RESULT), type="dot", delay_show=300),
        html.Div(_by_hand(is_open=is_by_hand), id=ids.PLAN_EDIT, hidden=True),
        dcc.Loading(html.Div(id=ids.PLAN_REVIEW, className="form"), type="dot", delay_show=300),
        html.Div(card("How to run it", run), id=ids.PLAN_RUN, hidden=True),
        html.Div(
            [html.Div(id=ids.PLAN_OUTCOME), html.Div(id=ids.PLAN_QUESTION), last_step()],
            className="confirm-bar",
        ),
    ]


def _by_hand(*, is_open: bool) -> Any:
    """Partitions of the chosen alternative placed otherwise."""
    leaders = REASSIGN.field("leader_order")
    order = dmc.Select(
        id=ids.PLAN_LEADERS,
        label=leaders.label,
        data=list(leaders.choices),
        value=leaders.default,
        allowDeselect=False,
        size="sm",
    )
    entries = dmc.Textarea(
        id=ids.PLAN_ENTRIES,
        label="Edit the chosen alternative",
        description="one partition a line, the leader first (`now`: it stays), or Kafka's JSON",
        placeholder="orders-3: 101,102,103",
        debounce=EDIT_DEBOUNCE_MS,
        autosize=True,
        minRows=2,
        maxRows=14,
        size="sm",
    )
    title = "Edit the chosen alternative by hand"
    return folded(title, html.Div([entries, order], className="form"), is_open=is_open)


def _steps() -> list[html.Li]:
    first, *others = STEPS
    return [
        html.Li(first, **attributes({"aria-current": "step"})),
        *(html.Li(step) for step in others),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Plan, review, confirm."""
    _register_plan(app, context)
    _register_recall(app, context)
    _register_edit(app, context)
    _register_review(app, context)
    _register_confirm(app, context)

    in_browser: Any = app.clientside_callback
    # Before keepFields, which leaves hidden fields out of the address.
    in_browser(
        ClientsideFunction("partiscope", "showFields"),
        Input(fields.field_id(fields.PLAN, REASSIGN.chooser), "value"),
    )
    in_browser(
        ClientsideFunction("partiscope", "markStep"),
        Input(ids.PLAN_RESULT, "children"),
        Input(ids.PLAN_REVIEW, "children"),
        Input(ids.PLAN_QUESTION, "children"),
    )
    in_browser(
        ClientsideFunction("partiscope", "keepPlan"),
        Input(ids.PLAN_CHOICES, "data"),
        Input(ids.PLAN_CHOICE, "value", allow_optional=True),
    )
    in_browser(
        ClientsideFunction("partiscope", "keepFields"),
        Input(fields.field_id(fields.PLAN, ALL), "value"),
        State(fields.field_id(fields.PLAN, ALL), "id"),
        State(ids.PLAN_DEFAULTS, "data"),
    )


def _register_plan(app: Dash, context: PageContext) -> None:
    @app.callback(
        Output(ids.PLAN_RESULT, "children"),
        Output(ids.PLAN_CHOICES, "data"),
        Output(ids.PLAN_REVIEW, "children", allow_duplicate=True),
        Output(ids.PLAN_RUN, "hidden", allow_duplicate=True),
        Output(ids.PLAN_OUTCOME, "children", allow_duplicate=True),
        Output(ids.PLAN_EDIT, "hidden"),
        Output(ids.PLAN_ENTRIES, "value"),
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
        try:
            plan = await context.actions.session.plan(fields.values_of(found, values))
        except ClusterActionError as error:
            errors = fields.errors_of(found, error)
            is_run_fine = not _fields_of(error).intersection(RUN_FIELDS)
            return problem(error), [], None, is_run_fine, None, True, "", errors
        errors, choices = fields.errors_of(found, None), PlanChoices.of_plan(plan)
        if not choices.items:
            title, broken = nothing_to_move(plan.alternatives[0].violations, plan.limits)
            nothing = empty(title, *broken, *plan.limits)
            return nothing, [], None, True, None, True, "", errors
        shown = offered(choices, scheme, limits=plan.limits)
        return shown, choices.data, None, True, None, False, "", errors


def _register_recall(app: Dash, context: PageContext) -> None:
    """Back to a plan by its name in the address: its alternatives once more, the one that was
    looked at chosen, with what was edited by hand."""

    @app.callback(
        Output(ids.PLAN_RESULT, "children", allow_duplicate=True),
        Output(ids.PLAN_CHOICES, "data", allow_duplicate=True),
        Output(ids.PLAN_EDIT, "hidden", allow_duplicate=True),
        Output(ids.PLAN_ENTRIES, "value", allow_duplicate=True),
        Input(ids.PLAN_MADE, "data"),
        State(ids.SCHEME, "data"),
        prevent_initial_call="initial_duplicate",
        websocket=True,
    )
    def recall(made: str | None, scheme: str | None) -> tuple[Any, ...]:
        if not made:
            return (no_update,) * 4
        try:
            found = recalled(context.actions.session.plans, made)
        except PlanGoneError as error:
            return gone(error), no_update, no_update, no_update
        shown = offered(found.choices, scheme, limits=found.limits)
        return shown, found.choices.data, False, found.entries


def gone(error: PlanGoneError) -> html.Div:
    """The plan of the address is not kept; its fields are in the form above."""
    again = dmc.Button(
        "Plan again", variant="light", **attributes({"data-clicks": ids.PLAN_BUTTON})
    )
    return html.Div([problem(error), html.Div(again, className="actions")])


def _register_edit(app: Dash, context: PageContext) -> None:
    @app.callback(
        Output(ids.PLAN_RESULT, "children", allow_duplicate=True),
        Output(ids.PLAN_CHOICES, "data", allow_duplicate=True),
        Output(ids.PLAN_ENTRIES, "error"),
        Input(ids.PLAN_ENTRIES, "value"),
        State(ids.PLAN_CHOICE, "value", allow_optional=True),
        State(ids.PLAN_CHOICES, "data"),
        State(ids.SCHEME, "data"),
        State(ids.PLAN_LEADERS, "value"),
        *fields.every_value(fields.PLAN),
        running=[(Output(ids.PLAN_LAST, "className"), "actions waits", "actions")],
        prevent_initial_call=True,
        websocket=True,
    )
    async def edit(entries: str | None, *rest: Any) -> tuple[Any, Any, Any]:
        choice, data, scheme, leaders, found, values = rest
        if choice is None:
            return no_update, no_update, None
        choices, typed = PlanChoices.of_data(data, int(choice)), entries or ""
        if choices.has_judged(typed):
            return no_update, no_update, None
        given = {**fields.values_of(found, values), "leader_order": leaders}
        try:
            made = await edited(context.actions.session, choices, typed, given)
        except ClusterActionError as error:
            return no_update, no_update, parts_of(error)[1]
        return offered(made, scheme), made.data, None


def _register_review(app: Dash, context: PageContext) -> None:
    reviewed = (
        Input(ids.PLAN_CHOICE, "value"),
        *(Input(fields.field_id(fields.PLAN, name), "value") for name in PREFLIGHT_FIELDS),
    )
    in_browser: Any = app.clientside_callback
    # At once, not with the review: that would wipe out what a click meanwhile was told.
    in_browser(
        ClientsideFunction("partiscope", "forgetOutcome"),
        Output(ids.PLAN_OUTCOME, "children"),
        Output(ids.PLAN_QUESTION, "children"),
        *reviewed,
        prevent_initial_call=True,
    )

    @app.callback(
        Output(ids.PLAN_REVIEW, "children"),
        Output(ids.PLAN_TYPE, "children"),
        Output(ids.PLAN_REVIEWED, "data"),
        Output(ids.PLAN_CONFIRM, "children"),
        Output(ids.PLAN_CONFIRM, "disabled"),
        Output(ids.PLAN_CONFIRM, "color"),
        Output(ids.PLAN_NOTE, "children"),
        Output(ids.PLAN_RUN, "hidden"),
        *reviewed,
        State(ids.PLAN_CHOICES, "data"),
        State(ids.SCHEME, "data"),
        State(ids.PLAN_REVIEWED, "data"),
        State(ids.PLAN_TYPED, "value", allow_optional=True),
        *fields.every_value(fields.PLAN),
        running=[(Output(ids.PLAN_LAST, "className"), "actions waits", "actions")],
        prevent_initial_call=True,
        websocket=True,
    )
    async def show_review(choice: str | None, *rest: Any) -> tuple[Any, ...]:
        data, scheme, before, typed, found, values = rest[len(PREFLIGHT_FIELDS) :]
        if choice is None or not data:
            return None, *last_words(None), True
        choices, given = PlanChoices.of_data(data, int(choice)), fields.values_of(found, values)
        try:
            proposal = choices.chosen.proposal(context.actions.session.plans)
            previewed = await context.actions.preview(Reassign.of_plan(proposal, given))
        except ClusterActionError as error:
            return problem(error), *last_words(None), False
        preview = previewed.effect.review
        why = choices.chosen.why
        shown = review(preview, scheme or "light", why, given) if preview else None
        was = context.actions.known_preview({"name": (before or {}).get("preview", "")})
        kept = previewed.keeps(typed or "", was)
        asks, *words = last_words(previewed, choices.reviewed(given), *kept)
        # A field that stays loses nothing of what is typed into it meanwhile.
        return shown, no_update if previewed.repeats(was) else asks, *words, False


def _register_confirm(app: Dash, context: PageContext) -> None:
    """The button asks, and the answer to its question begins the move."""
    chosen = (
        State(ids.PLAN_CHOICE, "value", allow_optional=True),
        State(ids.PLAN_CHOICES, "data"),
        State(ids.PLAN_TYPED, "value", allow_optional=True),
        State(ids.PLAN_REVIEWED, "data"),
        State(ids.PLAN_ENTRIES, "value"),
        State(ids.PLAN_CONFIRM, "disabled"),
        *fields.every_value(fields.PLAN),
    )

    @app.callback(
        Output(ids.PLAN_OUTCOME, "children", allow_duplicate=True),
        Output(ids.PLAN_QUESTION, "children", allow_duplicate=True),
        Input(ids.PLAN_CONFIRM, "n_clicks"),
        *chosen,
        running=[(Output(ids.PLAN_CONFIRM, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    def ask(clicks: int | None, *values: Any) -> tuple[Any, Any]:
        found = _Confirmation.of(*values)
        if not clicks or found is None:
            return no_update, no_update
        try:
            return None, question(found.reviewed(context))
        except ClusterActionError as error:
            return problem(error), None

    @app.callback(
        Output(ids.PLAN_OUTCOME, "children", allow_duplicate=True),
        Output(ids.PLAN_QUESTION, "children", allow_duplicate=True),
        Output(ids.REDIRECT, "data"),
        Input(ids.PLAN_YES, "n_clicks", allow_optional=True),
        Input(ids.PLAN_LEAVE, "n_clicks", allow_optional=True),
        *chosen,
        running=[(Output(ids.PLAN_YES, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def answer(yes: int | None, no: int | None, *values: Any) -> tuple[Any, Any, Any]:
        found = _Confirmation.of(*values)
        if not (yes or no) or found is None:
            return no_update, no_update, no_update
        if ctx.triggered_id == ids.PLAN_LEAVE:
            return None, None, no_update
        try:
            name = found.reviewed(context).name
            typed, reason = found.typed, found.given["reason"]
            done = await context.actions.perform(name, typed=typed, reason=reason)
        except ClusterActionError as error:
            return problem(error), None, no_update
        return None, None, redirect("plan", f"moves/{done.params['move']}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Confirmation:
    """The plan to be confirmed, as the page has it at a click."""

    choices: PlanChoices
    typed: str
    review: Mapping[str, str]
    entries: str
    given: dict[str, str]

    @classmethod
    def of(cls, choice: str | None, data: Any, *values: Any) -> "_Confirmation | None":
        """None: nothing can be confirmed."""
        typed, review, entries, is_refused, *found = values
        if choice is None or is_refused:
            return None
        return cls(
            choices=PlanChoices.of_data(data, int(choice)),
            typed=typed or "",
            review=review or {},
            entries=entries or "",
            given=fields.values_of(*found),
        )

    def reviewed(self, context: PageContext) -> Previewed:
        """The preview that an operator has read.

        Raises:
            OperationError: something has changed since, or the word is not typed.
        """
        about = {name: value for name, value in self.review.items() if name != "preview"}
        self.choices.require_reviewed(about, self.given, self.entries)
        session = context.actions.session
        previewed = session.kept_preview(self.review.get("preview", ""))
        session.require(previewed.effect.command, typed=self.typed)
        return previewed


def _fields_of(error: Exception) -> set[str]:
    return set(error.fields) if isinstance(error, InvalidInputError) else set()


def offered(choices: PlanChoices, scheme: str | None, *, limits: Sequence[str] = ()) -> Any:
    """The alternatives to choose from, beside what each costs and reaches."""
    radios = [dmc.Radio(item.words, value=str(n)) for n, item in enumerate(choices.items)]
    group = dmc.RadioGroup(
        dmc.Stack(radios), id=ids.PLAN_CHOICE, value=str(choices.at), label="Alternatives"
    )
    broken = [f"▲ {words}" for words in choices.chosen.violations]
    notes = [html.P(words, className="note") for words in (*(f"◆ {w}" for w in limits), *broken)]
    chooser = card("Choose", group, *notes)
    if len(choices.items) == 1:
        return chooser
    curve = trade_off([item.offer for item in choices.items], scheme or "light")
    chart = graph(ids.PLAN_CURVE, 240, figure=curve)
    return html.Div([chooser, card("What it costs", chart)], className="compare")
