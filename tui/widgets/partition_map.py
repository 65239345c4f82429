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

from control.views.cluster.partition_map import LEVELS, PartitionMap
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
        self._standing: tuple[str, int] | None = None
        """Topic and partition under the cursor, or that were there until they disappeared."""
        self._is_gone = False

    @property
    def pointed(self) -> dict[str, Any] | None:
        """Name, place and value of the cell under the cursor; None: its partition is gone."""
        if self._map is None or self._is_gone:
            return None
        return self._map.record(*self._at)

    def show(self, found: PartitionMap) -> None:
        """A newer map; the cursor stays on its partition. Where that is gone, the cursor stands on
        none until it is moved."""
        before, self._map = self._shades, found
        self._follow(found)
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
        if row == self._at[0] and not self._is_gone:
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
        self._is_gone = False
        self._remember()
        self._repaint([before[0], row])
        self.scroll_to_region(Region(0, row, 1, 1), animate=False)
        self._tell()

    def action_open(self) -> None:
        """The partition under the cursor."""
        record = self.pointed
        if record is not None:
            self.post_message(PathChosen(record["path"]))

    def _follow(self, found: PartitionMap) -> None:
        before, near = self._at, self._at[0] * found.columns + self._at[1]
        if self._standing is not None:
            cell = found.cell_of(*self._standing, near=near)
            self._is_gone = cell is None
            last = max(len(found.values) - 1, 0)
            row, column = divmod(min(near, last) if cell is None else cell, max(found.columns, 1))
            self._at = (row, column)
        else:
            self._remember()
        if self._at != before:
            self._repaint([before[0], self._at[0]])
            self.scroll_to_region(Region(0, self._at[0], 1, 1), animate=False)

    def _remember(self) -> None:
        record = self.pointed
        self._standing = None if record is None else (record["topic"], record["partition"])

    def _repaint(self, rows: list[int]) -> None:
        for row in rows:
            self.refresh(Region(0, row - self.scroll_offset.y, self.size.width, 1))

    def _tell(self) -> None:
        self.post_message(self.CellPointed(self.pointed))
