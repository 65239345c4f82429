"""One message on the page: a line that opens to everything about it."""

from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from dash import dcc, html

from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import DECODED_BYTES_MAX, OPENS_DOCUMENT, DecodedRecord
from control.messages.decoding.formats import Decoded, Format
from control.views import format as text
from control.views.messages.details import message_facts, resend_path
from control.views.printable import printable, readable
from control.views.tables.messages import message_row
from control.views.tables.rows import SHAPES, Tone
from dashboard.components.markup import RELOADS
from dashboard.components.parts import attributes

WHOLE_BYTES_MAX: Final = 16 << 10
"""Of a key, value or header on the page; the rest is a link."""


def message_line(record: FetchedRecord, decoded: DecodedRecord, query: str = "") -> html.Details:
    """Place, time, key and value in one line; everything about it inside.

    ``query`` names the formats in use, for its link.
    """
    row = message_row(record, decoded)
    value_class = "message-value tone-warning" if _has_error(decoded.value) else "message-value"
    head = html.Summary(
        [
            html.Span(f"{record.partition} @ {row.offset.text}", className="message-place"),
            html.Span(row.at.text, className="message-time"),
            html.Span(row.record_key.text, className="message-key", title="key"),
            html.Span(row.record_value.text, className=value_class, title="value"),
        ]
    )
    facts = list(message_facts(record))
    facts += [(f"header {printable(name)}", _head(value)) for name, value in record.headers]
    return html.Details(
        [
            head,
            html.Dl([part for name, words in facts for part in (html.Dt(name), html.Dd(words))]),
            *_part(_Part("key", record, query), record.key, decoded.key),
            *_part(_Part("value", record, query), record.value, decoded.value),
            html.P(_links(record, query), className="note message-links"),
        ],
        className="message",
        **attributes({"data-key": row.key}),
    )


def _has_error(decoded: Decoded | None) -> bool:
    return decoded is not None and bool(decoded.error)


class _Part(NamedTuple):
    """A record's key or value, and the formats in use."""

    name: str
    record: FetchedRecord
    query: str

    @property
    def whole_bytes(self) -> int:
        """Its size before the record was cut."""
        return self.record.key_bytes if self.name == "key" else self.record.value_bytes

    def at(self, query: str = "") -> str:
        """Where the server gives it."""
        return f"{_record_at(self.record)}?part={self.name}{query}"


def _part(part: _Part, data: bytes | None, decoded: Decoded | None) -> list[Any]:
    """As it is decoded, and as its bytes are where that is something else."""
    if decoded is None:
        return [html.P(f"{part.name}: null", className="note")]
    title: list[Any] = [f"{part.name}: {printable(decoded.label)} ", _copy_button(part)]
    shown: list[Any] = [html.P(title, className="note message-part")]
    if decoded.error:
        words = f"{SHAPES[Tone.WARNING]} {printable(decoded.error)}; the bytes:"
        shown.append(html.P(words, className="tone-warning"))
    if part.whole_bytes > WHOLE_BYTES_MAX:
        return [*shown, *_large(part, data or b"", decoded)]
    if decoded.is_document:
        pretty = decoded.pretty
        raw = html.Details(
            [html.Summary("raw"), html.Pre(_head(data), className="message-whole")],
            className="message-raw",
        )
        if len(pretty) > WHOLE_BYTES_MAX:
            return [*shown, _folded(part), raw]
        words = printable(pretty, keeps_lines=True)
        return [*shown, html.Pre(words, className="message-whole"), raw]
    words = _head(data) if decoded.format is Format.STRING else decoded.text
    return [*shown, html.Pre(words, className="message-whole")]


def _large(part: _Part, data: bytes, decoded: Decoded) -> list[Any]:
    """Where a page does not carry all of it: documents are laid out where they are opened."""
    shown: list[Any] = []
    if part.whole_bytes <= DECODED_BYTES_MAX:
        shown.append(_folded(part))
    if not decoded.is_document and not OPENS_DOCUMENT.match(data):
        is_text = decoded.format is Format.STRING
        words = _head(data) if is_text else decoded.text[:WHOLE_BYTES_MAX]
        shown.append(html.Pre(words, className="message-whole"))
    links: list[Any] = [
        _file("show all", part.at()),
        " · ",
        _file("download", part.at("&keep=yes")),
    ]
    words = f"{part.name}: {text.bytes_text(part.whole_bytes)}; the page has only its beginning · "
    return [*shown, html.P([words, *links], className="note")]


def _folded(part: _Part) -> html.Details:
    """Loads all of it, laid out, when it is opened."""
    record, size = part.record, text.bytes_text(part.whole_bytes)
    key = f"{record.topic}-{record.partition}@{record.offset}:{part.name}"
    loads = part.at(f"&text=laid-out{part.query}")
    return html.Details(
        [html.Summary(f"all {size}, laid out"), html.Pre("", className="message-whole")],
        className="message-raw",
        **attributes({"data-key": key, "data-loads": loads}),
    )


def _copy_button(part: _Part) -> html.Button:
    copies = part.at(f"&text=copied{part.query}")
    label = {"data-copies": copies, "aria-label": f"Copy the {part.name}"}
    return html.Button("Copy", className="text-button", **attributes(label))


def _record_at(record: FetchedRecord) -> str:
    return f"/record/{record.topic}/{record.partition}/{record.offset}"


def _links(record: FetchedRecord, query: str) -> list[Any]:
    """Link, downloads, and the form that sends it again."""
    at = _record_at(record)
    here = f"/browse/{record.topic}?partition={record.partition}&offset={record.offset}{query}"
    shown: list[Any] = [dcc.Link("link to this message", href=here)]
    if record.value is not None:
        shown += [" · ", _file("download value", f"{at}?part=value&keep=yes")]
    shown += [" · ", _file("download as JSON", f"{at}?part=json&keep=yes{query}")]
    path, reason = resend_path(record)
    if path is None:
        return [*shown, f" · cannot be sent again from here: {reason}"]
    return [*shown, " · ", dcc.Link("send again, with edits", href=f"/{path}")]


def _file(words: str, href: str) -> html.A:
    """A link that the server answers with a file, not a view of the page."""
    return html.A(words, href=href, **attributes({RELOADS: "yes"}))


def formats_query(names: dict[str, str]) -> str:
    """``&kf=string&vf=avro``, without the formats that are detected."""
    chosen = {name: kind for name, kind in names.items() if kind and kind != "auto"}
    return f"&{urlencode(chosen)}" if chosen else ""


def _head(value: bytes | None) -> str:
    """As much of it as a page carries."""
    head = value if value is None else value[:WHOLE_BYTES_MAX]
    return readable(head, keeps_lines=True, is_cut=len(head or b"") == WHOLE_BYTES_MAX)
