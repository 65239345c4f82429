"""Every config of a topic or broker, or those of two side by side; each can be changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html
from dash.exceptions import PreventUpdate

from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from control.views.format import clock_text
from control.views.paths import ViewPath, parse_path
from control.views.tables import configs
from control.views.tables.column import Column
from control.views.tables.rows import Row
from dashboard import ids
from dashboard.cluster_actions import ClusterActionError
from dashboard.components.forms import problem, text_field
from dashboard.components.markup import still
from dashboard.components.parts import attributes, card, crumbs, empty, opener
from dashboard.context import PageContext

_TYPED_MS: Final = 300
"""So long after the last key a field is taken as typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The configs of one or two resources as read."""

    resource: ConfigResource
    entries: tuple[ConfigEntry, ...]
    beside: str = ""
    """With whom it is compared."""
    other: tuple[ConfigEntry, ...] | None = None


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """The fields, filled in by the path's query; the table comes at once."""
    resource = configs.resource_of(path)
    is_topic = resource.scope is ConfigScope.TOPIC
    above = (
        [("Topics", "topics"), (resource.name, f"topics/{resource.name}")]
        if is_topic
        else [("Brokers", "brokers"), (f"broker {resource.name}", f"brokers/{resource.name}")]
    )
    fields = (
        text_field(
            ids.CONFIGS_FILTER, "Filter", "in name and text", path.query.get("q", ""),
            debounce=_TYPED_MS, className="filter-field",
        ),
        text_field(
            ids.CONFIGS_BESIDE,
            "Compare with",
            "another topic" if is_topic else "another broker's id",
            path.query.get("with", ""),
            debounce=_TYPED_MS,
        ),
    )  # fmt: skip
    plain = ViewPath(view=path.view, params=path.params)
    return [
        crumbs([*above, ("configs", "")]),
        dcc.Store(id=ids.CONFIGS_PATH, data=str(plain)),
        html.Div(fields, className="form-line"),
        dcc.Loading(html.Div(id=ids.CONFIGS_RESULT), type="dot", delay_show=300),
        dmc.Button("Read again", id=ids.CONFIGS_AGAIN, size="xs", variant="light"),
    ]


def register(app: Dash, context: PageContext) -> None:
    """Read on opening, when it is asked for, and after a dialog that may have changed one."""
    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "keepConfigs"),
        Output(ids.CONFIGS_RESULT, "title"),
        Input(ids.CONFIGS_FILTER, "value"),
        Input(ids.CONFIGS_BESIDE, "value"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output(ids.CONFIGS_RESULT, "children"),
        Input(ids.CONFIGS_PATH, "data"),
        Input(ids.CONFIGS_FILTER, "value"),
        Input(ids.CONFIGS_BESIDE, "value"),
        Input(ids.CONFIGS_AGAIN, "n_clicks"),
        Input(ids.OPERATION_DIALOG, "opened"),
        State(ids.CONFIGS_RESULT, "children"),
        websocket=True,
    )
    async def show(path: str, wanted: str | None, beside: str | None, *opening: Any) -> Any:
        _, is_open, before = opening
        if is_open and before:
            raise PreventUpdate
        try:
            found = await read(context, parse_path(path), (beside or "").strip())
        except ClusterActionError as error:
            return problem(error)
        return table(found, wanted or "", read_ms=context.now_ms())


async def read(context: PageContext, path: ViewPath, beside: str) -> Found:
    """From the cluster itself.

    Raises:
        KafkaPortError: nobody answers, or one of the two is not there.
        ValueError: not a broker's id.
    """
    session, resource = context.actions.session, configs.resource_of(path)
    entries = await session.configs(resource)
    if not beside:
        return Found(resource=resource, entries=entries)
    if resource.scope is ConfigScope.BROKER and not beside.isdecimal():
        raise ValueError(f"{beside} is not a broker's id")
    other = await session.configs(ConfigResource(scope=resource.scope, name=beside))
    return Found(resource=resource, entries=entries, beside=beside, other=other)


def table(found: Found, wanted: str, *, read_ms: int) -> Any:
    """A table, set configs first; a config's name opens its facts."""
    scope = found.resource.scope
    rows = configs.config_rows(found.resource, found.entries, filter=wanted, other=found.other)
    by_name = {it.name: it for it in configs.compared(found.entries, found.other)}
    if not rows:
        return empty(f"No config has {wanted!r} in its name or text")
    columns = configs.CONFIGS.columns if found.other is None else configs.compared_columns(
        found.beside
    )  # fmt: skip
    head = [html.Th(it.title, title=it.help or None, className=f"text rank-{it.rank}")
            for it in columns]  # fmt: skip
    body = [_line(found.resource, by_name[row.key], row, columns) for row in rows]
    changed = sum(configs.is_changed(scope, entry) for entry in found.entries)
    words = (
        f"{changed} of {len(found.entries)} set · {len(rows)} shown · "
        f"read {clock_text(read_ms, with_seconds=True)}"
    )
    lines = html.Table(
        [html.Thead(html.Tr([*head, html.Th("")])), html.Tbody(body)], className="rows configs"
    )
    return card("Configs", html.Div(lines, className="rows-frame"), extra=html.Span(words))


def _line(
    resource: ConfigResource, entry: ConfigEntry, row: Row, columns: Sequence[Column]
) -> html.Tr:
    cells = [
        html.Td(row.cell(it.id).text, className=f"text rank-{it.rank} tone-{row.cell(it.id).tone}")
        for it in columns[1:]
    ]
    named = html.Details([html.Summary(entry.name), still(_explained(resource.scope, entry))])
    return html.Tr(
        [html.Td(named, className="text"), *cells, html.Td(_steps(resource, entry))],
        **attributes({"data-config": entry.name}),
    )


def _explained(scope: ConfigScope, entry: ConfigEntry) -> html.Dl:
    told: list[Any] = []
    for name, words in configs.facts(scope, entry):
        told += [html.Dt(name), html.Dd(words)]
    return html.Dl(told)


def _steps(resource: ConfigResource, entry: ConfigEntry) -> list[Any]:
    """Change and reset, where it can be done."""
    if entry.source == configs.ABSENT:
        return [html.Span("not here", className="note")]
    if entry.is_read_only:
        return [html.Span("with a restart", className="note")]
    kind = resource.scope.name.lower()
    value = "" if entry.value is None else entry.value
    given = {kind: resource.name, "configs": f"{entry.name}={value}"}
    look: dict[str, Any] = {"size": "compact-xs", "variant": "subtle"}
    form = f"configure_{kind}"
    change = opener(dmc.Button, "Change", form, given, about=entry.name, **look)
    if not configs.is_own(resource.scope, entry):
        return [change]
    none = {**given, "configs": f"{entry.name}="}
    return [change, opener(dmc.Button, "Reset", form, none, about=f"{entry.name}=", **look)]
