"""``@``: charts at which time?"""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from control.views.times import TimeError, parse_moment


class TimeScreen(ModalScreen[int | None]):
    """A time, or how long ago; empty is now."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "now")]

    def __init__(self, *, now_ms: int) -> None:
        super().__init__()
        self._now_ms = now_ms

    def compose(self) -> ComposeResult:
        """One field."""
        with Vertical(id="confirm"):
            yield Static("Charts until: 30m (ago), 2h, 2026-11-21T09:00; empty is now")
            yield Input(id="time", compact=True)
            yield Static("", id="time-problem", classes="wrong")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A time closes the question."""
        event.stop()
        if not event.value.strip():
            self.dismiss(None)
            return
        try:
            at_ms = parse_moment(event.value, now_ms=self._now_ms)
        except TimeError as error:
            self.query_one("#time-problem", Static).update(str(error))
            return
        self.dismiss(at_ms)
