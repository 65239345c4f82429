"""Browse a topic's messages: from an offset, a time or the end; Enter shows one in full.

Or follow them as they come: the newest on top, painted once a second however many there are.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError
from control.kafka.records.following import Notice
from control.kafka.records.newest import NewestRecords, share_words
from control.kafka.records.reader import Browsed
from control.kafka.records.record import FetchedRecord, Gap, Passed
from control.kafka.records.scan_progress import Scan
from control.messages.decoding.decoder import DecodedRecord, Decoder
from control.messages.decoding.formats import Decoded, Format
from control.messages.message_search import LATEST, SCAN_RECORDS, MessageSearch
from control.messages.result_pages import ResultPages
from control.messages.starts import START_HELP
from control.messages.whole_record import whole_record
from control.operations.errors import OperationError
from control.views.format import bytes_text, plural_text
from control.views.messages.details import copied_text, message_facts, resend_path
from control.views.next_links import explained
from control.views.paths import ViewPath
from control.views.printable import printable, readable
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.messages import (
    ISOLATION_WORDS,
    MESSAGES,
    gap_words,
    message_row,
    progress_words,
    shown_words,
    summary,
)
from control.views.tables.query import Page
from control.views.tables.rows import Row
from tui.messages import PathChosen
from tui.screens.base import ViewScreen
from tui.terminal_session import TerminalSession
from tui.widgets.filter_line import FilterLine
from tui.widgets.row_table import RowTable

SHOWN_MAX: Final = 200
FIELD_LINES: Final = (
    ("from", "until", "partition", "contains"),
    ("regex", "key", "header", "limit"),
    ("json path", "cel"),
    ("key format", "value format"),
)
"""The first line is always there; ``x`` shows the others."""
_QUERY_OF: Final = {
    "until": "until",
    "partition": "partition",
    "contains": "q",
    "regex": "regex",
    "key": "key",
    "header": "header",
    "limit": "limit",
    "json path": "path",
    "cel": "cel",
    "key format": "kf",
    "value format": "vf",
}
TOLD_MAX: Final = 3
WHOLE_CHARACTERS_MAX: Final = 20_000
"""Of a key or value that is shown in full."""
PAINT_EVERY_S: Final = 0.5
FOLLOWING: Final = "yes"


class BrowseScreen(ViewScreen):
    """Where from and which, then the messages."""

    AUTO_FOCUS: ClassVar[str | None] = "RowTable"
    """From the first moment: a key that comes with the view is no text of its filter."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "go_to('contains')", "filter", show=True),
        Binding("f", "go_to('from')", "from", show=True),
        Binding("r", "scan('again')", "read again", show=True),
        Binding("m", "scan('more')", "next", show=True),
        Binding("b", "scan('back')", "previous", show=True),
        Binding("F", "follow", "follow", show=True),
        Binding("x", "go_to('more')", "all filters", show=True),
        Binding("S", "scan('stop')", "stop", show=False),
    ]

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._wanted = MessageSearch.of_query(path.params["topic"], path.query)
        self._scan: Scan | None = None
        self._is_following = path.query.get("follow") == FOLLOWING
        self._records: dict[str, FetchedRecord] = {}
        self._decoder = Decoder(path.params["topic"])
        self._came = NewestRecords(count_max=SHOWN_MAX)
        """What matches of what came since it follows, oldest first."""
        self._read_count = self._painted_count = 0
        self._pages = ResultPages()

    def compose_body(self) -> ComposeResult:
        """Where from, which partition, containing what; then the table."""
        yield SearchFields(self._wanted)
        yield Static(id="browse-title", classes="title")
        yield Static(ISOLATION_WORDS, classes="hint", id="browse-isolation")
        yield _Told(id="browse-told")
        yield RowTable(id="table", opens=False)

    def on_mount(self) -> None:
        """Read at once."""
        self.set_interval(PAINT_EVERY_S, self._paint)
        self._begin()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Messages come from the cluster itself."""

    def on_input_submitted(self) -> None:
        """Enter in any field."""
        self.query_one(RowTable).focus()
        self._begin()

    def on_filter_line_left(self) -> None:
        """Back to the table; a search begins at Enter alone."""
        self.query_one(RowTable).focus()

    def on_row_table_row_chosen(self, message: RowTable.RowChosen) -> None:
        """One in full."""

        def go_on_to(path: ViewPath | None) -> None:
            if path is not None:
                self.post_message(PathChosen(str(path)))

        record = self._records.get(message.row.key)
        if record is not None:
            settings = self.session.operations.settings
            self.app.push_screen(MessageScreen(record, self._decoder, settings), go_on_to)

    def action_go_to(self, name: str) -> None:
        """To a field; ``more`` shows further ones, or hides them."""
        fields = self.query_one(SearchFields)
        if name != "more" or fields.toggle():
            self.query_one(f"#{_id_of('regex' if name == 'more' else name)}").focus()

    def action_scan(self, what: str) -> None:
        """``again``: read once what is there now. ``more``, ``back``: the next or previous page,
        read if it was not yet. ``stop``: end the scan; what it found stays, and it can go on."""
        pages = self._pages
        if what == "again":
            self._is_following = False
            self._begin()
        elif what == "stop":
            if self._scan is not None:
                self._scan.stop()
        elif what == "back" and (self._is_following or not pages.has_previous):
            self.notify("there is no page before this one: `f` starts elsewhere")
        elif what == "more" and (self._is_following or not pages.has_next):
            self.notify("there is nothing more to read: `r` reads again, `f` starts elsewhere")
        elif pages.previous() if what == "back" else pages.next():
            self.run_worker(self._show_page, exclusive=True, group="browse")
        else:
            self.put("#browse-title", _title(self._wanted.topic, "reading on …"))
            work = partial(self._work, self._wanted, pages.newest)
            self.run_worker(work, exclusive=True, group="browse")

    def action_follow(self) -> None:
        """Follow what comes, or no longer."""
        self._is_following = not self._is_following
        self._begin()

    def _begin(self) -> None:
        """Read or follow, with what the fields say."""
        self._wanted = self.query_one(SearchFields).search()
        query = {**self._wanted.query, "follow": FOLLOWING if self._is_following else ""}
        self.path = ViewPath(view="browse", params=self.path.params, query=query)
        self.put("#browse-title", _title(self._wanted.topic, "reading …"))
        self.query_one(_Told).forget()
        self.run_worker(partial(self._work, self._wanted), exclusive=True, group="browse")

    async def _work(self, wanted: MessageSearch, before: Browsed | None = None) -> None:
        """Runs a step; says in the title if it fails."""
        try:
            settings = self.session.operations.records(wanted.topic)
            self._decoder = wanted.chosen_decoder(settings)
            if self._is_following:
                await self._follow(wanted)
            else:
                await self._read(wanted, before)
        except ValueError as error:
            self.put("#browse-title", _title(self._wanted.topic, f"▲ {error}"))
        except (KafkaPortError, OperationError) as error:
            self.put("#browse-title", _title(self._wanted.topic, f"✖ {explained(error)}"))

    async def _read(self, wanted: MessageSearch, before: Browsed | None) -> None:
        settings = self.session.operations.settings
        now_ms = self.session.now_ms
        self._scan = scan = Scan() if before is None else Scan(before.progress)
        try:
            if before is None:
                found = await wanted.read(settings, now_ms=now_ms, limit=SHOWN_MAX, scan=scan)
            else:
                found = await wanted.go_on(
                    settings, before, now_ms=now_ms, limit=SHOWN_MAX, scan=scan
                )
        finally:
            self._scan = None
        if before is None:
            self._pages.clear()
        self._pages.add(found)
        await self._show_page()

    async def _show_page(self) -> None:
        pages, found = self._pages, self._pages.shown
        assert found is not None
        words, told = summary(found, is_search=self._wanted.is_search)
        if not found.records and not pages.has_next:
            words = f"{words}; try {START_HELP}" if found.read_count else f"none; try {START_HELP}"
        elif pages.has_next or pages.has_previous:
            ways = ("m next", pages.has_next), ("b previous", pages.has_previous)
            keys = ", ".join(way for way, is_open in ways if is_open)
            shown = f"{shown_words(pages)}; " if found.records else ""
            words = f"{shown}{words}   {keys}"
        self.query_one(_Told).tell(*told)
        records = found.records
        await self._fill([*reversed(records)] if found.is_backward else records, words)

    async def _follow(self, wanted: MessageSearch) -> None:
        self._came.clear()
        self._read_count, self._painted_count = 0, -1
        settings = self.session.operations.settings
        async for item in wanted.follow(settings, now_ms=self.session.now_ms):
            if isinstance(item, Notice):
                self.query_one(_Told).tell(printable(item.text))
            elif isinstance(item, Gap):
                self.query_one(_Told).tell(gap_words(item))
            else:
                self._read_count += item.record_count if isinstance(item, Passed) else 1
                if isinstance(item, FetchedRecord):
                    self._came.append(item)

    async def _paint(self) -> None:
        """Paints the records since the last time, or the progress of the scan."""
        if self._scan is not None and self._wanted.is_search:
            progress = self._scan.progress
            words = f"{progress.found_count:,} match so far; {progress_words(progress)}   S stops"
            self.put("#browse-title", _title(self._wanted.topic, words))
        if self._is_following and self._painted_count != self._read_count:
            self._painted_count = self._read_count
            kept = f", the last {len(self._came):,} that match" if self._wanted.is_search else ""
            share = share_words(self._came.share())
            words = f"following, newest first: {self._read_count:,} read{kept}{share}   F stops"
            await self._fill([*reversed(self._came)], words)

    async def _fill(self, records: Sequence[FetchedRecord], words: str) -> None:
        decoder = self._decoder

        def drawn() -> list[tuple[Row, FetchedRecord]]:
            return [(message_row(record, decoder.record(record)), record) for record in records]

        # In a thread where the first message of a schema asks a registry.
        shown = await asyncio.to_thread(drawn) if decoder.has_registry else drawn()
        if not self.is_attached:
            return
        rows: tuple[Row, ...] = tuple(row for row, _ in shown)
        self._records = {row.key: record for row, record in shown}
        self.put("#browse-title", _title(self._wanted.topic, words))
        self.query_one(RowTable).show(Page.whole(rows, MESSAGES.columns))


class SearchFields(Vertical):
    """Fields of a search: the usual ones in a line, further ones below."""

    def __init__(self, wanted: MessageSearch) -> None:
        super().__init__()
        self._wanted = wanted

    def compose(self) -> ComposeResult:
        """Lines in which nothing stands are hidden, but for the first."""
        query = self._wanted.query
        for line, names in enumerate(FIELD_LINES):
            values = {name: query[_QUERY_OF[name]] for name in names if name != "from"}
            if not line:
                values = {"from": self._wanted.start or LATEST} | values
            fields = Horizontal(classes="where-from")
            fields.display = not line or any(values.values())
            with fields:
                for name, value in values.items():
                    yield Label(name)
                    hint = f"{SCAN_RECORDS:,}" if name == "limit" else ""
                    yield FilterLine(value, placeholder=hint, id=_id_of(name), compact=True)

    def toggle(self) -> bool:
        """Show the further lines, or hide those in which nothing stands; whether they show."""
        lines = list(self.query(".where-from"))[1:]
        is_shown = not any(line.display for line in lines)
        for line in lines:
            line.display = is_shown or any(each.value for each in line.query(Input))
        return is_shown

    def search(self) -> MessageSearch:
        """As the fields say."""
        start = self._typed("from") or LATEST
        self.query_one("#browse-from", Input).value = start
        query = {name: self._typed(field) for field, name in _QUERY_OF.items()}
        query["offset" if start.isdecimal() else "since"] = "" if start == LATEST else start
        return MessageSearch.of_query(self._wanted.topic, query)

    def _typed(self, field: str) -> str:
        return self.query_one(f"#{_id_of(field)}", Input).value.strip()


def _id_of(field: str) -> str:
    return f"browse-{field.replace(' ', '-')}"


def _title(topic: str, words: str) -> Text:
    return Text.assemble((f"{printable(topic)}  ", "bold"), printable(words))


class _Told(Static):
    """The newest lines about what could not be read."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lines: tuple[str, ...] = ()

    def tell(self, *lines: str) -> None:
        """Add lines."""
        if lines:
            self._lines = (*self._lines, *lines)[-TOLD_MAX:]
            self._draw()

    def forget(self) -> None:
        """Nothing is missing."""
        if self._lines:
            self._lines = ()
            self._draw()

    def _draw(self) -> None:
        self.update(Text("\n".join(f"▲ {line}" for line in self._lines), style="yellow"))


class MessageScreen(ModalScreen[ViewPath | None]):
    """One message in full; closes with the view to open, where one was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close"),
        Binding("enter", "close", show=False),
        Binding("r", "toggle_raw", "decoded or raw"),
        Binding("c", "copy('value')", "copy the value"),
        Binding("y", "copy('link')", "copy its path"),
        Binding("w", "write", "write the value to a file"),
        Binding("e", "resend", "send again, with edits"),
    ]
    _KEYS: ClassVar[str] = "r raw   c copy   y copy path   w write file   e send again   Esc closes"

    def __init__(
        self, record: FetchedRecord, decoder: Decoder, settings: KafkaSettings | str
    ) -> None:
        super().__init__()
        self._record = record
        self._decoder = decoder
        self._settings = settings
        self._decoded = DecodedRecord(key=None, value=None)
        self._is_raw = False

    def compose(self) -> ComposeResult:
        """Facts, headers, key, value."""
        with VerticalScroll(id="message") as box:
            box.border_subtitle = self._KEYS
            yield Static(id="message-text")

    async def on_mount(self) -> None:
        """In a thread: its schema may have to be asked for."""
        self._decoded = await asyncio.to_thread(self._decoder.record, self._record)
        self._draw()

    def action_close(self) -> None:
        """Back to the list."""
        self.dismiss(None)

    def action_toggle_raw(self) -> None:
        """Between what is decoded and what the bytes show."""
        self._is_raw = not self._is_raw
        self._draw()

    async def action_copy(self, what: str) -> None:
        """By the terminal, where it lets programs do so."""
        record = self._record
        query = {"partition": str(record.partition), "offset": str(record.offset)}
        words = str(ViewPath(view="browse", params={"topic": record.topic}, query=query))
        if what == "value":
            whole = await self._whole()
            if whole is None or whole.value is None:
                return
            decoded = await asyncio.to_thread(self._decoder.value, whole)
            assert decoded is not None
            words = copied_text(whole.value, decoded)
        self.app.copy_to_clipboard(words)
        self.notify(f"{plural_text(len(words), 'character')} copied, if the terminal lets programs")

    async def _whole(self) -> FetchedRecord | None:
        """All of it; None, and told why, where there is nothing to take."""
        if self._record.value is None:
            self.notify("the value is null: there is nothing to take")
            return None
        try:
            return await whole_record(self._settings, self._record)
        except KafkaPortError as error:
            self.notify(explained(error), severity="error")
            return None

    async def action_write(self) -> None:
        """All bytes of the value, into the working directory."""
        record = await self._whole()
        if record is not None:
            self._write(record)

    def _write(self, record: FetchedRecord) -> None:
        name = "".join(c if c.isalnum() or c in "-_." else "_" for c in record.topic)
        file = Path(f"{name}-{record.partition}-{record.offset}.value").absolute()
        try:
            file.write_bytes(record.value or b"")
        except OSError as error:
            self.notify(f"{file} cannot be written: {error.strerror}", severity="error")
        else:
            self.notify(f"written to {file}")

    def action_resend(self) -> None:
        """The produce form, filled in."""
        path, reason = resend_path(self._record)
        if path is None:
            self.notify(f"it cannot be sent again from here: {reason}")
        else:
            self.dismiss(path)

    def _draw(self) -> None:
        text = Text()
        for name, words in message_facts(self._record):
            text.append(f"{name:<12} ", style="dim")
            text.append(f"{words}\n")
        for name, header in self._record.headers:
            text.append(f"header {printable(name)}: ", style="dim")
            text.append(f"{readable(header, is_cut=self._record.whole is not None)}\n")
        record, decoded = self._record, self._decoded
        _add_part(text, "key", self._is_raw, (record.key, record.key_bytes, decoded.key))
        _add_part(text, "value", self._is_raw, (record.value, record.value_bytes, decoded.value))
        self.query_one("#message-text", Static).update(text)


def _add_part(
    text: Text, name: str, is_raw: bool, part: tuple[bytes | None, int, Decoded | None]
) -> None:
    """Decoded, or as its bytes show it."""
    data, whole_bytes, decoded = part
    label = "raw" if is_raw else "null" if decoded is None else decoded.label
    text.append(f"\n{name} ({printable(label)})\n", style="dim")
    if decoded is not None and decoded.error and not is_raw:
        text.append(f"▲ {printable(decoded.error)}; the bytes:\n", style="yellow")
    head = data if data is None else data[:WHOLE_CHARACTERS_MAX]
    is_cut = len(head or b"") < whole_bytes
    if decoded is not None and not is_raw and decoded.format is not Format.STRING:
        text.append(f"{printable(decoded.pretty[:WHOLE_CHARACTERS_MAX], keeps_lines=True)}\n")
        is_cut = len(decoded.pretty) > WHOLE_CHARACTERS_MAX or len(data or b"") < whole_bytes
    else:
        text.append(f"{readable(head, keeps_lines=True, is_cut=is_cut)}\n")
    if is_cut:
        words = f"… the first {bytes_text(len(head or b''))} of {bytes_text(whole_bytes)}\n"
        text.append(words, style="yellow")
