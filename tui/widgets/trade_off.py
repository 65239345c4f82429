"""Cost and reach of a plan's alternatives, as a chart of text."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.widgets import Static

from control.views.plans import Offer, trade_off_lines

ROWS: Final = 5
WIDTH_MAX: Final = 100


class TradeOff(Static):
    """As wide as there is room; nothing where there is nothing to choose from."""

    _offers: Sequence[Offer] = ()

    def show(self, offers: Sequence[Offer]) -> None:
        """These, numbered as they are listed."""
        self._offers = offers
        self._draw()

    def on_resize(self) -> None:
        """Draw anew."""
        self._draw()

    def _draw(self) -> None:
        offers = self._offers
        width = min(self.container_size.width - 2, WIDTH_MAX)
        lines = trade_off_lines(offers, width=width, height=ROWS) if len(offers) > 1 else []
        self.update(Text("\n".join(lines), style="dim"))
        self.display = bool(lines)
