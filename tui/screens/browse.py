"""Browse a topic's messages: from an offset, a time or the end; Enter shows one in full.

Or follow them as they come: the newest on top, painted once a second however many there are.
"""

from collections import deque
from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from control.kafka.errors import KafkaPortError
from control.kafka.reader import FetchedRecord
from control.lab.starts import START_HELP
from control.views.messages import MESSAGE_COLUMNS, message_row, moment_text, readable
from control.views.pages import Page
from control.views.paths import ViewPath
from control.views.rows import Row
from control.views.snapshot import OperatorSnapshot
from tui.browsing import FIELDS, LATEST, Wanted
from tui.screens.base import ViewScreen
from tui.widgets.filter_line import FilterLine
from tui.widgets.row_table import RowTable

SHOWN_MAX: Final = 200
PAINT_EVERY_S: Final = 1.0
FOLLOWING: Final = "yes"


class BrowseScreen(ViewScreen):
    """Where from and which, then the messages."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "go_to('contains')", "filter", show=True),
        Binding("f", "go_to('from')", "from", show=True),
        Binding("r", "again", "read again", show=True),
        Binding("F", "follow", "follow", show=True),
    ]

    def __init__(self, path: ViewPath) -> None:
        super().__init__(path)
        self._wanted = Wanted.of_query(path.params["topic"], path.query)
        self._is_following = path.query.get("follow") == FOLLOWING
        self._records: dict[str, FetchedRecord] = {}
        self._came: deque[FetchedRecord] = deque(maxlen=SHOWN_MAX)
        """What matches of what came since it follows, oldest first."""
        self._read_count = self._painted_count = 0

    def compose_body(self) -> ComposeResult:
        """Where from, which partition, containing what; then the table."""
        with Horizontal(id="where-from"):
            for name, value in self._wanted.fields.items():
                yield Label(name)
                yield FilterLine(value, id=f"browse-{name}", compact=True)
        yield Static(id="browse-title", classes="title")
        yield RowTable(id="table", opens=False)

    def on_mount(self) -> None:
        """Read at once."""
        self.query_one(RowTable).focus()
        self.set_interval(PAINT_EVERY_S, self._paint)
        self._begin()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Messages come from the cluster itself."""

    def on_input_submitted(self) -> None:
        """Enter in any field."""
        self.query_one(RowTable).focus()
        self._begin()

    def on_row_table_row_chosen(self, message: RowTable.RowChosen) -> None:
        """One in full."""
        record = self._records.get(message.row.key)
        if record is not None:
            self.app.push_screen(MessageScreen(record))

    def action_go_to(self, name: str) -> None:
        """To a field."""
        self.query_one(f"#browse-{name}").focus()

    def action_again(self) -> None:
        """Read once what is there now."""
        self._is_following = False
        self._begin()

    def action_follow(self) -> None:
        """Follow what comes, or no longer."""
        self._is_following = not self._is_following
        self._begin()

    def _begin(self) -> None:
        """Read or follow, with what the fields say."""
        texts = [self.query_one(f"#browse-{name}", Input).value.strip() for name in FIELDS]
        start, partition, contains = texts
        self.query_one("#browse-from", Input).value = start or LATEST
        self._wanted = Wanted(
            topic=self._wanted.topic,
            start=start or LATEST,
            partition=partition,
            contains=contains,
        )
        query = {**self._wanted.query, "follow": FOLLOWING if self._is_following else ""}
        self.path = ViewPath(view="browse", params=self.path.params, query=query)
        self._title("reading …")
        self.run_worker(self._work(self._wanted), exclusive=True, group="browse")

    async def _work(self, wanted: Wanted) -> None:
        """What goes wrong is said in the title."""
        try:
            if self._is_following:
                await self._follow(wanted)
            else:
                await self._read(wanted)
        except ValueError as error:
            self._title(f"▲ {error}")
        except KafkaPortError as error:
            self._title(f"✖ {error}. {error.next_step}")

    async def _read(self, wanted: Wanted) -> None:
        settings = self.partiscope.operator.admin.wire.settings
        found = await wanted.read(settings, now_ms=self.services.now_ms(), limit=SHOWN_MAX)
        self._fill([record for record in found if wanted.is_match(record)], of=len(found))

    async def _follow(self, wanted: Wanted) -> None:
        self._came.clear()
        self._read_count, self._painted_count = 0, -1
        settings = self.partiscope.operator.admin.wire.settings
        async for record in wanted.follow(settings, now_ms=self.services.now_ms()):
            self._read_count += 1
            if wanted.is_match(record):
                self._came.append(record)

    def _paint(self) -> None:
        """What came since the last time."""
        if self._is_following and self._painted_count != self._read_count:
            self._painted_count = self._read_count
            self._fill([*reversed(self._came)], of=self._read_count)

    def _fill(self, records: Sequence[FetchedRecord], *, of: int) -> None:
        if not self.is_attached:
            return
        shown = [(message_row(record), record) for record in records[-SHOWN_MAX:]]
        rows: tuple[Row, ...] = tuple(row for row, _ in shown)
        self._records = {row.key: record for row, record in shown}
        self._title(_words(of, len(records), is_following=self._is_following))
        self.query_one(RowTable).show(
            Page(rows=rows, columns=MESSAGE_COLUMNS, total=of, matching=len(records))
        )

    def _title(self, words: str) -> None:
        self.put("#browse-title", Text.assemble((f"{self._wanted.topic}  ", "bold"), words))


def _words(read: int, matching: int, *, is_following: bool) -> str:
    if is_following:
        kept = f", the last {matching:,} that match" if matching < read else ""
        return f"following, newest first: {read:,} read{kept}   F stops"
    if not read:
        return f"no message there; try {START_HELP}"
    return f"{read:,} read" + ("" if matching == read else f", {matching:,} match")


class MessageScreen(ModalScreen[None]):
    """One message in full."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("enter", "dismiss", show=False),
    ]

    def __init__(self, record: FetchedRecord) -> None:
        super().__init__()
        self._record = record

    def compose(self) -> ComposeResult:
        """Place, time, headers, key, value."""
        record = self._record
        text = Text.assemble(
            (f"{record.topic}-{record.partition} @ {record.offset}", "bold"),
            f"   {moment_text(record.timestamp_ms)}   {record.codec_name}",
        )
        for name, header in record.headers:
            text.append(f"\n{name}: ", style="dim")
            text.append(readable(header), style="")
        for name, part in (("key", record.key), ("value", record.value)):
            text.append(f"\n\n{name}\n", style="dim")
            text.append(readable(part), style="")
        with VerticalScroll(id="message") as box:
            box.border_subtitle = "Esc closes"
            yield Static(text)
