"""Browse the messages of a topic: by partition, by offset, by time, or the last ones."""

from collections.abc import Sequence
from typing import Any, Final, TypedDict

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html
from dash.exceptions import PreventUpdate
from fastapi import FastAPI, WebSocket

from control.kafka.following import TopicFollower
from control.kafka.reader import Browsed, Looking, RecordReader, Start, StartKind
from control.kafka.records import FetchedRecord
from control.model.ids import TopicPartition, no_partition_words
from control.operations.errors import InvalidInputError
from control.views import format as text
from control.views.messages import (
    ISOLATION_WORDS,
    matcher,
    message_row,
    moment_text,
    skipped_words,
    summary,
)
from control.views.paths import ViewPath
from control.views.printable import printable, readable
from control.views.rows import SHAPES, Tone
from control.views.times import TimeError, parse_moment
from dashboard import ids
from dashboard.components.forms import choice, problem, text_field
from dashboard.components.markup import still
from dashboard.components.parts import attributes, card, crumbs, empty
from dashboard.context import Screen
from dashboard.desk import DeskError
from dashboard.follow import KEPT_MAX, Readers, Tail

SHOWN_MAX: Final = 100
WHOLE_BYTES_MAX: Final = 16 << 10
"""Of a key, value or header on the page; the rest is a link."""
_HIDDEN: Final = {"display": "none"}
STARTS: Final = {
    "last": "the last records",
    "earliest": "from the start of the log",
    "offset": "from an offset",
    "time": "from a time",
}
FIELDS: Final = (
    ids.BROWSE_PARTITION,
    ids.BROWSE_START,
    ids.BROWSE_AT,
    ids.BROWSE_WANTED,
)
_KINDS: Final = {
    "last": StartKind.LAST,
    "earliest": StartKind.EARLIEST,
    "offset": StartKind.OFFSET,
    "time": StartKind.TIMESTAMP,
}


class StoredRest(TypedDict):
    """Where reading goes on, as the browser keeps it: offsets by partition."""

    places: dict[str, int]
    is_backward: bool


def layout(screen: Screen, path: ViewPath) -> list[Any]:
    """The form, filled in by the path's query, and what was found."""
    topic = path.params["topic"]
    start, at = _start_of(path)
    partition, wanted = path.query.get("partition", ""), path.query.get("q", "")
    follows = path.query.get("follow") == "yes"
    form = html.Div(
        [
            html.Div(
                [
                    text_field(ids.BROWSE_PARTITION, "Partition", "all", partition),
                    choice(ids.BROWSE_START, "Start", STARTS, start),
                    text_field(ids.BROWSE_AT, "At", "offset or time: 10m, 2026-11-21T09:00", at),
                    text_field(ids.BROWSE_WANTED, "Contains", "in key, value, header", wanted),
                ],
                className="form-line",
            ),
            html.Div(
                [
                    dmc.Button("Read", id=ids.BROWSE_READ, className="submit"),
                    dmc.Button(
                        "Stop following" if follows else "Follow",
                        id=ids.BROWSE_FOLLOW,
                        variant="light",
                    ),
                    dcc.Link("Produce here (P)", href=f"/produce/{topic}"),
                    html.P(
                        f"At most {SHOWN_MAX}; reading leaves no trace. {ISOLATION_WORDS}.",
                        className="note",
                    ),
                ],
                className="actions",
            ),
        ],
        className="form operation-form",
    )
    return [
        crumbs([("Topics", "topics"), (topic, f"topics/{topic}"), ("messages", "")]),
        dcc.Store(id=ids.BROWSE_TOPIC, data=topic),
        dcc.Store(id=ids.BROWSE_FOLLOWS, data=follows),
        dcc.Store(id=ids.BROWSE_REST),
        card("Which messages", form),
        dcc.Loading(html.Div(id=ids.BROWSE_RESULT), type="dot", delay_show=300),
        dmc.Button("Read on", id=ids.BROWSE_MORE, variant="light", style=_HIDDEN),
    ]


def register(app: Dash, screen: Screen) -> None:
    """Read on opening, and whenever it is asked for; follow what arrives from now on."""
    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "toggleFollow"),
        Output(ids.BROWSE_FOLLOWS, "data"),
        Input(ids.BROWSE_FOLLOW, "n_clicks"),
        Input(ids.BROWSE_READ, "n_clicks"),
        State(ids.BROWSE_FOLLOWS, "data"),
        prevent_initial_call=True,
    )
    in_browser(
        ClientsideFunction("partiscope", "follow"),
        Output(ids.BROWSE_FOLLOW, "children"),
        Input(ids.BROWSE_FOLLOWS, "data"),
        Input(ids.BROWSE_PARTITION, "value"),
        Input(ids.BROWSE_WANTED, "value"),
        State(ids.BROWSE_TOPIC, "data"),
    )

    @app.callback(
        Output(ids.BROWSE_RESULT, "children"),
        Output(ids.BROWSE_REST, "data"),
        Output(ids.BROWSE_MORE, "style"),
        Input(ids.BROWSE_READ, "n_clicks"),
        Input(ids.BROWSE_MORE, "n_clicks"),
        Input(ids.BROWSE_TOPIC, "data"),
        State(ids.BROWSE_REST, "data"),
        State(ids.BROWSE_FOLLOWS, "data"),
        *(State(field, "value") for field in FIELDS),
        websocket=True,
    )
    async def read(
        clicks: int | None,
        _: int | None,
        topic: str,
        rest: StoredRest | None,
        follows: bool,
        *typed: str | None,
    ) -> Any:
        is_more = ctx.triggered_id == ids.BROWSE_MORE
        if follows and not clicks and not is_more:
            raise PreventUpdate
        values = [value or "" for value in typed]
        try:
            browsed = await found(screen, topic, values, rest if is_more else None)
        except DeskError as error:
            return problem(error), None, _HIDDEN
        kept = stored_rest(browsed)
        shown = result(browsed, is_search=bool(values[-1].strip()), is_last=browsed.is_backward)
        return shown, kept, _HIDDEN if kept is None else {}


def register_follow(server: FastAPI, screen: Screen) -> None:
    """The WebSocket of tabs that follow a topic."""
    readers = Readers()

    @server.websocket("/follow/{topic}")
    async def follow(socket: WebSocket, topic: str) -> None:
        async def begin(partition: str, looking: Looking) -> TopicFollower:
            return await begun(screen, topic, partition, looking)

        await readers.serve(socket, begin, followed)


async def begun(screen: Screen, topic: str, partition: str, looking: Looking) -> TopicFollower:
    """Follows from now on.

    Raises:
        InvalidInputError: the topic has no such partition.
        KafkaPortError: it cannot be begun.
    """
    async with screen.desk.reader() as reader:
        keys = await asked_partitions(reader, topic, partition)
    follower = screen.desk.follower(topic, keys[0].partition if partition else None, looking)
    try:
        await follower.begin(Start(kind=StartKind.LATEST))
    except BaseException:
        await follower.close()
        raise
    return follower


def followed(tail: Tail) -> Any:
    """Records that arrived, the newest first."""
    arrived = text.plural_text(tail.seen, "record")
    told = [*skipped_words(tail.skipped), *(printable(notice.text) for notice in tail.notices)]
    if not tail.newest:
        return html.Div(
            [empty(f"Following: {arrived} arrived, none that is looked for"), _told(told)]
        )
    most = f", the newest {KEPT_MAX} are shown" if tail.found > KEPT_MAX else ""
    words = f"Following, newest first: {tail.found:,} of {arrived} that arrived{most}"
    return card(words, _told(told), messages(list(reversed(tail.newest))))


async def asked_partitions(
    reader: RecordReader, topic: str, partition: str
) -> tuple[TopicPartition, ...]:
    """All of a topic, or the one that is asked for.

    Raises:
        InvalidInputError: it has no such partition.
    """
    keys = await reader.partitions(topic)
    chosen = tuple(key for key in keys if not partition or str(key.partition) == partition)
    if not chosen:
        raise InvalidInputError({"partition": no_partition_words(topic, partition, len(keys))})
    return chosen


async def found(
    screen: Screen, topic: str, typed: list[str], rest: StoredRest | None = None
) -> Browsed:
    """The records that the fields ask for, or those behind ``rest``.

    Raises:
        InvalidInputError: a field that cannot be.
    """
    partition, kind, at, wanted = (value.strip() for value in typed)
    start = start_of(kind, at, now_ms=screen.now_ms())
    looking = Looking(matches=matcher(wanted))
    async with screen.desk.reader() as reader:
        if rest is not None:
            places = {TopicPartition(topic, int(n)): place for n, place in rest["places"].items()}
            return await reader.go_on(
                places, is_backward=rest["is_backward"], limit=SHOWN_MAX, looking=looking
            )
        keys = await asked_partitions(reader, topic, partition)
        return await reader.browse(keys, start, limit=SHOWN_MAX, looking=looking)


def stored_rest(browsed: Browsed) -> StoredRest | None:
    """For the button that reads on; None where all was read."""
    if not browsed.rest:
        return None
    places = {str(key.partition): place for key, place in browsed.rest.items()}
    return StoredRest(places=places, is_backward=browsed.is_backward)


def start_of(kind: str, at: str, *, now_ms: int) -> Start:
    """Where to begin.

    Raises:
        InvalidInputError: an offset or time that cannot be read.
    """
    if kind == "offset":
        digits = at.replace(",", "")
        if not digits.isdecimal():
            raise InvalidInputError({"at": f"{at!r} is no offset: a whole number is needed"})
        return Start(kind=StartKind.OFFSET, value=int(digits))
    if kind == "time":
        try:
            return Start(kind=StartKind.TIMESTAMP, value=parse_moment(at, now_ms=now_ms))
        except TimeError as error:
            raise InvalidInputError({"at": str(error)}) from error
    return Start(kind=_KINDS.get(kind, StartKind.LAST), value=SHOWN_MAX)


def result(browsed: Browsed, *, is_search: bool, is_last: bool) -> Any:
    """One line per record that opens to the whole of it, and what could not be read."""
    words, told = summary(browsed, is_search=is_search)
    if not browsed.records:
        if browsed.rest:
            return html.Div([empty(words, "Read on below"), _told(told)])
        what = f"No record there ({words})" if browsed.read_count else "No record there"
        step = "Start earlier, or leave the other fields empty"
        return html.Div([empty(what, step), _told(told)])
    records = list(reversed(browsed.records)) if is_last else list(browsed.records)
    count = text.plural_text(len(records), "record")
    return card(f"{count} shown; {words}", _told(told), messages(records))


def _told(lines: Sequence[str]) -> html.Div | None:
    """Partitions and offsets that could not be read, a line each."""
    if not lines:
        return None
    shape = SHAPES[Tone.WARNING]
    return html.Div(
        [html.P(f"{shape} {line}", className="tone-warning") for line in lines],
        className="messages-told",
    )


def messages(records: Sequence[FetchedRecord]) -> html.Div:
    """One line each; a hundred of them are thousands of elements, which are sent as markup."""
    return still(html.Div([message_line(record) for record in records], className="messages"))


def message_line(record: FetchedRecord) -> html.Details:
    """Place, time, key and value in one line; everything about it inside."""
    row = message_row(record)
    head = html.Summary(
        [
            html.Span(f"{record.partition} @ {row.offset.text}", className="message-place"),
            html.Span(row.at.text, className="message-time"),
            html.Span(row.record_key.text, className="message-key", title="key"),
            html.Span(row.record_value.text, className="message-value", title="value"),
        ]
    )
    link = f"/browse/{record.topic}?partition={record.partition}&offset={record.offset}"
    return html.Details(
        [
            head,
            html.Dl([part for fact in facts(record) for part in _term(*fact)]),
            html.Pre(_head(record.value), className="message-whole"),
            *_whole_links(record),
            dcc.Link("link to this message", href=link),
        ],
        className="message",
        **attributes({"data-key": row.key}),
    )


def facts(record: FetchedRecord) -> list[tuple[str, str]]:
    """Facts about a record and its batch."""
    batch = record.batch
    crc = "valid" if record.crc_is_valid else f"{SHAPES[Tone.CRITICAL]} wrong"
    headers = [(f"header {printable(name)}", _head(value)) for name, value in record.headers]
    transaction = [("transaction", record.transaction.value)] if record.transaction else []
    return [
        ("offset", text.count_text(record.offset)),
        ("time", moment_text(record.timestamp_ms)),
        ("key", _head(record.key)),
        ("size", f"{text.bytes_text(record.size_bytes)} of key and value"),
        *transaction,
        *headers,
        (
            "batch",
            f"from offset {batch.base_offset:,}, {record.codec_name}, "
            f"format {batch.magic}, CRC {crc}",
        ),
    ]


def _head(value: bytes | None) -> str:
    """As much of it as a page carries."""
    head = value if value is None else value[:WHOLE_BYTES_MAX]
    return readable(head, keeps_lines=True, is_cut=len(head or b"") == WHOLE_BYTES_MAX)


def _whole_links(record: FetchedRecord) -> list[Any]:
    """To what is shown only in part."""
    parts = [("key", record.key_bytes), ("value", record.value_bytes)]
    at = f"/record/{record.topic}/{record.partition}/{record.offset}?part="
    links: list[Any] = []
    for part, size in parts:
        if size > WHOLE_BYTES_MAX:
            words = f"{part}: the first {WHOLE_BYTES_MAX >> 10} KiB of {text.bytes_text(size)} · "
            links.append(
                html.P(
                    [
                        words,
                        html.A("show all", href=f"{at}{part}"),
                        " · ",
                        html.A("download", href=f"{at}{part}&keep=yes"),
                    ],
                    className="note",
                )
            )
    return links


def _term(name: str, value: str) -> tuple[html.Dt, html.Dd]:
    return html.Dt(name), html.Dd(value)


def _start_of(path: ViewPath) -> tuple[str, str]:
    """Kind and place that the path's query names."""
    if "offset" in path.query:
        return "offset", path.query["offset"]
    if "since" in path.query:
        return "time", path.query["since"]
    return "last", ""
