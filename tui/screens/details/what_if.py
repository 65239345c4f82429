"""Loss of a broker or a rack: partitions that go offline, new leaders, extra load on survivors."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from control.views.cluster.what_if import (
    LOSS_KINDS,
    SURVIVORS,
    Loss,
    WhatIf,
    hit_page,
    losses,
    wanted_loss,
    what_if,
)
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.query import Page, TableQuery
from tui.screens.base import ViewScreen, heading
from tui.terminal_session import TerminalSession
from tui.tones import cell_text
from tui.widgets.row_table import RowTable

HIT_MAX = 200


class WhatIfScreen(ViewScreen):
    """Choose who dies, by cursor or digit; the answer stands below and follows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(n), f"choose({n})", show=False) for n in range(1, 10)
    ]

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._losses: tuple[Loss, ...] = ()

    def compose_body(self) -> ComposeResult:
        """Losses, answer, survivors, partitions."""
        yield Static("WHAT IF this dies?", classes="title")
        yield OptionList(id="losses")
        with VerticalScroll(can_focus=False):
            yield Static(id="answer")
            yield Static("SURVIVORS", classes="title")
            yield RowTable(id="survivors")
            yield Static(id="hit-title", classes="title")
            yield RowTable(id="hit")

    def on_mount(self) -> None:
        """The losses have the keys."""
        self.query_one("#losses").focus()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """The same question, asked of newer figures."""
        chooser = self.query_one("#losses", OptionList)
        found = losses(snapshot)
        if found != self._losses:
            asked = wanted_loss(snapshot, self.path.query)
            self._losses = found
            chooser.clear_options()
            chooser.add_options(
                Option(Text(f"{number} {loss.words}")) for number, loss in enumerate(found, 1)
            )
            if asked is not None:
                chooser.highlighted = found.index(asked)
            elif not self._asked_words and found:
                chooser.highlighted = 0
        self._answer(snapshot)

    def on_option_list_option_highlighted(self) -> None:
        """Another one."""
        at = self.query_one("#losses", OptionList).highlighted
        if at is None or at >= len(self._losses):
            return  # the brokers have changed since
        loss = self._losses[at]
        self.path = ViewPath(view="what-if", query={loss.kind: loss.value})
        self._answer(self.session.snapshot)

    def action_choose(self, number: int) -> None:
        """The loss of that number."""
        if number <= len(self._losses):
            self.query_one("#losses", OptionList).highlighted = number - 1

    @property
    def _asked_words(self) -> str:
        """``broker 103``, as the path has it; empty: it asks for none."""
        query = self.path.query
        return next((f"{kind} {query[kind]}" for kind in LOSS_KINDS if query.get(kind)), "")

    def _answer(self, snapshot: OperatorSnapshot) -> None:
        if not (self.query("#survivors") and self.query("#hit")):
            return  # not composed yet, or left
        at = self.query_one("#losses", OptionList).highlighted
        if at is None or at >= len(self._losses):
            gone = f"{self._asked_words} is not there: ↑ ↓ chooses another"
            words = gone if self._losses else "no broker is known yet"
            self.put("#answer", Text(words, style="dim"))
            return
        answer = what_if(snapshot, self._losses[at])
        self.put("#answer", _words(answer))
        survivors = Page.whole(answer.survivors, SURVIVORS.columns)
        self.query_one("#survivors", RowTable).show(survivors)
        hit = hit_page(answer, TableQuery(limit=HIT_MAX))
        self.put("#hit-title", heading("ITS PARTITIONS", f"{hit.total}, as they would be"))
        self.query_one("#hit", RowTable).show(hit)


def _words(answer: WhatIf) -> Text:
    lines = [
        Text.assemble((f" {title:<22}", "dim"), cell_text(cell)) for title, cell, _ in answer.facts
    ]
    return Text("\n").join(lines)
