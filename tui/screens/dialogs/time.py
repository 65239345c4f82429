"""``@``: which time, and how much of it in charts?"""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from control.views.format import duration_text
from control.views.snapshots.past import AHEAD_MS_MAX
from control.views.times import RANGE_DEFAULT, RANGES, TimeError, parse_moment

AGES: Final = {
    "1m": "1 minute ago",
    "10m": "10 minutes ago",
    "1h": "1 hour ago",
    "6h": "6 hours ago",
    "1d": "1 day ago",
    "7d": "7 days ago",
}
NOW: Final = "0s"
_RANGE: Final = "range "


class TimeScreen(ModalScreen[int | str | None]):
    """A choice of ages, answered in ms since the epoch, and of ranges for charts, answered as a
    path has them; what is typed is a time of one's own. None: as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "as it was")]

    def __init__(self, *, now_ms: int, is_past: bool, range_: str) -> None:
        super().__init__()
        self._now_ms = now_ms
        self._range = range_ or RANGE_DEFAULT
        self._choices = {NOW: "back to now", **AGES} if is_past else AGES

    def compose(self) -> ComposeResult:
        """Ages, and a field."""
        with Vertical(id="confirm"):
            yield Static("Tables, findings and charts as of")
            yield OptionList(
                *(Option(words, id=age) for age, words in self._choices.items()),
                None,
                *(Option(self._range_line(name), id=f"{_RANGE}{name}") for name in RANGES),
                id="ages",
            )
            yield Input(
                id="time",
                compact=True,
                select_on_focus=False,
                placeholder="or type: 18:05, 30m (ago), 2026-11-21T09:00",
            )
            yield Static("", id="time-problem", classes="wrong", markup=False)

    def on_key(self, event: Key) -> None:
        """Typing goes into the field from wherever the cursor is."""
        field = self.query_one("#time", Input)
        if event.is_printable and event.character and not field.has_focus:
            event.stop()
            field.focus()
            field.insert_text_at_cursor(event.character)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """One of the ages."""
        event.stop()
        name = event.option.id or NOW
        if name.startswith(_RANGE):
            self.dismiss(name.removeprefix(_RANGE))
        else:
            self._choose(name)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A time of one's own; an empty one is now."""
        event.stop()
        self._choose(event.value.strip() or NOW)

    def _range_line(self, name: str) -> str:
        return f"charts: the last {RANGES[name]}{'  ✔' if name == self._range else ''}"

    def _choose(self, words: str) -> None:
        try:
            at_ms = parse_moment(words, now_ms=self._now_ms)
        except TimeError as error:
            self.query_one("#time-problem", Static).update(str(error))
            return
        if at_ms > self._now_ms + AHEAD_MS_MAX:
            ahead = duration_text(at_ms - self._now_ms)
            words = f"{words!r} is in the future, {ahead} from now: choose a past time"
            self.query_one("#time-problem", Static).update(words)
        else:
            self.dismiss(at_ms)
