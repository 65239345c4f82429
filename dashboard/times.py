"""When the charts are: how long a stretch, and up to when; kept while one moves from view to
view, and in the page's link."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from control.views.format import clock_text
from control.views.rows import SHAPES, Tone
from control.views.times import RANGE_DEFAULT, RANGES, TimeError, span_of
from dashboard import ids
from dashboard.components.parts import modal
from dashboard.context import Screen


def dialog() -> Any:
    """The choice of a time, closed; part of the frame."""
    return html.Div(
        [
            dcc.Store(id=ids.TIME, data={}),
            modal(
                ids.TIME_DIALOG,
                "Charts at another time",
                html.Div(
                    [
                        dmc.Select(
                            id=ids.TIME_RANGE,
                            label="Show",
                            data=[{"value": k, "label": v} for k, v in RANGES.items()],
                            value=RANGE_DEFAULT,
                            allowDeselect=False,
                            size="sm",
                        ),
                        dmc.TextInput(
                            id=ids.TIME_AT,
                            label="Up to",
                            description="empty: now, live; 2h (ago); 2026-11-21T09:00",
                            value="",
                            size="sm",
                        ),
                        html.P(
                            "Charts move to that time. Tables and findings stay those of now: "
                            "the store keeps the past of throughput, lag and sizes.",
                            className="note",
                        ),
                        html.Div(
                            [
                                dmc.Button("Show", id=ids.TIME_APPLY, className="submit"),
                                dmc.Button("Back to now", id=ids.TIME_NOW, variant="light"),
                            ],
                            className="actions",
                        ),
                    ],
                    className="form operation-form",
                ),
            ),
        ]
    )


def time_words(time: Mapping[str, str], *, now_ms: int) -> str:
    """``last 1 hour``, ``10 minutes up to 12:04``, or what is wrong with what was asked for."""
    at, range_ = time.get("at") or "", time.get("range") or RANGE_DEFAULT
    try:
        span = span_of(at, range_, now_ms=now_ms)
    except TimeError as error:
        return f"{SHAPES[Tone.CRITICAL]} {error}; the last 10 minutes are shown"
    stretch = RANGES.get(range_, range_)
    return (
        f"{stretch} up to {clock_text(span.until_ms, now_ms=now_ms)}" if at else f"last {stretch}"
    )


def register(app: Dash, screen: Screen) -> None:
    """The choice is made in the browser, charts depend on ``ids.TIME``; what it means, or why
    it means nothing, is said here."""

    @app.callback(Output(ids.TIME_SHOWN, "children"), Input(ids.TIME, "data"), websocket=True)
    def say(time: dict[str, str] | None) -> str:
        return time_words(time or {}, now_ms=screen.now_ms())

    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "readTime"),
        Output(ids.TIME, "data"),
        Input(ids.LOCATION, "pathname"),
        Input(ids.LOCATION, "search"),
        Input(ids.TIME_APPLY, "n_clicks"),
        Input(ids.TIME_NOW, "n_clicks"),
        State(ids.TIME_AT, "value"),
        State(ids.TIME_RANGE, "value"),
        State(ids.TIME, "data"),
    )
    in_browser(
        ClientsideFunction("partiscope", "closeTime"),
        Output(ids.TIME_DIALOG, "opened"),
        Input(ids.TIME_BUTTON, "n_clicks"),
        Input(ids.TIME_APPLY, "n_clicks"),
        Input(ids.TIME_NOW, "n_clicks"),
        prevent_initial_call=True,
    )
