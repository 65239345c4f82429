"""Topics by brokers as a table of shades: the cursor stands on a cell, Enter opens it."""

from math import isnan, log
from typing import Final

from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from control.views.format import NONE, ToText
from control.views.overview import REST, HeatMap
from control.views.paths import ViewPath
from tui.messages import PathChosen

SHADES: Final = "·░▒▓█"
SHADE_STYLES: Final = ("dim", "blue", "cyan", "yellow", "bold red")
NAME_WIDTH: Final = 24
VALUE_WIDTH: Final = 11


class HeatTable(DataTable[Text]):
    """Shades by the logarithm: sizes of topics differ by orders of magnitude."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 (Textual's name)
        super().__init__(id=id, cursor_type="cell", zebra_stripes=False, fixed_columns=1)
        self._topics: list[str] = []
        self._brokers: list[int] = []

    @property
    def topic(self) -> str:
        """Of the row under the cursor; empty on the sum of the rest."""
        at = self.cursor_row
        name = self._topics[at] if 0 <= at < len(self._topics) else ""
        return "" if name == REST else name

    @property
    def broker(self) -> str:
        """Of the column under the cursor; empty on the names."""
        at = self.cursor_column - 1
        return str(self._brokers[at]) if 0 <= at < len(self._brokers) else ""

    def show(self, heat: HeatMap, to_text: ToText) -> None:
        """A newer map; cursor and scroll stay while topics and brokers are the same."""
        if (list(heat.topics), list(heat.brokers)) != (self._topics, self._brokers):
            self._rebuild(heat)
        low, high = ends_of(heat)
        for column, values in enumerate(heat.values, 1):
            for row, value in enumerate(values):
                place, text = Coordinate(row, column), _cell(value, low, high, to_text)
                if self.get_cell_at(place) != text:
                    self.update_cell_at(place, text)

    def on_data_table_cell_selected(self, event: DataTable.CellSelected) -> None:
        """The partitions behind the cell: of its topic, on its broker."""
        event.stop()
        terms = [f"topic={self.topic}"] if self.topic else []
        terms += [f"broker:{self.broker}"] if self.broker else []
        self.post_message(
            PathChosen(str(ViewPath(view="partitions", query={"q": " ".join(terms)})))
        )

    def _rebuild(self, heat: HeatMap) -> None:
        at = self.cursor_coordinate
        self._topics, self._brokers = list(heat.topics), list(heat.brokers)
        self.clear(columns=True)
        self.add_column("topic", width=NAME_WIDTH)
        for broker in heat.brokers:
            self.add_column(Text(str(broker), justify="right"), width=VALUE_WIDTH)
        for topic in heat.topics:
            self.add_row(
                Text(topic, no_wrap=True, overflow="ellipsis"), *[Text()] * len(heat.brokers)
            )
        self.move_cursor(row=at.row, column=max(at.column, 1), animate=False)


def ends_of(heat: HeatMap) -> tuple[float, float]:
    """The least and the most of all cells that have any."""
    known = [value for row in heat.values for value in row if not isnan(value) and value > 0]
    return (min(known), max(known)) if known else (1.0, 1.0)


def _cell(value: float, low: float, high: float, to_text: ToText) -> Text:
    if isnan(value):
        return Text(NONE, style="dim", justify="right")
    level = _level(value, low, high)
    words = f"{to_text(value)} {SHADES[level] * 2}"
    return Text(words, style=SHADE_STYLES[level], justify="right", no_wrap=True)


def _level(value: float, low: float, high: float) -> int:
    """0 for nothing, else 1 to 4 by the logarithm between the least and the most."""
    if value <= 0:
        return 0
    if high <= low:
        return 2
    return 1 + min(3, int(4 * log(value / low) / log(high / low)))
