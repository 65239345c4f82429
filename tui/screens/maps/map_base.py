"""Base of maps: one measure at a time, chosen by ``m`` or a digit."""

from collections.abc import Mapping
from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType

from control.views.paths import ViewPath
from tui.screens.base import ViewScreen
from tui.terminal_session import TerminalSession

DIGITS: Final = range(1, 10)


class MeasuredMap(ViewScreen):
    """``words`` tells the measures in their order: by what a path calls them, what is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "measure", "measure", show=True),
        *(Binding(str(n), f"measure({n})", show=False) for n in DIGITS),
    ]
    words: ClassVar[Mapping[str, str]]

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        wanted = path.query.get("measure", "")
        self._measure = wanted if wanted in self.words else next(iter(self.words))

    def measures_title(self) -> Text:
        """All measures with their digits, the present one marked."""
        title = Text.assemble(("MAP", "bold"), "  ")
        for number, (name, words) in enumerate(self.words.items(), 1):
            style = "reverse" if name == self._measure else "dim"
            title.append(f" {number} {words} ", style=style)
        return title

    def action_measure(self, number: int | None = None) -> None:
        """The next measure, or that of a digit."""
        names = list(self.words)
        if number is not None and number > len(names):
            return
        place = names.index(self._measure) + 1 if number is None else number - 1
        self._measure = names[place % len(names)]
        self.path = ViewPath(view="map", query={**self.path.query, "measure": self._measure})
        self.show(self.session.snapshot)
