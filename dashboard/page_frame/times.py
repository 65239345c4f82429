"""The time that is looked at: now or a past moment, and how long a stretch charts show; kept while
one moves from view to view, and in the page's link."""

from collections.abc import Mapping
from typing import Any, Final

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from control.views.format import age_text, clock_text
from control.views.tables.rows import SHAPES, Tone
from control.views.times import RANGE_DEFAULT, RANGES, TimeError, span_of
from dashboard import ids
from dashboard.components.parts import attributes, modal
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import displayed_snapshot, moment_of

PICKS: Final = {
    "1m": "1 minute ago",
    "10m": "10 minutes ago",
    "1h": "1 hour ago",
    "1d": "1 day ago",
}


def dialog() -> Any:
    """The choice of a time, closed; part of the frame."""
    return html.Div(
        [
            dcc.Store(id=ids.TIME, data={}),
            modal(
                ids.TIME_DIALOG,
                "Look at another time",
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
                        html.Div(
                            [
                                html.Button(
                                    words, className="export", **attributes({"data-at": at})
                                )
                                for at, words in PICKS.items()
                            ],
                            className="actions",
                        ),
                        dmc.TextInput(
                            id=ids.TIME_AT,
                            label="At",
                            description="empty: now, live; 2h (ago); 2026-11-21T09:00",
                            value="",
                            size="sm",
                        ),
                        html.P(
                            "Tables, findings and charts show that moment. It is kept by the "
                            "second for 2 hours, by the minute for 7 days, by the hour for 400.",
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


def past_bar() -> Any:
    """Impossible to overlook while the past is looked at; one click leads back."""
    back = html.Button("back to now", id=ids.PAST_NOW, className="finding-step")
    return html.Div(
        [html.Span("◷", className="past-sign"), html.Span(id=ids.PAST_WORDS), back],
        id=ids.PAST_BAR,
        className="past-bar",
        hidden=True,
        role="status",
    )


def past_words(context: PageContext, time: Mapping[str, str]) -> str:
    """Words of the bar about a past moment; empty for the present."""
    now_ms = context.now_ms()
    at_ms = moment_of(time, now_ms=now_ms)
    if at_ms is None:
        return ""
    past = displayed_snapshot(context, time)
    if past.why_empty:
        return past.why_empty
    when = f"{clock_text(at_ms, now_ms=now_ms)} ({age_text(now_ms - at_ms)})"
    gap = "; nothing was measured then" if past.evidence.freshness.are_all_unheard else ""
    return f"you are looking at {when}{gap}; nothing can be changed there"


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


def register(app: Dash, context: PageContext) -> None:
    """The choice is made in the browser, charts depend on ``ids.TIME``; what it means, or why
    it means nothing, is said here."""

    @app.callback(Output(ids.TIME_SHOWN, "children"), Input(ids.TIME, "data"), websocket=True)
    def say(time: dict[str, str] | None) -> str:
        return time_words(time or {}, now_ms=context.now_ms())

    @app.callback(
        Output(ids.PAST_WORDS, "children"),
        Output(ids.PAST_BAR, "hidden"),
        Input(ids.TIME, "data"),
        websocket=True,
    )
    def say_past(time: dict[str, str] | None) -> tuple[str, bool]:
        words = past_words(context, time or {})
        return words, not words

    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "readTime"),
        Output(ids.TIME, "data"),
        Input(ids.LOCATION, "pathname"),
        Input(ids.LOCATION, "search"),
        Input(ids.TIME_APPLY, "n_clicks"),
        Input(ids.TIME_NOW, "n_clicks"),
        Input(ids.PAST_NOW, "n_clicks"),
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
