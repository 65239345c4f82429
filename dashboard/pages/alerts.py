"""Alerts that fire and whom they were told to; silences; forms that begin and end them."""

from typing import Any

from dash import Dash, Input, Output, html

from control.operations.catalogue import form_named
from control.views.alert_tables import OF_A_CLUSTER, SILENCES
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import Row
from dashboard import ids
from dashboard.components.markup import MARKUP, markup, markup_box
from dashboard.components.operation_form import operation_button
from dashboard.components.parts import card, crumbs, empty, opener
from dashboard.components.tables import rows_table
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import AT_ONCE, Look, Time, answer

SILENCE = form_named("silence")
END_SILENCE = form_named("end_silence")


def layout(context: PageContext, _: ViewPath, look: Look) -> list[Any]:
    """Two tables, each with its form."""
    alerts, silences = _as_text(context, look.time)
    return [
        crumbs([("Alerts", "alerts")]),
        card(
            "Alerts, firing first",
            markup_box(alerts, id=ids.ALERTS_TABLE),
            extra=operation_button(SILENCE),
        ),
        card("Silences and maintenance windows", markup_box(silences, id=ids.SILENCES_TABLE)),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Kept as the bus tells them."""

    @app.callback(
        Output(ids.ALERTS_TABLE, MARKUP),
        Output(ids.SILENCES_TABLE, MARKUP),
        Input(ids.TICK, "data"),
        Input(ids.TIME, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def fill(tick: Any, time: Time | None) -> tuple[str, ...]:
        return _as_text(context, time, tick)


def _as_text(context: PageContext, time: Time | None, tick: Any = AT_ONCE) -> tuple[str, ...]:
    def build(snapshot: OperatorSnapshot) -> tuple[str, ...]:
        return tuple(map(markup, blocks(snapshot)))

    return answer(context, tick, time, "alerts", build)


def blocks(snapshot: OperatorSnapshot) -> tuple[Any, Any]:
    """The alerts, and the silences."""
    told, now_ms = snapshot.alerts, snapshot.built_ms
    alerts, silences = told.alert_rows(now_ms), told.silence_rows(now_ms)
    if snapshot.is_past:
        return empty("Alerts are shown as they are now", "Space goes back to now"), None
    nothing = "No alert is open" if told.is_delivered else "Nobody delivers alerts from here"
    return (
        rows_table(alerts, OF_A_CLUSTER)
        if alerts
        else empty(nothing, "`partiscope alerts check` tells what each rule matches now"),
        [rows_table(silences, SILENCES.columns), *_ends(snapshot, silences)]
        if silences
        else empty("No silence lasts or is planned"),
    )


def _ends(snapshot: OperatorSnapshot, rows: tuple[Row, ...]) -> list[html.Div]:
    """A button for each silence that somebody set."""
    given = [(row.key, snapshot.alerts.given_of(row)) for row in rows]
    buttons = [
        opener(
            html.Button, f"End {key}", END_SILENCE.name, values, about=key, className="finding-step"
        )
        for key, values in given
        if values
    ]
    return [html.Div(buttons, className="actions")] if buttons else []
