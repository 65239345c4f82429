"""The map: topic by broker, darker where more is; one measure at a time."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from control.views.format import ToText, byte_rate_text, bytes_text, count_text
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.messages import PathChosen
from tui.screens.maps.map_base import MeasuredMap
from tui.widgets.heat_table import SHADES, HeatTable, ends_of

MEASURES: Final[dict[str, tuple[str, ToText]]] = {
    "size_bytes": ("bytes", bytes_text),
    "replicas": ("replicas", count_text),
    "leaders": ("leaders", count_text),
    "in_bytes_per_s": ("in/s", byte_rate_text),
    "lag": ("total lag", count_text),
}


class MapScreen(MeasuredMap):
    """Enter opens the partitions behind a cell; ``m`` or a digit takes another measure."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("b", "by_partitions", "by partition", show=True),
    ]

    words: ClassVar = {name: words for name, (words, _) in MEASURES.items()}

    def compose_body(self) -> ComposeResult:
        """Title, then the grid."""
        yield Static(id="map-title", classes="title")
        yield HeatTable(id="map")

    def on_mount(self) -> None:
        """The grid has the keys."""
        self.query_one(HeatTable).focus()

    @property
    def topic_here(self) -> str:
        """Topic of the row under the cursor."""
        return self.query_one(HeatTable).topic

    @property
    def loss_here(self) -> ViewPath:
        """The broker of the column under the cursor."""
        return ViewPath(view="what-if", query={"broker": self.query_one(HeatTable).broker})

    def show(self, snapshot: OperatorSnapshot) -> None:
        """The present measure."""
        heat = snapshot.heat_map(self._measure)
        title = self.measures_title()
        to_text = MEASURES[self._measure][1]
        low, high = map(to_text, ends_of(heat))
        title.append(f" {SHADES[1]} {low} to {SHADES[-1]} {high}  topic × broker", style="dim")
        self.put("#map-title", title)
        self.query_one(HeatTable).show(heat, to_text)

    def action_by_partitions(self) -> None:
        """Every partition as one cell."""
        self.post_message(PathChosen("map?by=partitions", is_instead=True))
