"""The map: topic by broker, darker where more is; one measure at a time."""

from collections.abc import Callable
from math import isnan, log
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from control.views.format import NONE, byte_rate_text, bytes_text, count_text
from control.views.overview import HeatMap
from control.views.paths import ViewPath
from control.views.snapshot import OperatorSnapshot
from tui.screens.base import ViewScreen

MEASURES: Final = {
    "size_bytes": ("bytes", bytes_text),
    "replicas": ("replicas", count_text),
    "leaders": ("leaders", count_text),
    "in_bytes_per_s": ("in/s", byte_rate_text),
}
SHADES: Final = "·░▒▓█"
_STYLES: Final = ("dim", "blue", "cyan", "yellow", "bold red")
NAME_WIDTH: Final = 24
CELL_WIDTH: Final = 13


class MapScreen(ViewScreen):
    """Shades by the logarithm: sizes of topics differ by orders of magnitude."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("m", "measure", "measure", show=True)]

    def __init__(self, path: ViewPath) -> None:
        super().__init__(path)
        wanted = path.query.get("measure", "")
        self._measure = wanted if wanted in MEASURES else next(iter(MEASURES))

    def compose_body(self) -> ComposeResult:
        """A head that stays, and the grid."""
        yield Static(id="map-title", classes="title")
        yield Static(id="map-head")
        with VerticalScroll(id="map-scroll"):
            yield Static(id="map")

    def on_mount(self) -> None:
        """The grid scrolls."""
        self.query_one("#map-scroll").focus()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """The present measure."""
        title, to_text = MEASURES[self._measure]
        heat = snapshot.heat_map(self._measure)
        room = max(1, (self.app.size.width - NAME_WIDTH - 2) // CELL_WIDTH)
        left_out = f"  {room} of {len(heat.brokers)} brokers fit" * (len(heat.brokers) > room)
        self.put("#map-title", f"[b]MAP[/b] {title} by topic and broker{left_out}  {_legend()}")
        head = Text(" " + " " * NAME_WIDTH, style="bold")
        for broker in heat.brokers[:room]:
            head.append(f"{broker:>{CELL_WIDTH}}")
        self.put("#map-head", head)
        self.put("#map", _grid(heat, room, to_text))

    def action_measure(self) -> None:
        """The next measure."""
        names = list(MEASURES)
        self._measure = names[(names.index(self._measure) + 1) % len(names)]
        self.path = ViewPath(view="map", query={"measure": self._measure})
        self.show(self.partiscope.snapshot)


def _legend() -> str:
    return f"[dim]{SHADES[1]} little {SHADES[-1]} much[/dim]"


def _grid(heat: HeatMap, room: int, to_text: Callable[[float], str]) -> Text:
    known = [v for row in heat.values for v in row if not isnan(v) and v > 0]
    low, high = (min(known), max(known)) if known else (1.0, 1.0)
    text = Text()
    for place, topic in enumerate(heat.topics):
        text.append(f" {topic:<{NAME_WIDTH}.{NAME_WIDTH}}")
        for row in heat.values[:room]:
            value = row[place]
            if isnan(value):
                text.append(f"{NONE:>{CELL_WIDTH}}", style="dim")
                continue
            level = _level(value, low, high)
            words = f"{to_text(value)} {SHADES[level] * 2}"
            text.append(f"{words:>{CELL_WIDTH}}", style=_STYLES[level])
        text.append("\n")
    return text


def _level(value: float, low: float, high: float) -> int:
    """0 for nothing, else 1 to 4 by the logarithm between the least and the most."""
    if value <= 0:
        return 0
    if high <= low:
        return 2
    return 1 + min(3, int(4 * log(value / low) / log(high / low)))
