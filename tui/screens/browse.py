"""Browse a topic's messages: from an offset, a time or the end; Enter shows one in full."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from control.kafka.errors import KafkaPortError
from control.kafka.reader import FetchedRecord, RecordReader
from control.lab.starts import START_HELP, parse_start
from control.model.ids import TopicPartition
from control.views.messages import MESSAGE_COLUMNS, is_match, message_row, moment_text, readable
from control.views.pages import Page
from control.views.paths import ViewPath
from control.views.rows import Row
from control.views.snapshot import OperatorSnapshot
from tui.screens.base import ViewScreen
from tui.widgets.row_table import RowTable

SHOWN_MAX: Final = 200
READ_MAX: Final = 5_000
LATEST: Final = "-50"


class BrowseScreen(ViewScreen):
    """Where from and which, then the messages."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", show=True),
        Binding("f", "start", "from", show=True),
        Binding("r", "again", "read again", show=True),
    ]

    def __init__(self, path: ViewPath) -> None:
        super().__init__(path)
        self._topic = path.params["topic"]
        self._records: dict[str, FetchedRecord] = {}

    def compose_body(self) -> ComposeResult:
        """Where from, which partition, containing what; then the table."""
        query = self.path.query
        with Horizontal(id="where-from"):
            for name, value in (
                ("from", query.get("offset", LATEST)),
                ("partition", query.get("partition", "")),
                ("contains", query.get("q", "")),
            ):
                yield Label(name)
                yield Input(value, id=f"browse-{name}", compact=True)
        yield Static(id="browse-title", classes="title")
        yield RowTable(id="table", opens=False)

    def on_mount(self) -> None:
        """Read at once."""
        self.query_one(RowTable).focus()
        self.action_again()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Messages come from the cluster itself."""

    def on_input_submitted(self) -> None:
        """Enter in any field."""
        self.query_one(RowTable).focus()
        self.action_again()

    def on_row_table_row_chosen(self, message: RowTable.RowChosen) -> None:
        """One in full."""
        record = self._records.get(message.row.key)
        if record is not None:
            self.app.push_screen(MessageScreen(record))

    def action_filter(self) -> None:
        """To the field of what it must contain."""
        self.query_one("#browse-contains").focus()

    def action_start(self) -> None:
        """To the field of where to begin."""
        self.query_one("#browse-from").focus()

    def action_again(self) -> None:
        """Read, with what the fields say."""
        values = {name: self.query_one(f"#browse-{name}", Input).value.strip() for name in _FIELDS}
        query = {
            "offset": values["from"],
            "partition": values["partition"],
            "q": values["contains"],
        }
        self.path = ViewPath(view="browse", params=self.path.params, query=query)
        self._title("reading …")
        self.run_worker(self._read(values), exclusive=True, group="browse")

    async def _read(self, values: dict[str, str]) -> None:
        try:
            start = parse_start(values["from"] or LATEST, now_ms=self.services.now_ms())
            async with RecordReader(self.partiscope.operator.admin.wire.settings) as reader:
                keys = await reader.partitions(self._topic)
                if values["partition"]:
                    keys = (TopicPartition(self._topic, int(values["partition"])),)
                limit = READ_MAX if values["contains"] else SHOWN_MAX
                found = await reader.browse(keys, start, limit=limit)
        except ValueError as error:
            self._title(f"▲ {error}")
            return
        except KafkaPortError as error:
            self._title(f"✖ {error}. {error.next_step}")
            return
        matching = [record for record in found if is_match(record, values["contains"])]
        self._fill(matching, of=len(found))

    def _fill(self, records: list[FetchedRecord], *, of: int) -> None:
        if not self.is_attached:
            return
        rows: list[Row] = []
        self._records = {}
        for record in records[-SHOWN_MAX:]:
            row = message_row(record)
            rows.append(row)
            self._records[row.key] = record
        matching = "" if len(records) == of else f", {len(records)} match"
        self._title(f"{of} read{matching}" if of else f"no message there; try {START_HELP}")
        self.query_one(RowTable).show(
            Page(rows=tuple(rows), columns=MESSAGE_COLUMNS, total=of, matching=len(records))
        )

    def _title(self, words: str) -> None:
        self.put("#browse-title", Text.assemble((f"{self._topic}  ", "bold"), words))


_FIELDS: Final = ("from", "partition", "contains")


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
        with VerticalScroll(id="message"):
            yield Static(text)
