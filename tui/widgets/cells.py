"""Every partition as one cell of a shade: the cursor stands on one, Enter opens it."""

from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from control.views.partition_map import LEVELS, PartitionMap
from tui.messages import PathChosen
from tui.widgets.heat_table import SHADE_STYLES, SHADES

_STYLES: Final = tuple(Style.parse(style) for style in SHADE_STYLES)
_CURSOR: Final = Style(reverse=True)
_FAR: Final = 1 << 30
_KEYS: Final = {
    "left,h": (0, -1), "right,l": (0, 1), "up,k": (-1, 0), "down,j": (1, 0),
    "pageup": (-10, 0), "pagedown": (10, 0), "home": (-_FAR, -_FAR), "end": (_FAR, _FAR),
}  # fmt: skip


class CellsMap(ScrollView, can_focus=True):
    """As wide as the screen, scrolled up and down; only rows that changed are painted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key, f"move({down}, {right})", show=False)
            for key, (down, right) in _KEYS.items()
        ),
        Binding("enter", "open", "open", show=True),
    ]

    class CellPointed(Message):
        """The cursor stands on another cell, or what is under it has changed."""

        def __init__(self, record: dict[str, Any] | None) -> None:
            super().__init__()
            self.record = record

    def __init__(self, *, id: str) -> None:  # noqa: A002 (Textual's name)
        super().__init__(id=id)
        self._map: PartitionMap | None = None
        self._shades = np.zeros((0, 0), dtype=np.int64)
        self._at = (0, 0)

    @property
    def pointed(self) -> dict[str, Any] | None:
        """Name, place and value of the cell under the cursor."""
        return None if self._map is None else self._map.record(*self._at)

    def show(self, found: PartitionMap) -> None:
        """A newer map; the cursor stays where it is."""
        before, self._map = self._shades, found
        levels = found.levels().reshape(found.rows, found.columns).astype(np.int64)
        steps = len(SHADES) - 1
        self._shades = np.where(levels > 0, 1 + (levels - 1) * steps // LEVELS, 0)
        if before.shape != self._shades.shape:
            self.virtual_size = Size(found.columns, found.rows)
            self.refresh()
        else:
            self._repaint(np.flatnonzero((before != self._shades).any(axis=1)).tolist())
        self._tell()

    def render_line(self, y: int) -> Strip:
        """One row of cells, runs of a shade as one piece."""
        row = y + self.scroll_offset.y
        if self._map is None or row >= len(self._shades):
            return Strip.blank(self.size.width, self.rich_style)
        count = min(self._map.columns, len(self._map.values) - row * self._map.columns)
        shades = self._shades[row, :count]
        cuts = [0, *(np.flatnonzero(np.diff(shades)) + 1).tolist(), count]
        strip = Strip(
            [
                Segment(SHADES[shades[start]] * (end - start), _STYLES[shades[start]])
                for start, end in pairwise(cuts)
            ]
        )
        if row == self._at[0]:
            left, at, right = strip.divide([self._at[1], self._at[1] + 1, count])
            strip = Strip.join([left, at.apply_style(_CURSOR), right])
        return strip.extend_cell_length(self.size.width, self.rich_style)

    def action_move(self, down: int, right: int) -> None:
        """The cursor, so many cells; it stays on a partition."""
        if self._map is None or not len(self._map.values):
            return
        row = min(max(self._at[0] + down, 0), self._map.rows - 1)
        last = min(self._map.columns, len(self._map.values) - row * self._map.columns) - 1
        before, self._at = self._at, (row, min(max(self._at[1] + right, 0), last))
        self._repaint([before[0], row])
        self.scroll_to_region(Region(0, row, 1, 1), animate=False)
        self._tell()

    def action_open(self) -> None:
        """The partition under the cursor."""
        record = self.pointed
        if record is not None:
            self.post_message(PathChosen(record["path"]))

    def _repaint(self, rows: list[int]) -> None:
        for row in rows:
            self.refresh(Region(0, row - self.scroll_offset.y, self.size.width, 1))

    def _tell(self) -> None:
        self.post_message(self.CellPointed(self.pointed))
