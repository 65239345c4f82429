"""Charts beside a view: read from the store in a thread, drawn as lines of text."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from control.views.format import byte_rate_text
from control.views.series import Series
from control.views.snapshots.store import StoreUnreadableError
from control.views.tables.journal import marks
from tui.screens.base import ViewScreen
from tui.widgets.chart import Frame

HISTORY_EVERY_S: Final = 3.0


class HistoryScreen(ViewScreen):
    """``read_history`` runs in a worker thread, ``show_history`` in the loop."""

    HISTORY_LINE = "#history"

    def on_mount(self) -> None:
        """Now and then again."""
        self.set_interval(HISTORY_EVERY_S, self.ask_history)
        self.ask_history()

    def read_history(self, cluster: str, frame: Frame) -> Text:
        """Charts of the view, in the frame that they share.

        Raises:
            StoreUnreadableError: the feed says so as a finding; what stands there stays.
        """
        raise AssertionError(f"{type(self).__name__} has no history")

    @property
    def line_width(self) -> int:
        """Columns of the screen without its margins."""
        return max(40, self.app.size.width - 2)

    @property
    def frame(self) -> Frame:
        """Up to now, or to the time that was asked for, with what was done meanwhile."""
        stretch = self.session.range
        span = stretch.span(until_ms=self.session.at_ms or self.session.now_ms)
        done = marks(self.services.journal(), span)
        return Frame(span=span, title=stretch.title, marks=done)

    def ask_history(self) -> None:
        """Read it now: it may be another stretch."""
        self.run_worker(self._read_history, thread=True, exclusive=True, group="history")

    def _read_history(self) -> None:
        cluster = self.session.snapshot.cluster.cluster
        frame = self.frame
        try:
            drawn = self.read_history(cluster, frame)
        except StoreUnreadableError:
            return
        legend = frame.legend(self.session.now_ms, self.line_width)
        drawn = Text("\n").join([drawn, *legend]) if drawn else drawn
        self.app.call_from_thread(self._show_history, drawn)

    def _show_history(self, drawn: Text) -> None:
        if self.is_mounted:
            self.put(self.HISTORY_LINE, drawn)


def throughput_line(series: Sequence[Series], frame: Frame, width: int) -> Text:
    """``THROUGHPUT  in ▂▃▅ 1.2 MiB/s  out ▃▃▃ 4.0 MiB/s  last 10 minutes``, as wide as there is
    room; ``series`` are bytes in and out first."""
    both = [(item, byte_rate_text(item.newest)) for item in series[:2]]
    words = sum(len(f"{item.name}  {now}  ") for item, now in both)
    room = max(8, (width - len("THROUGHPUT  ") - words - len(frame.title)) // 2)
    line = Text("THROUGHPUT  ", style="bold")
    for item, now in both:
        line.append(f"{item.name} ", style="dim")
        line.append_text(frame.line(item, room, "cyan"))
        line.append(f" {now}  ", style="")
    return line.append(frame.title, style="dim")
