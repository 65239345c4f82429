"""Moves: every reassignment, running and past; one of them live, with pause, cancel, roll back."""

from typing import Any, Final

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html

from control.operations.registry import REASSIGN
from control.operations.state import OperationState
from control.views import format as text
from control.views.moves import (
    CHANGE_COLUMNS,
    MOVE_COLUMNS,
    change_row,
    done_percent,
    move_row,
)
from control.views.paths import ViewPath
from control.views.rows import Cell, Tone
from dashboard import ids, rights
from dashboard.components.forms import good, problem
from dashboard.components.parts import attributes, card, crumbs, empty, tile
from dashboard.components.tables import rows_table
from dashboard.context import Screen
from dashboard.desk import DeskError
from dashboard.shown import Time

CHANGES_MAX: Final = 200
_CHANGES: Final = frozenset({"cancel", "rollback"})
"""What asks the cluster itself to move something."""
_BUTTONS: Final = {
    "pause": "Pause",
    "resume": "Resume",
    "cancel": "Cancel (x)",
    "rollback": "Roll back (u)",
}


def layout(screen: Screen, path: ViewPath) -> list[Any]:
    """All moves."""
    return [crumbs([("Moves", "moves")]), card("", html.Div(id=ids.MOVES_TABLE))]


def move_layout(screen: Screen, path: ViewPath) -> list[Any]:
    """One move."""
    operation_id = path.params["move"]
    buttons = [
        dmc.Button(
            label,
            id=ids.move_button(action),
            size="xs",
            variant="light",
            color="red" if action in {"cancel", "rollback"} else "blue",
        )
        for action, label in _BUTTONS.items()
    ]
    return [
        crumbs([("Moves", "moves"), (operation_id, "")]),
        dcc.Store(id=ids.MOVE_ID, data=operation_id),
        html.Div(buttons, className="actions"),
        html.Div(id=ids.MOVE_SAID),
        html.Div(id=ids.MOVE_BODY, className="form"),
    ]


def register(app: Dash, screen: Screen) -> None:
    """Live list, live detail, and what the buttons ask for."""

    @app.callback(
        Output(ids.MOVES_TABLE, "children"),
        Input(ids.MOVES_PUSHED, "data"),
        websocket=True,
    )
    def fill_list(_: object) -> Any:
        return moves_block(screen)

    @app.callback(
        Output(ids.MOVE_BODY, "children"),
        *(Output(ids.move_button(action), "disabled") for action in ids.MOVE_ACTIONS),
        Input(ids.MOVES_PUSHED, "data"),
        Input(ids.MOVE_ID, "data"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def fill_move(_: object, operation_id: str, time: Time | None) -> tuple[Any, ...]:
        state = screen.desk.moves.get(operation_id)
        may = [
            state is not None and state.may(act) and not _is_denied(screen, act, time)
            for act in ids.MOVE_ACTIONS
        ]
        return move_block(screen, state, time), *(not each for each in may)

    @app.callback(
        Output(ids.MOVE_SAID, "children"),
        *(Input(ids.move_button(action), "n_clicks") for action in ids.MOVE_ACTIONS),
        State(ids.MOVE_ID, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    async def act(*values: Any) -> Any:
        if not any(values[:-1]):
            return None
        action = str(ctx.triggered_id).removeprefix("move-")
        try:
            return good(await screen.desk.control(action, str(values[-1])))
        except DeskError as error:
            return problem(error)


def _is_denied(screen: Screen, action: str, time: Time | None) -> bool:
    """Whether a right lacks; who may not move may still hold what moves."""
    if action in _CHANGES:
        return rights.is_denied(screen, REASSIGN.name, time)
    return screen.snapshot.is_read_only


def moves_block(screen: Screen) -> Any:
    """The list, or why there is none."""
    moves = screen.desk.moves.newest_first
    if not moves and screen.desk.moves.trouble:
        return empty("Moves cannot be read at the moment", screen.desk.moves.trouble)
    if not moves:
        return empty("Nothing was ever moved", "Plan moves: press g n, or R on a topic")
    now_ms = screen.now_ms()
    return rows_table([move_row(move, now_ms=now_ms) for move in moves], MOVE_COLUMNS)


def move_block(screen: Screen, state: OperationState | None, time: Time | None = None) -> Any:
    """Progress, figures, what is said, and the diff."""
    if state is None:
        return empty("Waiting for the executor", "`partiscope executor` (part of `up`) runs moves")
    row = move_row(state, now_ms=screen.now_ms())
    progress = state.progress
    tiles = [
        tile("status", row.status),
        tile("done", row.done),
        tile("bytes", _bytes_cell(state)),
        tile("partitions", _partitions_cell(state)),
        tile("rate", row.rate),
        tile("ends", row.eta, "An interval, not a promise"),
        tile("wave", Cell(0, f"{progress.wave} of {progress.waves}" if progress else text.NONE)),
        tile("throttle", _throttle_cell(state)),
    ]
    stalled = progress.stalled if progress else ()
    warnings = [
        html.Div(f"▲ {item.topic}-{item.partition} stands still: {item.reason}",
                 className="finding edge-warning tone-warning")
        for item in stalled
    ]  # fmt: skip
    changes = [change_row(change) for change in state.changes[:CHANGES_MAX]]
    return [
        progress_bar(done_percent(progress)),
        html.P(state.message or "submitted", className="note", role="status"),
        html.P(
            rights.line(rights.words(screen, REASSIGN.name, time)),
            className="lacking",
            role="status",
        ),
        html.Div(tiles, className="tiles"),
        *warnings,
        card("What changes", rows_table(changes, CHANGE_COLUMNS)),
        html.P(
            f"asked for by {row.who.text} at {row.submitted.text}; reason: {row.reason.text}",
            className="note",
        ),
    ]


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


def _bytes_cell(state: OperationState) -> Cell:
    if state.progress is None:
        return Cell(None, text.NONE)
    done, total = state.progress.bytes_done, state.progress.bytes_total
    return Cell(done, f"{text.bytes_text(done)} of {text.bytes_text(total)}")


def _partitions_cell(state: OperationState) -> Cell:
    if state.progress is None:
        return Cell(None, text.NONE)
    done, total = state.progress.partitions_done, state.progress.partitions_total
    return Cell(done, f"{done:,} of {total:,}")


def _throttle_cell(state: OperationState) -> Cell:
    rate = state.throttle_bytes_per_s
    if rate is None:
        return Cell(None, "none")
    gone = state.throttle is None
    words = f"{text.byte_rate_text(rate)}{', removed' if gone else ''}"
    return Cell(rate, words, Tone.MUTED if gone else Tone.PLAIN)
