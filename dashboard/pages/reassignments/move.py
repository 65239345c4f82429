"""One move, live: how far it is, partition by partition; pause, throttle, cancel, roll back."""

from collections.abc import Mapping
from typing import Any, Final

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from control.model.command_line import typed
from control.move.events import Outcome
from control.move.state import OperationState
from control.operations.catalogue import move_operation
from control.operations.catalogue.forms import Confirmation
from control.operations.errors import ElsewhereError
from control.operations.previews import Previewed
from control.views.paths import ViewPath
from control.views.refusals import move_refusals
from control.views.tables.moves import (
    MOVING,
    change_columns_of,
    done_percent,
    earlier_notes,
    ended_rows,
    fate_words,
    heard_of_words,
    move_facts,
    move_row,
    moving_rows,
    newest_words,
    plan_anew_path,
    spread_words,
    stalled_lines,
)
from dashboard import ids
from dashboard.cluster_actions import ClusterActionError
from dashboard.components.checks import check_line
from dashboard.components.forms import good, problem, text_field
from dashboard.components.parts import attributes, card, crumbs, empty, redirect, tiles
from dashboard.components.tables import rows_table
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import Time
from dashboard.page_frame import rights

CHANGES_MAX: Final = 200
BUTTONS: Final = {
    "pause": "Pause",
    "resume": "Resume",
    "cancel": "Cancel (x)",
    "cancel_after_wave": "Cancel after the wave (X)",
    "rollback": "Roll back (u)",
}
DANGEROUS: Final = frozenset({"cancel", "cancel_after_wave", "rollback"})


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """One move."""
    operation_id = path.params["move"]
    buttons = [_button(action, label) for action, label in BUTTONS.items()]
    return [
        crumbs([("Moves", "moves"), (operation_id, "")]),
        dcc.Store(id=ids.MOVE_ID, data=operation_id),
        dcc.Store(id=ids.MOVE_ASKED),
        html.Div([*buttons, _rate_field()], id=ids.MOVE_BUTTONS, className="actions"),
        html.Div(id=ids.MOVE_QUESTION),
        html.Div(id=ids.MOVE_SAID),
        html.Div(id=ids.MOVE_BODY, className="form"),
    ]


def _button(action: str, label: str, **more: Any) -> html.Span:
    color = "red" if action in DANGEROUS else "blue"
    button = dmc.Button(
        label, id=ids.move_button(action), size="xs", variant="light", color=color, **more
    )
    return html.Span(button, id=ids.move_why(action))


def _rate_field() -> html.Div:
    """Another throttle while it runs."""
    field = dmc.TextInput(
        id=ids.MOVE_RATE,
        placeholder="auto, none, or 50MiB",
        size="xs",
        w=160,
        **attributes({"aria-label": "Throttle"}),
    )
    button = _button("throttle", "Throttle", className="submit")
    return html.Div([field, button], className="actions operation-form")


def register(app: Dash, context: PageContext) -> None:
    """The live view, and what its buttons ask for."""

    @app.callback(
        Output(ids.MOVE_BODY, "children"),
        Output(ids.MOVE_BUTTONS, "hidden"),
        *(Output(ids.move_button(action), "disabled") for action in ids.MOVE_ACTIONS),
        *(Output(ids.move_why(action), "title") for action in ids.MOVE_ACTIONS),
        Input(ids.MOVES_PUSHED, "data"),
        Input(ids.MOVE_ID, "data"),
        Input(ids.TIME, "data"),
        Input(ids.DENIED, "data"),
        websocket=True,
    )
    def fill(_: object, operation_id: str, time: Time | None, __: object) -> tuple[Any, ...]:
        state = context.actions.moves.get(operation_id)
        if state is None:
            count = len(ids.MOVE_ACTIONS)
            return _unknown(context, operation_id), True, *[True] * count, *[""] * count
        denied = rights.every_word(context, time)
        refused = move_refusals(state, ids.MOVE_ACTIONS, denied=denied)
        whys = [refused.get(it, "") for it in ids.MOVE_ACTIONS]
        return move_block(context, state, time), False, *map(bool, whys), *whys

    @app.callback(
        Output(ids.MOVE_SAID, "children"),
        Output(ids.MOVE_QUESTION, "children"),
        Output(ids.MOVE_ASKED, "data"),
        *(Input(ids.move_button(action), "n_clicks") for action in ids.MOVE_ACTIONS),
        State(ids.MOVE_ID, "data"),
        State(ids.MOVE_RATE, "value"),
        State(ids.MOVE_ASKED, "data"),
        State(ids.MOVE_TYPED, "value", allow_optional=True),
        running=[(Output(ids.move_button(it), "loading"), True, False) for it in ids.MOVE_ACTIONS],
        prevent_initial_call=True,
        websocket=True,
    )
    async def press(*values: Any) -> tuple[Any, Any, Any]:
        *clicks, operation_id, rate, before, typed = values
        if not any(clicks):
            return no_update, no_update, no_update
        operation = move_operation(str(ctx.triggered_id).removeprefix("move-"))
        given = {"move": str(operation_id), "throttle": str(rate or "")}
        try:
            asked = await context.actions.preview(operation.of(operation.FORM.parse(given)))
            if asked.form.confirmation is Confirmation.NONE and not asked.word:
                return good((await context.actions.perform(asked.name)).words), None, None
        except ClusterActionError as error:
            return problem(error), None, None
        was = context.actions.known_preview(before)
        shown = question(asked, given["move"], *asked.keeps(typed or "", was))
        return None, shown, {"move": operation_id, "name": asked.name}

    _register_confirm(app, context)


def _register_confirm(app: Dash, context: PageContext) -> None:
    @app.callback(
        Output(ids.MOVE_SAID, "children", allow_duplicate=True),
        Output(ids.MOVE_QUESTION, "children", allow_duplicate=True),
        Output(ids.REDIRECT, "data", allow_duplicate=True),
        Input(ids.MOVE_CONFIRM, "n_clicks"),
        Input(ids.MOVE_LEAVE, "n_clicks"),
        State(ids.MOVE_ASKED, "data"),
        State(ids.MOVE_ID, "data"),
        State(ids.MOVE_TYPED, "value", allow_optional=True),
        running=[(Output(ids.MOVE_CONFIRM, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def confirm(
        yes: int | None, no: int | None, asked: dict[str, str], operation_id: str, typed: str | None
    ) -> tuple[Any, Any, Any]:
        if not yes and not no:
            return no_update, no_update, no_update
        if ctx.triggered_id == ids.MOVE_LEAVE:
            return None, None, no_update
        if asked["move"] != operation_id:
            late = f"this question is about {asked['move']}: ask again on this page"
            return problem(ValueError(late)), None, no_update
        try:
            done = await context.actions.perform(asked["name"], typed=typed or "")
        except ClusterActionError as error:
            return problem(error), no_update, no_update
        if done.view:
            return None, None, redirect(f"moves/{operation_id}", f"moves/{done.params['move']}")
        return good(done.words), None, no_update


def question(asked: Previewed, move: str, typed: str = "", changed: str = "") -> html.Div:
    """The preview, doubts about it, the word to type if there is one, and both answers. A refused
    operation is not asked. Keys look for the question that they asked. ``typed`` and ``changed``
    are as ``Previewed.keeps`` has them."""
    effect, word = asked.effect, asked.word
    doubts = [check_line(check) for check in effect.doubts]
    words = [" ".join((effect.command.question, *effect.lines[:1])), *effect.lines[1:]]
    told = [html.P(changed, className="note", role="status")] if changed else []
    label = f"Type {word} to confirm"
    asks = [*told, text_field(ids.MOVE_TYPED, label, word, typed)] if word else []
    answers = [
        dmc.Button("Yes", id=ids.MOVE_CONFIRM, size="xs", color="red", className="submit"),
        dmc.Button("Leave it", id=ids.MOVE_LEAVE, size="xs", variant="light"),
    ]
    if effect.refusal:
        words, doubts, asks, answers = [effect.refusal.reason], [], [], []
    return html.Div(
        [
            *(html.P(line, className="empty-title") for line in words),
            *doubts,
            *asks,
            html.Div(answers, className="actions"),
        ],
        className="finding edge-warning stacked operation-form",
        role="alertdialog",
        **attributes({"data-asks": ids.move_button(asked.form.name), "data-move": move}),
    )


def _unknown(context: PageContext, operation_id: str) -> Any:
    """Not a move of this cluster, as far as one knows."""
    moves = context.actions.moves
    elsewhere = moves.elsewhere(operation_id)
    if elsewhere:
        error = ElsewhereError(operation_id, elsewhere)
        return empty(error.title, error.reason, error.next_step)
    return empty(
        "No move of this name is known yet",
        moves.trouble
        or "One that was just asked for appears when the executor (part of `up`) takes it",
        "g r lists all that ran and run",
    )


def move_block(context: PageContext, state: OperationState, time: Time | None = None) -> list[Any]:
    """Progress, figures, what is said, what moves now, and the diff."""
    row = move_row(state, now_ms=context.now_ms())
    return [
        progress_bar(done_percent(state.progress)),
        *_said(state),
        *_heard_of(context, state),
        *_plan_anew(state),
        *_report(state),
        html.P(
            rights.line(_denied_words(rights.every_word(context, time))),
            className="lacking",
            role="status",
        ),
        html.Div(tiles(move_facts(state, now_ms=context.now_ms())), className="tiles"),
        *_on_their_way(context, state),
        *(html.P(f"◆ {note}", className="note") for note in earlier_notes(state)),
        card("What changes", *_changes(state)),
        html.P(
            f"asked for by {row.who.text} at {row.submitted.text}; reason: {row.reason.text}",
            className="note",
        ),
    ]


def _denied_words(denied: Mapping[str, str]) -> str:
    """Why none of the buttons may be pressed; empty: one may, and the others tell their own."""
    whys = [denied.get(action, "") for action in ids.MOVE_ACTIONS]
    return whys[0] if all(whys) else ""


def _said(state: OperationState) -> list[Any]:
    """Why it yields, if it does, and its newest line."""
    why, words = state.yield_words, newest_words(state) if state.message else "submitted"
    warning = f"▲ {why}"
    yields = html.Div(warning, className="finding edge-warning tone-warning", role="status")
    said = html.P(words, className="note", role="status")
    return [*([yields] if why else []), *([said] if words else [])]


def _heard_of(context: PageContext, state: OperationState) -> list[Any]:
    """How old all of this is, and what keeps news away."""
    if state.is_finished:
        return []
    words = heard_of_words(state, now_ms=context.now_ms())
    trouble = context.actions.moves.trouble
    if not trouble:
        return [html.P(words, className="note")]
    return [html.Div(f"▲ {words}; no news: {trouble}", className="finding edge-warning")]


def _plan_anew(state: OperationState) -> list[Any]:
    """The way on from a move that was refused."""
    if state.outcome is not Outcome.REFUSED:
        return []
    words = "plan again, from where these topics lie now"
    return [dcc.Link(words, href=f"/{plan_anew_path(state.changes)}", id=ids.MOVE_PLAN_ANEW)]


def _report(state: OperationState) -> list[Any]:
    """The way to the report of a move that has ended."""
    if not state.is_finished:
        return []
    return [dcc.Link("Report: estimate, waves, lag", href=f"/moves/{state.operation_id}/report")]


def _on_their_way(context: PageContext, state: OperationState) -> list[Any]:
    """Partition by partition, and what stands still without being among them."""
    if state.progress is None or state.is_finished:
        return []
    progress = state.progress
    rows = moving_rows(state, now_ms=context.now_ms())
    warnings = [
        html.Div(line, className="finding edge-warning tone-warning")
        for line in stalled_lines(progress)
    ]
    more = len(progress.in_flight) + progress.in_flight_more - len(rows)
    note = [html.P(f"and {more} more", className="note")] if rows and more > 0 else []
    table = [card("On their way", rows_table(rows, MOVING.columns), *note)] if rows else []
    spread = spread_words(progress)
    waits = [html.P(spread, className="note")] if spread else []
    return [*waits, *warnings, *table]


def _changes(state: OperationState) -> list[Any]:
    table = rows_table(ended_rows(state)[:CHANGES_MAX], change_columns_of(state))
    words = [fate_words(state)] if state.fates else []
    if len(state.changes) > CHANGES_MAX:
        all_of = typed(f"`partiscope moves show {state.operation_id}` lists all")
        words.append(f"the first {CHANGES_MAX} of {len(state.changes):,}; {all_of}")
    return [*(html.P(line, className="note") for line in words), table]


def progress_bar(percent: float | None) -> html.Div:
    """A bar that a screen reader can read too."""
    share = percent or 0.0
    return html.Div(
        html.Div(style={"width": f"{share:.1f}%"}),
        className="progress",
        role="progressbar",
        **attributes({"aria-valuenow": f"{share:.0f}", "aria-valuemin": "0",
                      "aria-valuemax": "100"}),
    )  # fmt: skip
