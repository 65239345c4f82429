"""Browse the messages of a topic: by partition, by offset, by time, or the last ones."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html
from dash.exceptions import PreventUpdate

from control.kafka.reader import FetchedRecord, RecordReader, Start, StartKind
from control.model.ids import TopicPartition, no_partition_words
from control.operations.errors import InvalidInputError
from control.views import format as text
from control.views.messages import is_match, message_row, moment_text, readable
from control.views.paths import ViewPath
from control.views.rows import SHAPES, Tone
from control.views.times import TimeError, parse_moment
from dashboard import ids
from dashboard.components.forms import choice, problem, text_field
from dashboard.components.markup import still
from dashboard.components.parts import attributes, card, crumbs, empty
from dashboard.context import Screen
from dashboard.desk import DeskError
from dashboard.tail import KEPT_MAX, Positions, Tail, Tails

FOLLOW_EACH_MS: Final = 1_000
SHOWN_MAX: Final = 100
READ_MAX: Final = 20_000
"""Records looked at for those that hold a text."""
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
                    html.P(f"At most {SHOWN_MAX}; reading leaves no trace.", className="note"),
                ],
                className="actions",
            ),
        ],
        className="form operation-form",
    )
    return [
        crumbs([("Topics", "topics"), (topic, f"topics/{topic}"), ("messages", "")]),
        dcc.Store(id=ids.BROWSE_TOPIC, data=topic),
        dcc.Store(id=ids.BROWSE_TAIL, data=str(uuid4()) if follows else None),
        dcc.Interval(id=ids.BROWSE_EACH, interval=FOLLOW_EACH_MS, disabled=not follows),
        card("Which messages", form),
        dcc.Loading(html.Div(id=ids.BROWSE_RESULT), type="dot", delay_show=300),
    ]


def register(app: Dash, screen: Screen) -> None:
    """Read on opening, and whenever it is asked for; follow what arrives from now on."""
    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "followTopic"),
        Output(ids.BROWSE_EACH, "disabled"),
        Output(ids.BROWSE_FOLLOW, "children"),
        Output(ids.BROWSE_TAIL, "data"),
        Input(ids.BROWSE_FOLLOW, "n_clicks"),
        Input(ids.BROWSE_READ, "n_clicks"),
        State(ids.BROWSE_EACH, "disabled"),
        prevent_initial_call=True,
    )
    _register_follow(app, screen)

    @app.callback(
        Output(ids.BROWSE_RESULT, "children"),
        Input(ids.BROWSE_READ, "n_clicks"),
        Input(ids.BROWSE_TOPIC, "data"),
        State(ids.BROWSE_TAIL, "data"),
        *(State(field, "value") for field in FIELDS),
        websocket=True,
    )
    async def read(clicks: int | None, topic: str, tail: str | None, *typed: str | None) -> Any:
        if tail and not clicks:
            raise PreventUpdate
        try:
            return result(await found(screen, topic, [value or "" for value in typed]))
        except DeskError as error:
            return problem(error)


def _register_follow(app: Dash, screen: Screen) -> None:
    tails = Tails()

    @app.callback(
        Output(ids.BROWSE_RESULT, "children", allow_duplicate=True),
        Input(ids.BROWSE_EACH, "n_intervals"),
        State(ids.BROWSE_TAIL, "data"),
        State(ids.BROWSE_TOPIC, "data"),
        State(ids.BROWSE_PARTITION, "value"),
        State(ids.BROWSE_WANTED, "value"),
        prevent_initial_call=True,
        websocket=True,
    )
    async def follow(
        _: int | None, name: str | None, topic: str, partition: str | None, wanted: str | None
    ) -> Any:
        if not name:
            raise PreventUpdate

        async def begin(reader: RecordReader) -> Positions:
            keys = await asked_partitions(reader, topic, (partition or "").strip())
            return await reader.positions(keys, Start(kind=StartKind.LATEST))

        try:
            tail = await tails.of(name, screen.desk.reader, begin, (wanted or "").strip())
            is_new = await tail.take()
        except DeskError as error:
            return problem(error)
        if not is_new and tail.is_told:
            raise PreventUpdate
        tail.is_told = True
        return followed(tail)


def followed(tail: Tail) -> Any:
    """What arrived, the newest first."""
    arrived = text.plural_text(tail.seen, "record")
    if not tail.newest:
        return empty(f"Following: {arrived} arrived, none that is looked for")
    most = f", the newest {KEPT_MAX} are shown" if tail.found > KEPT_MAX else ""
    words = f"Following, newest first: {tail.found:,} of {arrived} that arrived{most}"
    return card(words, messages(list(reversed(tail.newest))))


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


async def found(screen: Screen, topic: str, typed: list[str]) -> list[FetchedRecord]:
    """The records that the fields ask for, oldest first; the last ones newest first.

    Raises:
        InvalidInputError: a field that cannot be.
    """
    partition, kind, at, wanted = (value.strip() for value in typed)
    start = start_of(kind, at, now_ms=screen.now_ms())
    async with screen.desk.reader() as reader:
        keys = await asked_partitions(reader, topic, partition)
        records = await reader.browse(keys, start, limit=READ_MAX if wanted else _most(kind, keys))
    if wanted:
        records = [record for record in records if is_match(record, wanted)]
    return records[: -SHOWN_MAX - 1 : -1] if kind == "last" else records[:SHOWN_MAX]


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


def result(records: list[FetchedRecord]) -> Any:
    """One line per record that opens to the whole of it."""
    if not records:
        return empty("No record there", "Start earlier, or leave the other fields empty")
    words = text.plural_text(len(records), "record")
    return card(words, messages(records))


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
            html.Pre(readable(record.value), className="message-whole"),
            dcc.Link("link to this message", href=link),
        ],
        className="message",
        **attributes({"data-key": row.key}),
    )


def facts(record: FetchedRecord) -> list[tuple[str, str]]:
    """What can be said of a record and its batch."""
    batch = record.batch
    crc = "valid" if record.crc_is_valid else f"{SHAPES[Tone.CRITICAL]} wrong"
    headers = [(f"header {name}", readable(value)) for name, value in record.headers]
    return [
        ("offset", text.count_text(record.offset)),
        ("time", moment_text(record.timestamp_ms)),
        ("key", readable(record.key)),
        ("size", f"{text.bytes_text(record.size_bytes)} of key and value"),
        *headers,
        ("batch", f"from offset {batch.base_offset:,}, {record.codec_name}, CRC {crc}"),
    ]


def _term(name: str, value: str) -> tuple[html.Dt, html.Dd]:
    return html.Dt(name), html.Dd(value)


def _start_of(path: ViewPath) -> tuple[str, str]:
    """Kind and place that the path's query names."""
    if "offset" in path.query:
        return "offset", path.query["offset"]
    if "since" in path.query:
        return "time", path.query["since"]
    return "last", ""


def _most(kind: str, keys: tuple[TopicPartition, ...]) -> int:
    """All of what ``LAST`` gives in every partition: the newest are picked by time after."""
    return SHOWN_MAX * len(keys) if kind == "last" else SHOWN_MAX
