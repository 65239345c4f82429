"""A step of the tour: what is shown here, and the keys that go on, back or end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from control.views.tour import STEPS, TITLE

_KEYS: Final = (
    "[@click=next][bold]Enter[/] $on[/]  [@click=back][bold]←[/] back[/]"
    "  [@click=leave][bold]Esc[/] end tour[/]  [dim][bold]Tab[/] into the view[/]"
)


class TourPanel(Static, can_focus=True):
    """Stands below the top bar and has the keys until Tab leads into the view."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right,greater_than_sign", "next", "next", show=False),
        Binding("left,less_than_sign", "back", "back", show=False),
        Binding("escape", "leave", "end tour", show=False),
    ]

    def __init__(self, place: int, *, go: Callable[[int], None], leave: Callable[[], None]) -> None:
        """``go`` to another step, or ``leave`` the tour."""
        step = STEPS[place]
        is_last = place == len(STEPS) - 1
        keys = Content.from_markup(_KEYS, on="done" if is_last else "next")
        head = Content.from_markup(
            "[bold]$tour $number of $count: $title[/]",
            tour=TITLE.upper(), number=str(place + 1), count=str(len(STEPS)), title=step.title,
        )  # fmt: skip
        super().__init__(Content("\n").join([head, Content(step.words), keys]), id="tour")
        self.place = place
        self._go, self._leave = go, leave

    def action_next(self) -> None:
        """The next one; past the last the tour ends."""
        self._go(self.place + 1)

    def action_back(self) -> None:
        """The one before; the first has none."""
        if self.place:
            self._go(self.place - 1)

    def action_leave(self) -> None:
        """End the tour."""
        self._leave()
