"""The map: topic by broker, darker where more is; one measure at a time."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from control.views.format import ToText, byte_rate_text, bytes_text, count_text
from control.views.paths import ViewPath
from control.views.snapshot import OperatorSnapshot
from tui.screens.base import ViewScreen
from tui.screens.views import build_screen
from tui.widgets.heat_table import SHADES, HeatTable

MEASURES: Final[dict[str, tuple[str, ToText]]] = {
    "size_bytes": ("bytes", bytes_text),
    "replicas": ("replicas", count_text),
    "leaders": ("leaders", count_text),
    "in_bytes_per_s": ("in/s", byte_rate_text),
    "lag": ("lag", count_text),
}


class MapScreen(ViewScreen):
    """Enter opens the partitions behind a cell; ``m`` or a digit takes another measure."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "measure", "measure", show=True),
        Binding("b", "by_partitions", "by partition", show=True),
        *(Binding(str(n), f"measure({n})", show=False) for n in range(1, len(MEASURES) + 1)),
    ]

    def __init__(self, path: ViewPath) -> None:
        super().__init__(path)
        wanted = path.query.get("measure", "")
        self._measure = wanted if wanted in MEASURES else next(iter(MEASURES))

    def compose_body(self) -> ComposeResult:
        """What is shown, then the grid."""
        yield Static(id="map-title", classes="title")
        yield HeatTable(id="map")

    def on_mount(self) -> None:
        """The grid has the keys."""
        self.query_one(HeatTable).focus()

    @property
    def topic_here(self) -> str:
        """Of the row under the cursor."""
        return self.query_one(HeatTable).topic

    @property
    def loss_here(self) -> ViewPath:
        """The broker of the column under the cursor."""
        return ViewPath(view="what-if", query={"broker": self.query_one(HeatTable).broker})

    def show(self, snapshot: OperatorSnapshot) -> None:
        """The present measure."""
        heat = snapshot.heat_map(self._measure)
        title = Text.assemble(("MAP", "bold"), "  ")
        for number, (name, (words, _)) in enumerate(MEASURES.items(), 1):
            style = "reverse" if name == self._measure else "dim"
            title.append(f" {number} {words} ", style=style)
        title.append(f" topic × broker, {SHADES[1]} to {SHADES[-1]}", style="dim")
        self.put("#map-title", title)
        self.query_one(HeatTable).show(heat, MEASURES[self._measure][1])

    def action_by_partitions(self) -> None:
        """Every partition as one cell."""
        path = ViewPath(view="map", query={"by": "partitions"})
        self.app.switch_screen(build_screen(path))

    def action_measure(self, number: int | None = None) -> None:
        """The next measure, or that of a digit."""
        names = list(MEASURES)
        place = names.index(self._measure) + 1 if number is None else number - 1
        self._measure = names[place % len(names)]
        self.path = ViewPath(view="map", query={"measure": self._measure})
        self.show(self.partiscope.snapshot)
