"""Frame of a view's charts: one stretch of time, and the changes of the cluster in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from control.views.format import clock_text
from control.views.series import Series, Span
from control.views.tables.journal import Mark
from tui.widgets.sparkline import column_of, sparkline

MARK: Final = "◆"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Draws series over its stretch; ``title`` tells how much that is: ``last 10 minutes``."""

    span: Span
    title: str
    marks: Sequence[Mark] = ()
    """Oldest first."""

    def line(
        self,
        series: Series,
        width: int,
        style: str,
        *,
        values: Sequence[float | None] | None = None,
    ) -> Text:
        """One series (its peaks, or ``values``), a mark in place of what was just then."""
        shown = series.peaks if values is None else values
        drawn = list(sparkline(series.at_ms, shown, self.span, width))
        for mark in self.marks:
            drawn[column_of(mark.at_ms, self.span, width)] = MARK
        line = Text("".join(drawn), style=style)
        line.highlight_regex(MARK, "bold not dim default")
        return line

    def legend(self, now_ms: int, width: int) -> list[Text]:
        """Meaning of the marks, the newest first, as far as a line goes; no line without any."""
        line = Text()
        for mark in reversed(self.marks):
            when = clock_text(mark.at_ms, now_ms=now_ms)
            words = Text.assemble((MARK, "bold"), (f" {when} {mark.words}", "dim"))
            room = width - line.cell_len - (2 if line else 0)
            if line and words.cell_len > room:
                break
            words.truncate(room, overflow="ellipsis")
            line.append("  " if line else "").append_text(words)
        return [line] if line else []
