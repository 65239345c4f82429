"""The metrics job: is it in time, what does it carry, what did it miss?"""

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from control.views.cluster.metrics_job import JobFigure, job_figures, series_text
from control.views.series import Series, job_series
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.screens.details.history_charts import HistoryScreen
from tui.tones import cell_text
from tui.widgets.chart import Frame

_TITLE_WIDTH: Final = 13
_VALUE_WIDTH: Final = 14


class JobScreen(HistoryScreen):
    """Its figures with what they mean, and how they went."""

    HISTORY_LINE = "#job-history"

    def compose_body(self) -> ComposeResult:
        """Figures, then history."""
        with VerticalScroll():
            yield Static(id="job-figures")
            yield Static(id="job-history")

    def show(self, snapshot: OperatorSnapshot) -> None:
        """One line per figure."""
        found = job_figures(snapshot, min(self.session.now_ms, snapshot.built_ms))
        lines = [Text(" METRICS JOB", style="bold")]
        if not found:
            lines.append(Text(" it has written nothing yet (it takes about 20 s to start)"))
        lines += [_figure(it, self.line_width) for it in found]
        self.put("#job-figures", Text("\n").join(lines))

    def read_history(self, cluster: str, frame: Frame) -> Text:
        """How its figures went; it carries all clusters."""
        found = job_series(self.services.history, frame.span)
        return _history(found, max(20, self.line_width - 30), frame)


def _figure(it: JobFigure, width: int) -> Text:
    """Title, value, and what it means: below itself where the line is too short."""
    value = cell_text(it.cell)
    value.pad_right(max(1, _VALUE_WIDTH - value.cell_len))
    why = textwrap.wrap(it.why, max(20, width - _TITLE_WIDTH - _VALUE_WIDTH))
    margin = "\n" + " " * (_TITLE_WIDTH + _VALUE_WIDTH)
    title = f" {it.title}".ljust(_TITLE_WIDTH)
    return Text.assemble((title, "dim"), value, (margin.join(why), "dim"))


def _history(series: Sequence[Series], width: int, frame: Frame) -> Text:
    head = f"\n {frame.title.upper()}, newest on the right, at their peaks"
    lines = [Text(head, style="bold")]
    for item in series:
        drawn = frame.line(item, width, "cyan")
        lines.append(Text.assemble((f" {item.name:<12}", "dim"), drawn, f"  {series_text(item)}"))
    return Text("\n").join(lines)
