"""Produce: where a key will land before it is sent, and where it landed after."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from control.messages.forecast import Forecast
from control.messages.lines import lines_of, records_of
from control.messages.produce_session import KeyAndValue
from control.model.units import counted
from control.operations.catalogue.topics.produce import PRODUCE, Produce
from control.operations.errors import InvalidInputError
from control.operations.sends import Send
from control.views.messages.key_preview import NO_TOPIC, known_leaders, landing
from control.views.messages.key_spread import keys_spread, spread_heads, spread_rows, spread_words
from control.views.messages.progress import last_words, limits_cell, progress_cells
from control.views.messages.sent import SENT, Sent
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from dashboard import ids
from dashboard.cluster_actions import ClusterActionError
from dashboard.components import operation_form as fields
from dashboard.components.forms import problem, text_field
from dashboard.components.markup import MARKUP, markup
from dashboard.components.parts import BLANK, card, crumbs, empty, graph, toned
from dashboard.components.tables import rows_table
from dashboard.context import PageContext
from dashboard.figures.latency import latency_histogram
from dashboard.page_frame import rights

FIRST_FIELDS: Final = ("topic", "key", "value")
"""What every message needs; the others are folded away."""
FILE_HINT: Final = "or the lines of a file: KEY<tab>VALUE or VALUE"
POLL_MS: Final = 500
"""Between two looks at the send of the topic, which another page may have begun."""
_JUDGED: Final = ("topic", "key", "value", "partition", "headers", "compression")
"""Fields that decide whether the topic takes a record."""
_ASKED: Final = ("topic", "key", "partition", "rule")
"""Fields that decide where a record lands."""


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """The form, the line that tells the partition, and what came of it."""
    topic = path.params.get("topic", "")
    if not context.snapshot.cluster.topics and not topic:
        return [
            crumbs([("Produce", "produce")]),
            empty("No topic is known yet", "`partiscope topics create NAME` makes one"),
        ]
    given = {"value": "hello {n}", **path.query, **({"topic": topic} if topic else {})}
    return [
        crumbs([("Produce", "produce"), *([(topic, "")] if topic else [])]),
        dcc.Interval(id=ids.PRODUCE_POLL, interval=POLL_MS),
        dcc.Store(id=ids.PRODUCE_SHOWN),
        dcc.Store(id=ids.PRODUCE_BEGUN),
        html.Div(
            [
                card("Record", _form(context, given), class_name="operation-form"),
                card(
                    "Result",
                    html.Div(empty("Nothing sent yet"), id=ids.PRODUCE_RESULT, role="status"),
                    html.Div(id=ids.PRODUCE_DONE),
                    html.Div(id=ids.PRODUCE_OTHERS),
                    dcc.Store(id=ids.PRODUCE_SENT),
                    html.Div(id=ids.PRODUCE_FOLLOWED, role="status"),
                    graph(ids.PRODUCE_CHART, 220),
                ),
            ],
            className="columns",
        ),
        card(
            "Where 10,000 keys land",
            text_field(ids.PRODUCE_THEN, "If partitions are added", "their new number",
                       given.get("then", "")),
            html.Div(id=ids.PRODUCE_SPREAD, role="status"),
        ),
    ]  # fmt: skip


def register(app: Dash, context: PageContext) -> None:
    """The preview while typing; a file; sending with progress; stopping."""
    _register_file(app)
    _register_beforehand(app, context)
    _register_followed(app, context)

    _register_sending(app, context)
    _register_shown(app, context)


def _register_sending(app: Dash, context: PageContext) -> None:
    """A send belongs to the session: every view of its topic may stop it."""

    @app.callback(
        Output(ids.PRODUCE_DONE, "children"),
        Output(ids.PRODUCE_BEGUN, "data"),
        fields.every_error(fields.PRODUCE),
        Input(ids.PRODUCE_SEND, "n_clicks"),
        State(ids.PRODUCE_LINES, "data"),
        State(ids.PRODUCE_TYPED, "value", allow_optional=True),
        *fields.every_value(fields.PRODUCE),
        running=[(Output(ids.PRODUCE_SEND, "disabled"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def send(_: int, *told: Any) -> tuple[Any, Any, Any]:
        lines, typed, found, values = told
        given = fields.values_of(found, values)
        try:
            asked = Produce.of_form(given, records_of_file(lines))
            begun = await context.actions.session.sends.begin(asked, typed=typed or "")
        except ClusterActionError as error:
            return problem(error), no_update, fields.errors_of(found, error)
        return None, begun.number, fields.errors_of(found, None)

    @app.callback(
        Output(ids.PRODUCE_STOP, "n_clicks"),
        Input(ids.PRODUCE_STOP, "n_clicks"),
        State(fields.field_id(fields.PRODUCE, "topic"), "value"),
        prevent_initial_call=True,
        websocket=True,
    )
    async def stop(clicks: int | None, topic: str | None) -> int:
        running = _send_of(context, topic)
        if clicks and running is not None:
            running.stop()
        return 0


def _register_shown(app: Dash, context: PageContext) -> None:
    """Every view of a topic shows its send."""

    @app.callback(
        Output(ids.PRODUCE_RESULT, "children"),
        Output(ids.PRODUCE_CHART, "figure"),
        Output(ids.PRODUCE_SENT, "data"),
        Output(ids.PRODUCE_OTHERS, "children"),
        Output(ids.PRODUCE_SEND, "disabled", allow_duplicate=True),
        Output(ids.PRODUCE_STOP, "disabled"),
        Output(ids.PRODUCE_SHOWN, "data"),
        Input(ids.PRODUCE_POLL, "n_intervals"),
        Input(ids.PRODUCE_BEGUN, "data"),
        Input(fields.field_id(fields.PRODUCE, "topic"), "value"),
        State(ids.PRODUCE_SHOWN, "data"),
        State(ids.SCHEME, "data"),
        State(ids.TIME, "data"),
        prevent_initial_call="initial_duplicate",
        websocket=True,
    )
    async def show_send(
        _: int, begun: int | None, topic: str | None, *told: Any
    ) -> tuple[Any, ...]:
        (before, scheme, time), newest = told, _send_of(context, topic)
        number, key = before or (None, "")
        is_here = newest is not None and (newest.is_running or newest.number in (begun, number))
        shown = newest if is_here else None
        others = [each for each in _running(context) if each is not shown]
        others += [newest] if newest is not None and not is_here else []
        is_denied = rights.is_denied(context, PRODUCE.name, time)
        now = repr((topic, is_denied, _state_of(shown), [*map(_state_of, others)]))
        if now == key:
            return (no_update,) * 7
        is_running = shown is not None and shown.is_running
        return (
            *send_parts(shown, scheme),
            [*map(_other, others)],
            is_running or is_denied,
            not is_running,
            (None if shown is None else shown.number, now),
        )


def _running(context: PageContext) -> tuple[Send, ...]:
    return context.actions.session.sends.running() if context.watched.bootstrap else ()


def _send_of(context: PageContext, topic: str | None) -> Send | None:
    if not context.watched.bootstrap:
        return None
    return context.actions.session.sends.of((topic or "").strip())


def _state_of(send: Send | None) -> tuple[Any, ...]:
    """The parts of a send that a page shows; equal while it looks the same."""
    if send is None:
        return ()
    told = send.progress
    counts = () if told is None else (told.sent, told.acked, told.failed)
    return send.number, send.is_running, counts


def _other(send: Send) -> html.P:
    """A line about a send that runs to another topic, and leads to it; or about one that ended."""
    if not send.is_running:
        return html.P(last_words(send), className="note")
    acked = 0 if send.progress is None else send.progress.acked
    href = f"/{ViewPath(view='produce', params={'topic': send.topic})}"
    words = f"also sending to {send.topic}: {counted(acked, 'record')} acknowledged"
    return html.P(dcc.Link(words, href=href), className="note")


def spread_table(found: Sequence[Forecast]) -> list[Any]:
    """A line of each client's rule, and a row of each partition."""
    if not found:
        return [html.P(NO_TOPIC, className="note")]
    lines = [html.P(spread_words(item), className="note") for item in found]
    head = html.Tr([html.Th(name, className="number") for name in spread_heads(found)])
    body = [
        html.Tr([html.Td(text, className="number") for text in row]) for row in spread_rows(found)
    ]
    table = html.Table([html.Thead(head), html.Tbody(body)], className="rows")
    return [*lines, html.Div(table, className="rows-frame spread")]


def _register_beforehand(app: Dash, context: PageContext) -> None:
    """Where a record and where many keys would land, and what the topic takes."""

    @app.callback(
        Output(ids.PRODUCE_PREVIEW, MARKUP),
        *(Input(fields.field_id(fields.PRODUCE, name), "value") for name in _ASKED),
        Input(ids.TICK, "data"),
        Input(ids.PRODUCE_FILE_NONE, "hidden"),
        State(ids.PRODUCE_FILE, "filename"),
        websocket=True,
    )
    def show_preview(*told: Any) -> str:
        *values, _, has_no_file, name = told
        found = [fields.field_id(fields.PRODUCE, name) for name in _ASKED]
        given, file = fields.values_of(found, values), "" if has_no_file else name or ""
        leaders = known_leaders(context.snapshot, given["topic"])
        return markup(toned(landing(context.snapshot, leaders, given, file=file)))

    @app.callback(
        Output(ids.PRODUCE_SPREAD, "children"),
        *(Input(fields.field_id(fields.PRODUCE, name), "value") for name in ("topic", "key")),
        Input(ids.PRODUCE_THEN, "value"),
        Input(ids.PRODUCE_LINES, "data"),
        websocket=True,
    )
    def show_spread(topic: str | None, key: str | None, then: str | None, lines: Any) -> Any:
        partitions = known_leaders(context.snapshot, topic or "")
        try:
            told = keys_spread(len(partitions), key or "", then or "", records_of_file(lines))
        except InvalidInputError as error:
            return problem(error)
        return spread_table(told)

    @app.callback(
        Output(ids.PRODUCE_LIMITS, "children"),
        *(Input(fields.field_id(fields.PRODUCE, name), "value") for name in _JUDGED),
        *fields.every_value(fields.PRODUCE),
        websocket=True,
    )
    async def show_limits(*told: Any) -> Any:
        found, values = told[-2:]
        try:
            session = context.actions.session
        except ValueError:
            return ""
        return toned(await limits_cell(session, fields.values_of(found, values)))


def _register_followed(app: Dash, context: PageContext) -> None:
    @app.callback(
        Output(ids.PRODUCE_FOLLOWED, MARKUP),
        Input(ids.PRODUCE_SENT, "data"),
        Input(ids.TICK, "data"),
        websocket=True,
    )
    def follow(sent: dict[str, Any] | None, _: Any) -> str:
        return markup(followed(context.snapshot, sent))


def _register_file(app: Dash) -> None:
    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "fileChosen"),
        Output(ids.PRODUCE_LINES, "data"),
        Output(ids.PRODUCE_FILE_WORDS, "children"),
        Output(ids.PRODUCE_FILE_NONE, "hidden"),
        Input(ids.PRODUCE_FILE, "contents"),
        Input(ids.PRODUCE_FILE_NONE, "n_clicks"),
        State(ids.PRODUCE_FILE, "filename"),
        prevent_initial_call=True,
    )


def records_of_file(chosen: Mapping[str, str] | None) -> tuple[KeyAndValue, ...]:
    """The lines of the file that the browser has read (``name``, and ``contents`` as a data URL);
    none where none is chosen.

    Raises:
        LinesError: a file that cannot be sent.
    """
    if not chosen:
        return ()
    data = b64decode(chosen["contents"].partition(",")[2])
    return records_of(lines_of(data, chosen["name"]))


def send_parts(send: Send | None, scheme: str) -> tuple[Any, Any, Any]:
    """Result, chart of latencies, and what is followed of a send; None: nothing was sent."""
    if send is None:
        return empty("Nothing sent yet"), BLANK, None
    progress = send.progress
    lines: list[Any] = []
    if progress is not None and (progress.sent or send.error is None):
        first, *others = progress_cells(progress, send.asked.job.options.acks)
        head = html.Div(toned(first), className=f"finding edge-{first.tone}", role="status")
        lines = [head, *(html.P(toned(cell)) for cell in others)]
    if send.error is not None:
        lines.append(problem(send.error))
    has_landed = progress is not None and not send.is_running and progress.offsets
    return (
        lines or html.P(f"sending to {send.topic} …", className="note"),
        BLANK if progress is None else latency_histogram(progress.histogram_ms, scheme),
        asdict(Sent.of(send.topic, progress)) if progress is not None and has_landed else None,
    )


def followed(snapshot: OperatorSnapshot, sent: Mapping[str, Any] | None) -> Any:
    """Where the sent messages are now: segment, replicas, groups."""
    if not sent:
        return None
    told = Sent(**sent)
    return [rows_table(told.rows(snapshot), SENT.columns), html.P(told.more, className="note")]


def _form(context: PageContext, given: dict[str, str]) -> html.Div:
    shared: dict[str, Any] = {"given": given, "snapshot": context.snapshot}
    is_open = any(name in given for name in set(PRODUCE.defaults()) - set(FIRST_FIELDS))
    more = fields.form_fields(PRODUCE, fields.PRODUCE, without=FIRST_FIELDS, **shared)
    word = context.watched.word_to_type()
    label = f"Type {word} to send there"
    typed = [text_field(ids.PRODUCE_TYPED, label, word)] if word else []
    return html.Div(
        [
            fields.form_fields(PRODUCE, fields.PRODUCE, only=FIRST_FIELDS, **shared),
            html.Div("", id=ids.PRODUCE_PREVIEW, className="preview", role="status"),
            html.Div("", id=ids.PRODUCE_LIMITS, className="note", role="status"),
            _file(),
            html.Details([html.Summary("partition, rule, headers, count, rate, acks …"), more],
                         open=is_open),
            *typed,
            html.Div(
                [
                    dmc.Button(
                        PRODUCE.submit_label,
                        id=ids.PRODUCE_SEND,
                        className="submit",
                        disabled=rights.is_denied(context, PRODUCE.name),
                    ),
                    dmc.Button("Stop", id=ids.PRODUCE_STOP, variant="light", disabled=True),
                ],
                className="actions",
            ),
            rights.lacking(context, PRODUCE.name),
        ],
        className="form",
    )  # fmt: skip


def _file() -> html.Div:
    """A file in the place of key, value and count; the browser reads it, up to a limit."""
    return html.Div(
        [
            dcc.Store(id=ids.PRODUCE_LINES),
            dcc.Upload(html.Button("upload a file", className="export"), id=ids.PRODUCE_FILE),
            html.Span(FILE_HINT, id=ids.PRODUCE_FILE_WORDS, className="note", role="status"),
            html.Button("no file", id=ids.PRODUCE_FILE_NONE, className="export", hidden=True),
        ],
        className="actions",
    )
