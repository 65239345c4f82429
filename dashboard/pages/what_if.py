"""Loss of a broker or a rack: nothing is touched, everything is counted."""

from typing import Any, Final

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, html

from control.views.cluster.what_if import (
    LOSS_KINDS,
    SURVIVORS,
    WhatIf,
    hit_page,
    losses,
    wanted_loss,
    what_if,
)
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.partitions import PARTITIONS
from control.views.tables.query import TableQuery
from control.views.tables.rows import Tone
from dashboard import ids
from dashboard.components.markup import MARKUP, markup
from dashboard.components.parts import calm_line, card, crumbs, empty, finding_words, tiles
from dashboard.components.tables import rows_table
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import AT_ONCE, answer

PARTITIONS_SHOWN_MAX: Final = 50
_HIT_COLUMNS: Final = PARTITIONS.only(
    "topic", "partition", "status", "leader", "replicas", "isr", "in_bytes"
)


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """The choice of a loss, and what it would do."""
    named = [f"{kind}={path.query[kind]}" for kind in LOSS_KINDS if kind in path.query]
    options = offers(context.snapshot)
    chooser = dmc.Select(
        id=ids.LOSS,
        label="What if this dies",
        data=options,
        value=[*named, *(item["value"] for item in options), None][0],
        allowDeselect=False,
        searchable=True,
        size="sm",
    )
    return [
        crumbs([("What if", "what-if")]),
        html.Div(chooser, className="chooser"),
        html.Div(id=ids.LOSS_ANSWER, className="form"),
    ]


def register(app: Dash, context: PageContext) -> None:
    """The answer, live."""
    in_browser: Any = app.clientside_callback
    in_browser(ClientsideFunction("partiscope", "lossChosen"), Input(ids.LOSS, "value"))

    @app.callback(
        Output(ids.LOSS, "data"),
        Input(ids.TICK, "data"),
        websocket=True,
    )
    def offer(_: object) -> list[dict[str, str]]:
        return offers(context.snapshot)

    @app.callback(
        Output(ids.LOSS_ANSWER, MARKUP),
        Input(ids.TICK, "data"),
        Input(ids.LOSS, "value"),
        websocket=True,
    )
    def fill(_: object, asked: str | None) -> str:
        def build(snapshot: OperatorSnapshot) -> str:
            return markup(answer_block(snapshot, asked))

        return answer(context, AT_ONCE, None, ("what-if", asked), build)


def offers(snapshot: OperatorSnapshot) -> list[dict[str, str]]:
    """Every loss that can be chosen."""
    return [
        {"value": f"{loss.kind}={loss.value}", "label": loss.words} for loss in losses(snapshot)
    ]


def answer_block(snapshot: OperatorSnapshot, asked: str | None) -> Any:
    """Figures, findings, survivors and partitions of the loss; what to do when there is none."""
    kind, _, value = (asked or "").partition("=")
    loss = wanted_loss(snapshot, {kind: value})
    if loss is None:
        return empty("Choose a broker or a rack", "This only calculates: nothing changes")
    return blocks(what_if(snapshot, loss))


def blocks(found: WhatIf) -> list[Any]:
    """The found."""
    page = hit_page(found, TableQuery(limit=PARTITIONS_SHOWN_MAX))
    bad = [row for row in found.findings if row.severity.tone is not Tone.NOTICE]
    words = f"Without {found.loss.words} every partition stays online and writable"
    cut = page.matching > len(page.rows)
    note = f"the worst {len(page.rows):,} of {page.matching:,}" if cut else ""
    return [
        html.Div(tiles(found.facts), className="tiles"),
        html.Div([finding_words(row) for row in bad] or [calm_line(words)], className="findings"),
        card(
            "Extra load on survivors: leaders and their traffic",
            rows_table(found.survivors, SURVIVORS.columns),
        ),
        card(
            "Partitions that lose a replica, worst first",
            rows_table(page.rows, _HIT_COLUMNS)
            if page.rows
            else empty(f"{found.loss.words} holds no replica"),
            extra=html.Span(note, className="note"),
        ),
    ]
