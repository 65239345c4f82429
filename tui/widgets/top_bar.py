"""The first line of every screen: which cluster, how it is, how old the figures are."""

from rich.text import Text
from textual.widgets import Static

from control.views.format import age_text, clock_text
from control.views.rows import Tone
from control.views.snapshot import OperatorSnapshot
from tui.tones import STYLES, cell_text


class TopBar(Static):
    """One line; the age ticks between snapshots."""

    def __init__(self) -> None:
        super().__init__(id="top-bar")
        self._snapshot: OperatorSnapshot | None = None
        self._is_paused = False
        self._at_ms: int | None = None

    def show(
        self, snapshot: OperatorSnapshot, *, now_ms: int, is_paused: bool, at_ms: int | None = None
    ) -> None:
        """Show a snapshot's headline and its age now; `at_ms` where charts are of another time."""
        self._snapshot, self._is_paused, self._at_ms = snapshot, is_paused, at_ms
        self.update(self._line(now_ms))

    def _line(self, now_ms: int) -> Text:
        assert self._snapshot is not None
        if self._snapshot.is_empty:
            return Text.assemble((" partiscope", "bold"), "  waiting for the first figures …")
        head = self._snapshot.headline
        parts = [
            (0, Text(" partiscope", style="bold")),
            (0, cell_text(self._snapshot.health, with_shape=True)),
            (0, cell_text(head.brokers, with_shape=True)),
            (0, self._age(now_ms)),
            (1, Text(f"in {head.in_bytes.text}")),
            (1, Text(f"out {head.out_bytes.text}")),
            (2, Text(head.controller.text, style="dim")),
            (3, Text(head.cluster.text, style="dim")),
        ]
        if self._is_paused:
            parts.insert(1, (0, Text("PAUSED", style="reverse")))
        if self._at_ms is not None:
            words = f"charts at {clock_text(self._at_ms, now_ms=now_ms)}"
            parts.insert(1, (0, Text(words, style="reverse")))
        return _fitted(parts, self.app.size.width)

    def _age(self, now_ms: int) -> Text:
        assert self._snapshot is not None
        age_ms = self._snapshot.age_ms(now_ms)
        interval_ms = self._snapshot.interval_ms
        tone = Tone.PLAIN
        if age_ms is None or age_ms > 3 * interval_ms + 3_000:
            tone = Tone.CRITICAL
        elif self._snapshot.is_stale(now_ms):
            tone = Tone.WARNING
        return Text(age_text(age_ms), style=STYLES[tone])


def _fitted(parts: list[tuple[int, Text]], width: int) -> Text:
    """What fits, the least important (the largest number) left out first."""
    gap = Text("  ")
    for rank_max in range(3, -1, -1):
        line = gap.join(part for rank, part in parts if rank <= rank_max)
        if line.cell_len <= width:
            return line
    return line
