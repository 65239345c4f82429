"""Browse the messages of a topic: by partition, by offset, by time, or the last ones."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html
from fastapi import FastAPI, WebSocket

from control.kafka.records.newest import share_words
from control.kafka.records.record import FetchedRecord
from control.kafka.records.scan_progress import Scan
from control.messages.decoding.formats import FORMATS, Formats
from control.messages.decoding.remembered import RememberedFormats
from control.messages.message_filters import FILTER_HELP
from control.messages.message_search import SCAN_RECORDS
from control.messages.result_pages import ResultPages
from control.views import format as text
from control.views.paths import ViewPath
from control.views.printable import printable
from control.views.tables.messages import (
    ISOLATION_WORDS,
    progress_words,
    shown_words,
    skipped_words,
    summary,
)
from control.views.tables.rows import SHAPES, Tone
from dashboard import ids
from dashboard.components.forms import choice, text_field
from dashboard.components.markup import still
from dashboard.components.message import message_line
from dashboard.components.parts import attributes, card, crumbs, empty
from dashboard.context import PageContext
from dashboard.live.message_reading import SHOWN_MAX, Drawing, Readers, Seen, Tail
from dashboard.server import message_files

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
    ids.BROWSE_UNTIL,
    ids.BROWSE_WANTED,
    ids.BROWSE_REGEX,
    ids.BROWSE_KEY,
    ids.BROWSE_HEADER,
    ids.BROWSE_PATH,
    ids.BROWSE_CEL,
    ids.BROWSE_LIMIT,
    ids.BROWSE_KEY_FORMAT,
    ids.BROWSE_VALUE_FORMAT,
)
"""In the order in which ``assets/modules/follow.js`` takes them."""
_FURTHER: Final = {
    ids.BROWSE_REGEX: ("regex", "Regular expression", FILTER_HELP["regex"]),
    ids.BROWSE_KEY: ("key", "Key", FILTER_HELP["key"]),
    ids.BROWSE_HEADER: ("header", "Header", FILTER_HELP["header"]),
    ids.BROWSE_PATH: ("path", "JSON path", FILTER_HELP["json_path"]),
    ids.BROWSE_CEL: ("cel", "Expression (CEL)", FILTER_HELP["cel"]),
    ids.BROWSE_LIMIT: ("limit", "Scan at most", f"records; without a number {SCAN_RECORDS:,}"),
}
_FORMATS: Final = {each.value: each.value for each in FORMATS}
_PROGRESS_PARTS: Final = 1_000
_HEADS: Final = html.Div(
    [
        html.Span(words, className=f"head-{name}")
        for name, words in {
            "place": "partition @ offset", "time": "time", "key": "key", "value": "value"
        }.items()
    ],
    className="messages-head",
)  # fmt: skip


def layout(context: PageContext, path: ViewPath) -> list[Any]:
    """The form, filled in by the path's query, and what was found."""
    topic = path.params["topic"]
    follows = path.query.get("follow") == "yes"
    return [
        crumbs([("Topics", "topics"), (topic, f"topics/{topic}"), ("messages", "")]),
        dcc.Store(id=ids.BROWSE_TOPIC, data=topic),
        dcc.Store(id=ids.BROWSE_FOLLOWS, data=follows),
        card("Which messages", _form(path, topic, _formats(context, path), follows=follows)),
        html.Div(id=ids.BROWSE_RESULT),
        html.Div(
            [
                dmc.Button("Previous", id=ids.BROWSE_BACK, variant="light", style=_HIDDEN),
                dmc.Button("Next", id=ids.BROWSE_MORE, variant="light", style=_HIDDEN),
            ],
            className="actions",
        ),
    ]


def _formats(context: PageContext, path: ViewPath) -> Formats:
    """Those that the path names, else those chosen last for the topic."""
    names = {"key": path.query.get("kf", ""), "value": path.query.get("vf", "")}
    remembered = RememberedFormats()
    try:
        return remembered.chosen(context.actions.cluster_id, path.params["topic"], **names)
    except ValueError:
        return Formats()


def _form(path: ViewPath, topic: str, formats: Formats, *, follows: bool) -> html.Div:
    query = path.query
    start, at = _start_of(path)
    at_hint, until_hint = "offset, 10m, 18:05", "5m, 18:05"
    further = [
        text_field(
            field,
            label,
            "",
            query.get(name, ""),
            description=hint,
            inputWrapperOrder=["label", "input", "description"],
        )
        for field, (name, label, hint) in _FURTHER.items()
    ]
    is_open = any(query.get(name) for name, _, _ in _FURTHER.values())
    first = [
        text_field(
            ids.BROWSE_PARTITION, "Partitions", "all; 3 or 0-3,7", query.get("partition", "")
        ),
        choice(ids.BROWSE_START, "Start", STARTS, start),
        text_field(ids.BROWSE_AT, "At", at_hint, at),
        text_field(ids.BROWSE_UNTIL, "Until", until_hint, query.get("until", "")),
        text_field(
            ids.BROWSE_WANTED,
            "Contains",
            "in key, value, header",
            query.get("q", ""),
            className="filter-field",
        ),
        choice(ids.BROWSE_KEY_FORMAT, "Key format", _FORMATS, formats.key),
        choice(ids.BROWSE_VALUE_FORMAT, "Value format", _FORMATS, formats.value),
    ]
    words = "Stop following" if follows else "Follow"
    note = f"At most {SHOWN_MAX} at a time; reading leaves no trace. {ISOLATION_WORDS}."
    actions = [
        dmc.Button("Read", id=ids.BROWSE_READ, className="submit"),
        dmc.Button("Stop", id=ids.BROWSE_STOP, variant="light", style=_HIDDEN),
        dmc.Button(words, id=ids.BROWSE_FOLLOW, variant="light"),
        dcc.Link("Produce here (P)", href=f"/produce/{topic}"),
        html.P(note, className="note"),
    ]
    return html.Div(
        [
            html.Div(first, className="form-line"),
            html.Details(
                [html.Summary("More filters"), html.Div(further, className="form-line")],
                open=is_open,
                className="more-filters",
            ),
            html.Div(actions, className="actions"),
        ],
        className="form operation-form",
    )


def register(app: Dash, _: PageContext) -> None:
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
        Input(ids.BROWSE_READ, "n_clicks"),
        Input(ids.BROWSE_MORE, "n_clicks"),
        Input(ids.BROWSE_BACK, "n_clicks"),
        Input(ids.BROWSE_STOP, "n_clicks"),
        *(Input(field, "value") for field in FIELDS),
        State(ids.BROWSE_TOPIC, "data"),
    )


def register_follow(server: FastAPI, context: PageContext) -> None:
    """The WebSocket of tabs that read or follow a topic."""
    readers = Readers(context, Drawing(followed=followed, scanning=scanning, found=result))

    @server.websocket("/follow/{topic}")
    async def follow(socket: WebSocket, topic: str) -> None:
        await readers.serve(socket, topic)


def followed(tail: Tail, seen: Seen) -> Any:
    """Records that arrived, the newest first."""
    arrived = text.plural_text(tail.seen, "record")
    told = [*skipped_words(tail.skipped), *(printable(notice.text) for notice in tail.notices)]
    if not tail.newest:
        return html.Div([empty(f"Following: {arrived} arrived, no match"), _told(told)])
    kept = len(tail.newest)
    most = f", the newest {kept} are shown" if tail.found > kept else ""
    share = share_words(tail.newest.share())
    words = f"Following, newest first: {tail.found:,} of {arrived} that arrived{most}{share}"
    return card(words, _told(told), messages(list(reversed(tail.newest)), seen))


def scanning(scan: Scan, seen: Seen) -> Any:
    """How far a scan is, and what it has found."""
    progress = scan.progress
    words = f"{progress.found_count:,} match so far; {progress_words(progress)}"
    bar = html.Progress(
        value=str(int(progress.part * _PROGRESS_PARTS)),
        max=str(_PROGRESS_PARTS),
        **attributes({"aria-label": "scanned"}),
    )
    return card(words, bar, messages(list(scan.records), seen))


def result(pages: ResultPages, seen: Seen) -> Any:
    """One line per record that opens to the whole of it, and what could not be read."""
    browsed = pages.shown
    assert browsed is not None
    words, told = summary(browsed, is_search=seen.search.is_search)
    if not browsed.records:
        if browsed.rest:
            step = "Go on with Next below, or scan more at a time"
            return html.Div([empty(words, step), _told(told)])
        what = f"No record there ({words})" if browsed.read_count else "No record there"
        step = "Start earlier, or leave the other fields empty"
        return html.Div([empty(what, step), _told(told)])
    records = list(reversed(browsed.records)) if browsed.is_backward else list(browsed.records)
    words = f"{shown_words(pages)}; {words}"
    return card(words, _told(told), _files(seen), messages(records, seen))


def _files(seen: Seen) -> html.P:
    """Links to all that the search finds, as files."""
    query = urlencode({name: value for name, value in seen.search.query.items() if value})
    at = f"/messages/{quote(seen.search.topic, safe='')}"
    links = [
        html.A(words, href=f"{at}.{kind}?{query}") for kind, words in message_files.FILES.items()
    ]
    most = f"at most {message_files.RECORDS_MAX:,} messages"
    part = f"the name of a file that lacks some ends in {message_files.PART}"
    return html.P(["Download: ", links[0], " · ", links[1], f" ({most}; {part})"], className="note")


def _told(lines: Sequence[str]) -> html.Div | None:
    """Partitions and offsets that could not be read, a line each."""
    if not lines:
        return None
    shape = SHAPES[Tone.WARNING]
    return html.Div(
        [html.P(f"{shape} {line}", className="tone-warning") for line in lines],
        className="messages-told",
    )


def messages(records: Sequence[FetchedRecord], seen: Seen) -> html.Div:
    """One line each below their heads; a hundred of them are thousands of elements, which are sent
    as markup."""
    decoder = seen.decoder
    lines = [message_line(each, decoder.record(each), seen.formats) for each in records]
    return still(html.Div([_HEADS, *lines], className="messages"))


def _start_of(path: ViewPath) -> tuple[str, str]:
    """Kind and place that the path's query names."""
    if "offset" in path.query:
        return "offset", path.query["offset"]
    since = path.query.get("since", "")
    if since == "earliest":
        return "earliest", ""
    return ("time", since) if since else ("last", "")
