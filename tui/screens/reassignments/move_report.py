"""The report of a finished move."""

import asyncio
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Markdown, Static

from control.kafka.errors import KafkaPortError
from control.model.command_line import command
from control.operations.errors import OperationError
from control.views.move_report.documents import markdown
from control.views.move_report.reading import read_report
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.messages import PathChosen
from tui.screens.base import ViewScreen, heading


class MoveReportScreen(ViewScreen):
    """The report in words and tables; Enter opens the move."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "move", "the move", show=True)]

    @property
    def move_here(self) -> str:
        """Its operation id."""
        return self.path.params["move"]

    def compose_body(self) -> ComposeResult:
        """Where to find it as a file, then all of it."""
        hint = command(f"moves report {self.move_here} -o {self.move_here}.html")
        yield Static(heading("REPORT", hint), classes="title")
        yield Static(id="report-trouble")
        with VerticalScroll(id="report-scroll"):
            yield Markdown(id="report-body")

    def on_mount(self) -> None:
        """Read it once."""
        self.query_one("#report-scroll").focus()
        self.run_worker(self._read, exclusive=True, group="report")

    def show(self, snapshot: OperatorSnapshot) -> None:
        """A report is of the past."""

    def action_move(self) -> None:
        """To the move itself."""
        self.post_message(PathChosen(f"moves/{self.move_here}"))

    async def _read(self) -> None:
        services = self.services
        cluster = services.feed.current.cluster.cluster
        try:
            state = await self.session.operations.moves.get(self.move_here)
            report = await asyncio.to_thread(read_report, state, services.history, cluster=cluster)
        except (KafkaPortError, OperationError) as error:
            self.put("#report-trouble", Text(f"✖ {error}", style="bold red"))
            return
        for body in self.query(Markdown):
            await body.update(markdown(report))
