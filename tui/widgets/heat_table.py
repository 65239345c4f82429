"""Topics by brokers as a table of shades: the cursor stands on a cell, Enter opens it."""

from math import isnan, log
from typing import Final

from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from control.views.format import NONE, ToText
from control.views.paths import ViewPath
from control.views.snapshots.overview import REST, HeatMap
from tui.messages import PathChosen
from tui.widgets.kept_cursor import KeptCursorTable

SHADES: Final = "·░▒▓█"
SHADE_STYLES: Final = ("dim", "blue", "cyan", "yellow", "bold red")
NAME_WIDTH: Final = 24
VALUE_WIDTH: Final = 11
NAMES: Final = "topic"
"""Key of the column of names."""


class HeatTable(KeptCursorTable):
    """Shades by the logarithm: sizes of topics differ by orders of magnitude."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 (Textual's name)
        super().__init__(id=id, cursor_type="cell", fixed_columns=1)
        self._topics: list[str] = []
        self._brokers: list[int] = []
        self._selected: tuple[str, str] | None = None
        """Topic and broker of the cell under the cursor when topics or brokers last changed."""

    @property
    def topic(self) -> str:
        """Topic of the row under the cursor; empty on the sum of the rest, or if it is gone."""
        name = self._name_at(self.cursor_row)
        return "" if name == REST or not self.show_cursor else name

    @property
    def broker(self) -> str:
        """Broker of the column under the cursor; empty on the names, or if it is gone."""
        return self._broker_at(self.cursor_column) if self.show_cursor else ""

    def show(self, heat: HeatMap, to_text: ToText) -> None:
        """A newer map; the cursor stays with its topic and broker."""
        if (list(heat.topics), list(heat.brokers)) != (self._topics, self._brokers):
            self._rebuild(heat)
        low, high = ends_of(heat)
        for column, cells in enumerate(zip(heat.values, heat.words(to_text), strict=True), 1):
            for row, (value, words) in enumerate(zip(*cells, strict=True)):
                place, text = Coordinate(row, column), _cell(value, words, low, high)
                if self.get_cell_at(place) != text:
                    self.update_cell_at(place, text)

    def on_data_table_cell_selected(self, event: DataTable.CellSelected) -> None:
        """The partitions behind the cell: of its topic, on its broker."""
        event.stop()
        topic, broker = str(event.cell_key.row_key.value), str(event.cell_key.column_key.value)
        terms = [f"topic={topic}"] if topic != REST else []
        terms += [f"broker:{broker}"] if broker != NAMES else []
        self.post_message(
            PathChosen(str(ViewPath(view="partitions", query={"q": " ".join(terms)})))
        )

    def _rebuild(self, heat: HeatMap) -> None:
        place = self.cursor_coordinate
        if self._topics and self.show_cursor:
            self._selected = (self._name_at(place.row), self._broker_at(place.column))
        self._topics, self._brokers = list(heat.topics), list(heat.brokers)
        with self.app.batch_update():
            self.clear(columns=True)
            self.add_column("topic", width=NAME_WIDTH, key=NAMES)
            for broker in map(str, heat.brokers):
                self.add_column(Text(broker, justify="right"), width=VALUE_WIDTH, key=broker)
            for topic in heat.topics:
                name = Text(topic, no_wrap=True, overflow="ellipsis")
                self.add_row(name, *[Text()] * len(heat.brokers), key=topic)
            self._stand_again(place)

    def _stand_again(self, before: Coordinate) -> None:
        """On the cell that was selected, else near the place that it had."""
        topic, broker = self._selected or ("", "")
        brokers = ["", *map(str, self._brokers)]
        is_known = topic in self._topics and broker in brokers
        row = self._topics.index(topic) if topic in self._topics else before.row
        column = brokers.index(broker) if broker in brokers else before.column
        place = Coordinate(row, max(column, 1 if self._selected is None else 0))
        self.stand(place, is_same=is_known or self._selected is None)

    def _name_at(self, row: int) -> str:
        return self._topics[row] if 0 <= row < len(self._topics) else ""

    def _broker_at(self, column: int) -> str:
        return str(self._brokers[column - 1]) if 0 < column <= len(self._brokers) else ""


def ends_of(heat: HeatMap) -> tuple[float, float]:
    """The least and the most of all cells that have any."""
    known = [value for row in heat.values for value in row if not isnan(value) and value > 0]
    return (min(known), max(known)) if known else (1.0, 1.0)


def _cell(value: float, words: str, low: float, high: float) -> Text:
    if isnan(value):
        return Text(words or NONE, style="dim", justify="right")
    level = _level(value, low, high)
    if len(words) > VALUE_WIDTH and "," in words:  # a number that is cut would be another one
        words = f"{'≥ ' if words[0] == '≥' else ''}{value:.1e}"
    shaded = f"{words} {SHADES[level] * 2}"
    return Text(shaded, style=SHADE_STYLES[level], justify="right", no_wrap=True)


def _level(value: float, low: float, high: float) -> int:
    """0 for nothing, else 1 to 4 by the logarithm between the least and the most."""
    if value <= 0:
        return 0
    if high <= low:
        return 2
    return 1 + min(3, int(4 * log(value / low) / log(high / low)))
