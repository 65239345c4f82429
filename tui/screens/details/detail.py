"""One topic, one broker, one group: its own figures, how they went, its partitions as a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from control.kafka.errors import KafkaPortError
from control.model.command_line import command
from control.views.cluster.collector_requests import load_cell
from control.views.format import plural_text
from control.views.paths import ViewPath
from control.views.printable import printable
from control.views.series import broker_throughput, topic_throughput, total_lag
from control.views.snapshots.blame import partition_to_blame
from control.views.snapshots.snapshot import LISTS, OperatorSnapshot, list_page
from control.views.tables.brokers import LOG_DIRS, several_log_dirs
from control.views.tables.group_parts import member_words
from control.views.tables.query import Page, TableQuery
from tui.screens.details.history_charts import HistoryScreen, throughput_line
from tui.screens.lists.table_screen import TableScreen
from tui.tones import facts_text, rows_text
from tui.widgets.chart import Frame

if TYPE_CHECKING:
    from textual.worker import Worker

    from control.views.group_facts import Fact
    from control.views.tables.rows import Row

MEMBERS_MAX: Final = 5
"""So many members of a group stand above its partitions."""


class DetailScreen(HistoryScreen, TableScreen):
    """A row of a list in full, above what belongs to it."""

    HISTORY_LINE = "#history-line"
    LIST: ClassVar[str]
    """The list that it is a row of; the path's parameter has the name of its first column."""
    KIND = "partitions"
    TITLE_WORD: ClassVar[str] = ""
    UNKNOWN: ClassVar[str]
    """What to say when the list does not have it."""

    @property
    def name_here(self) -> str:
        """Name of the shown thing."""
        return self.path.params[self.path.view]

    def compose_body(self) -> ComposeResult:
        """Figures, history, table."""
        yield Static(id="tiles")
        yield Static(id="history-line")
        yield from super().compose_body()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Also its own row of the list."""
        super().show(snapshot)
        own = TableQuery(filter=f'{self.path.view}="{self.name_here}"', limit=1)
        found = list_page(snapshot, self.LIST, own)
        head = Text(f"{self.TITLE_WORD}{self.name_here}", style="bold")
        if not found.rows:
            self.put("#tiles", head.append(f"  {self.UNKNOWN} (Esc goes back)", style="yellow"))
            return
        facts = LISTS[self.LIST].kind.facts(found.rows[0])
        self.put("#tiles", facts_text(head, facts, self.app.size.width - 2))


class TopicScreen(DetailScreen):
    """The partitions of one topic."""

    LIST = "topics"
    UNKNOWN = "is not known: it may be new, or deleted"

    @property
    def partition_here(self) -> str:
        """The view is about the topic, wherever the cursor stands."""
        return ""

    def page(self, snapshot: OperatorSnapshot, query: TableQuery) -> Page:
        """Only this topic's."""
        return list_page(snapshot, self.KIND, query, self.name_here)

    def read_history(self, cluster: str, frame: Frame) -> Text:
        """Throughput of producers and consumers."""
        found = topic_throughput(self.services.history, cluster, self.name_here, frame.span)
        return throughput_line(found, frame, self.line_width)


class BrokerScreen(DetailScreen):
    """One broker: its load, the collector's requests, and its partitions."""

    LIST = "brokers"
    TITLE_WORD = "broker "
    UNKNOWN = "is not registered"

    def compose_body(self) -> ComposeResult:
        """Also the line of the collector, and log directories where there are several."""
        for line in (Static(id="asked", classes="hint"), Static(id="log-dirs")):
            line.display = False
            yield line
        yield from super().compose_body()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Also how much is asked, and where its replicas lie."""
        super().show(snapshot)
        asked = load_cell(snapshot.watch, int(self.name_here))
        self.query_one("#asked").display = asked is not None
        self.put("#asked", "" if asked is None else f"collector: {asked.text}")
        directories = several_log_dirs(snapshot.evidence, int(self.name_here))
        self.query_one("#log-dirs").display = bool(directories)
        self.put("#log-dirs", rows_text(LOG_DIRS.columns, directories))

    @property
    def plan_here(self) -> ViewPath:
        """The plan that decommissions it."""
        return ViewPath(view="plan", query={"remove_brokers": self.name_here})

    def page(self, snapshot: OperatorSnapshot, query: TableQuery) -> Page:
        """Only this broker's."""
        here = f"broker:{self.name_here} {query.filter}".strip()
        return list_page(snapshot, self.KIND, replace(query, filter=here))

    def read_history(self, cluster: str, frame: Frame) -> Text:
        """Throughput of the partitions that it leads."""
        broker = int(self.name_here)
        found = broker_throughput(self.services.history, cluster, broker, frame.span)
        return throughput_line(found, frame, self.line_width)


class GroupScreen(DetailScreen):
    """One group's partitions, the worst first, then the largest lag."""

    LIST = "groups"
    KIND = "lags"
    UNKNOWN = "is not known: it may be new, or its offsets have expired"
    _asking: Worker[None] | None = None

    def compose_body(self) -> ComposeResult:
        """Also what its coordinator tells."""
        for name in ("blame", "group-facts"):
            line = Static(id=name)
            line.display = False
            yield line
        yield from super().compose_body()

    def _ask_anew(self) -> None:
        """Asks its coordinator, with every snapshot of now; a slow answer is waited for."""
        if self._asking is None or self._asking.is_finished:
            self._asking = self.run_worker(self._ask, group="group-facts")

    async def _ask(self) -> None:
        from control.views.group_facts import Told, read_group  # a Kafka client comes with it

        session, group = self.session, self.name_here
        told = Told((), ())
        if session.at_ms is None:
            with suppress(KafkaPortError, ValueError):
                told = await read_group(session.operations, session.snapshot, group)
        if self.is_attached:
            self._tell(told.facts, told.members)

    def _tell(self, facts: Sequence[Fact], members: Sequence[Row]) -> None:
        told = [("member", member_words(it)) for it in members[:MEMBERS_MAX]]
        if len(members) > MEMBERS_MAX:
            left = len(members) - MEMBERS_MAX
            more = f"{left} more: {command(f'groups describe {quote(self.name_here)}')}"
            told.append(("…", more))
        told += [(it.title, it.text) for it in facts]
        lines = [Text.assemble((f"{title} ", "dim"), printable(text)) for title, text in told]
        self.query_one("#group-facts").display = bool(lines)
        self.put("#group-facts", Text("\n").join(lines))

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Also the partition to blame, and its members as they are now."""
        super().show(snapshot)
        self._ask_anew()
        blame = partition_to_blame(snapshot, self.name_here)
        self.query_one("#blame").display = blame is not None
        self.put("#blame", "" if blame is None else Text(blame.words, style="yellow"))

    def page(self, snapshot: OperatorSnapshot, query: TableQuery) -> Page:
        """Only this group's."""
        return list_page(snapshot, self.KIND, query, self.name_here)

    def read_history(self, cluster: str, frame: Frame) -> Text:
        """Its lag as a whole."""
        lag = total_lag(self.services.history, cluster, self.name_here, frame.span)
        words = f"  {plural_text(lag.newest, 'record')}  "
        room = max(20, self.line_width - len("LAG  ") - len(words) - len(frame.title))
        return Text.assemble(
            ("LAG  ", "bold"), frame.line(lag, room, "yellow"), words, (frame.title, "dim")
        )
