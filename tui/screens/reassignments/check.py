"""Check of a plan of any tool: pasted, or read from a file that is named."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static, TextArea

from control.kafka.errors import KafkaPortError
from control.move.check import Verdict
from control.operations.errors import OperationError
from control.operations.reassignment.plan_check import PlanCheck
from control.views.checked_plan import (
    BALANCES,
    FIGURES,
    VERDICTS,
    balance_rows,
    checked,
    figure_rows,
    plan_text,
    worst_first,
)
from control.views.preflight_checks import check_words
from control.views.printable import printable
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import Cell
from tui.screens.base import ViewScreen, heading


class CheckScreen(ViewScreen):
    """ctrl+s judges what stands in the field; nothing is changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # Without priority: what was typed or pasted just before reaches the field first.
        Binding("ctrl+s", "check", "check it", show=True),
    ]

    def compose_body(self) -> ComposeResult:
        """The field, then the result."""
        hint = "paste reassignment JSON, or name a file; Tab goes to the result"
        yield Static(heading("CHECK A PLAN", hint), classes="title")
        yield TextArea("", id="check-plan")
        with VerticalScroll(id="check-scroll"):
            yield Static(id="check-result")

    def on_mount(self) -> None:
        """Paste at once."""
        self.query_one("#check-plan").focus()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """The plan is judged by the cluster itself."""

    def action_check(self) -> None:
        """Judge it."""
        self.put("#check-result", "checking …")
        self.run_worker(self._check, exclusive=True, group="check")

    async def _check(self) -> None:
        try:
            text = plan_text(self.query_one("#check-plan", TextArea).text)
            found = await checked(self.session.operations, text)
        except (KafkaPortError, OperationError, OSError, ValueError) as error:
            step = getattr(error, "next_step", "")
            told = Text(f"✖ {printable(str(error))}", style="bold red")
            self.put("#check-result", told.append(f"\n→ {step}" if step else "", style="not bold"))
            return
        self.put("#check-result", result(found))


def result(found: PlanCheck) -> Text:
    """The verdict, figures, balance, checks."""
    verdict = found.verdict()
    style = "bold red" if verdict is Verdict.FAIL else "bold green"
    blocks = [
        Text(f"The plan {VERDICTS[verdict]}", style=style),
        _table(FIGURES, figure_rows(found)),
        _table(BALANCES, balance_rows(found)),
        *(Text(printable(check_words(it))) for it in worst_first(found)),
    ]
    return Text("\n").join(blocks)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str | Cell]]) -> Text:
    lines = [heads, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    texts = []
    for first, *others in lines:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        texts.append(Text("  ".join((first.ljust(widths[0]), *cells))))
    texts[0].stylize("dim")
    return Text("\n").join(texts)
