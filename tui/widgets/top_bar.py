"""The first line of every screen: which cluster, how it is, how old the figures are."""

from typing import Final

from rich.text import Text
from textual.widgets import Static

from control.model.watched_cluster import WatchedCluster
from control.views.format import age_text, clock_text, duration_text
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import SHAPES, Tone
from tui.terminal_session import TerminalSession
from tui.tones import STYLES, cell_text

COLUMNS_MIN: Final = 80
LINES_MIN: Final = 24


class TopBar(Static):
    """One line; the age ticks between snapshots."""

    def __init__(self) -> None:
        super().__init__(id="top-bar")
        self._snapshot: OperatorSnapshot | None = None
        self._is_paused = False
        self._at_ms: int | None = None
        self._watched = WatchedCluster()

    def show(self, session: TerminalSession) -> None:
        """Show the snapshot's headline with its age, or with its moment in the past."""
        self._snapshot, self._watched = session.snapshot, session.watched
        self._is_paused, self._at_ms = session.is_paused, session.at_ms
        self.update(self._line(session.now_ms), layout=False)

    def _line(self, now_ms: int) -> Text:
        assert self._snapshot is not None
        if self._snapshot.is_empty:
            return Text.assemble(
                (" partiscope", "bold"), *self._cluster_name(), "  ", self._why_empty()
            )
        if not self._has_room():
            return self._too_small(now_ms)
        head = self._snapshot.headline
        parts = [
            (1 if self._at_ms is not None else 0, Text(" partiscope", style="bold")),
            *((0, name) for name in self._cluster_name()),
            *self._moment(now_ms),
            (0, cell_text(self._snapshot.health)),
            (0, cell_text(head.brokers)),
            *([(0, cell_text(head.moving))] if head.moving.value else []),
            *([] if self._at_ms is not None else [(0, self._age(now_ms))]),
            (1, Text(f"in {head.in_bytes.text}")),
            (1, Text(f"out {head.out_bytes.text}")),
            (2, Text(head.controller.text, style="dim")),
            (2, cell_text(self._snapshot.job_cell(now_ms))),
            *([] if self._watched.name else [(3, Text(head.cluster.text, style="dim"))]),
        ]
        return _fitted(parts, self.app.size.width)

    def _why_empty(self) -> Text:
        assert self._snapshot is not None
        if self._snapshot.findings:
            return cell_text(self._snapshot.health)
        if self._snapshot.unwatched:
            return Text(f"{self._watched.name} is not watched")
        return Text("waiting for the first figures …")

    def _has_room(self) -> bool:
        return self.app.size.width >= COLUMNS_MIN and self.app.size.height >= LINES_MIN

    def _too_small(self, now_ms: int) -> Text:
        """The most important figures, and the size that the screens need."""
        assert self._snapshot is not None
        width, height = self.app.size
        needs = f"needs {COLUMNS_MIN}×{LINES_MIN}, has {width}×{height}"
        parts = [
            cell_text(self._snapshot.health),
            self._age(now_ms),
            Text(needs, style="reverse"),
        ]
        return Text("  ").join(parts)

    def _moment(self, now_ms: int) -> list[tuple[int, Text]]:
        """That it is not now what is shown, and how to get back."""
        if self._at_ms is not None:
            ago = duration_text(now_ms - self._at_ms)
            words = f" you are looking at {clock_text(self._at_ms, now_ms=now_ms)} ({ago} ago) "
            return [(0, Text(words, style="reverse")), (0, Text("Space: back to now"))]
        return [(0, Text("PAUSED", style="reverse"))] if self._is_paused else []

    def _cluster_name(self) -> list[Text]:
        """The cluster's name in its colour, and what nobody may overlook; nothing where there is
        only one, which has neither."""
        watched = self._watched
        color = watched.hex_color
        if not (color or watched.flags):
            return []
        words = " ".join((*watched.flags, watched.name)).strip()
        return [Text(f" {words} ", style=f"bold #ffffff on {color}" if color else "reverse")]

    def _age(self, now_ms: int) -> Text:
        assert self._snapshot is not None
        age_ms = self._snapshot.age_ms(now_ms)
        words = age_text(age_ms)
        if self._snapshot.is_stale(now_ms):
            return Text(f"{SHAPES[Tone.CRITICAL]} {words}", style=STYLES[Tone.CRITICAL])
        is_due = age_ms is not None and age_ms > 3 * self._snapshot.interval_ms + 3_000
        return Text(words, style=STYLES[Tone.WARNING if is_due else Tone.PLAIN])


def _fitted(parts: list[tuple[int, Text]], width: int) -> Text:
    """Texts that fit; the least important (the largest number) are left out first."""
    gap = Text("  ")
    for rank_max in range(3, -1, -1):
        line = gap.join(part for rank, part in parts if rank <= rank_max)
        if line.cell_len <= width:
            return line
    return line
