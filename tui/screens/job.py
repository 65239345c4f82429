"""The metrics job: is it in time, what does it carry, what did it miss?"""

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from control.views.errors import StoreUnreadableError
from control.views.job import job_figures, series_text
from control.views.series import Series, Span, job_series
from control.views.snapshot import OperatorSnapshot
from tui.screens.base import ViewScreen
from tui.tones import cell_text
from tui.widgets.sparkline import sparkline

HISTORY_MS: Final = 30 * 60_000
HISTORY_EVERY_S: Final = 3.0


class JobScreen(ViewScreen):
    """Its figures with what they mean, and how they went."""

    def compose_body(self) -> ComposeResult:
        """Figures, then history."""
        with VerticalScroll():
            yield Static(id="job-figures")
            yield Static(id="job-history")

    def on_mount(self) -> None:
        """History is read beside the snapshot."""
        self.set_interval(HISTORY_EVERY_S, self._ask_history)
        self._ask_history()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """One line per figure."""
        found = job_figures(snapshot, min(self.services.now_ms(), snapshot.built_ms))
        lines = [Text(" METRICS JOB", style="bold")]
        if not found:
            lines.append(Text(" it has written nothing yet (it takes about 20 s to start)"))
        for it in found:
            value = cell_text(it.cell, with_shape=True)
            value.pad_right(max(1, 14 - value.cell_len))
            lines.append(Text.assemble((f" {it.title:<12}", "dim"), value, (it.why, "dim")))
        self.put("#job-figures", Text("\n").join(lines))

    def _ask_history(self) -> None:
        self.run_worker(self._read_history, thread=True, exclusive=True, group="history")

    def _read_history(self) -> None:
        """In a worker thread."""
        span = Span.last(HISTORY_MS, now_ms=self.charts_until_ms)
        try:
            series = job_series(self.services.history, span)
        except StoreUnreadableError:
            return  # the feed says so as a finding
        text = _history(series, max(20, self.app.size.width - 32))
        self.app.call_from_thread(self._show_history, text)

    def _show_history(self, text: Text) -> None:
        if self.is_mounted:
            self.put("#job-history", text)


def _history(series: Sequence[Series], width: int) -> Text:
    lines = [Text("\n LAST 30 MIN, newest on the right, at their peaks", style="bold")]
    for item in series:
        drawn = (sparkline(item.peaks, width), "cyan")
        lines.append(Text.assemble((f" {item.name:<12}", "dim"), drawn, f"  {series_text(item)}"))
    return Text("\n").join(lines)
