"""A text field for the name of a topic or group, completed from the names that are known."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from textual.suggester import Suggester
from textual.widgets import Input

from control.views.printable import printable

HINT: Final = "→ completes"


class NameInput(Input):
    """Takes any name, also one that no figures tell of yet; names are shown printable."""

    def __init__(self, given: str, widget_id: str) -> None:
        super().__init__(
            printable(given),
            id=widget_id,
            compact=True,
            placeholder=HINT,
            suggester=_Known(use_cache=False),
        )
        self._names = {printable(given): given}

    def offer(self, names: Iterable[str]) -> None:
        """The names to complete from, as they are on the cluster."""
        self._names |= {printable(name): name for name in names}
        assert isinstance(self.suggester, _Known)
        self.suggester.shown = sorted(self._names)

    @property
    def typed_name(self) -> str:
        """The name itself, whatever had to be escaped to show it."""
        text = self.value if self.value in self._names else self.value.strip()
        return self._names.get(text, text)


class _Known(Suggester):
    """The first known name, in order, that begins with what is typed."""

    shown: tuple[str, ...] | list[str] = ()

    async def get_suggestion(self, value: str) -> str | None:
        at = bisect_left(self.shown, value)
        return next((it for it in self.shown[at : at + 1] if it.startswith(value)), None)
