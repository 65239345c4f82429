"""Keys whose operation the principal may not do on a watched cluster: greyed, and they say why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.app import App
from textual.events import Key

from tui.screens.base import ViewScreen

if TYPE_CHECKING:
    from control.views.snapshot import OperatorSnapshot

_FORMS: Final = {"plan": "reassign", "produce": "produce"}
"""The operation behind the view that a key opens."""
_VIEWS: Final = {"R": "plan", "P": "produce"}


class GreyedKeys(App[None]):
    """Rights come and go while it runs; the keys follow."""

    @property
    def snapshot(self) -> OperatorSnapshot:
        """What the screens show."""
        raise AssertionError("PartiscopeApp has it")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None greys a key."""
        form = _FORMS.get(str(parameters[0])) if action == "operate" else None
        return None if form in self.snapshot.denied_operations else True

    def on_key(self, event: Key) -> None:
        """Greyed keys do nothing by themselves."""
        view = _VIEWS.get(event.key)
        if view is not None and isinstance(self.screen, ViewScreen):
            self.is_denied(view)

    def is_denied(self, name: str) -> bool:
        """Whether a right lacks for an operation, or for that of a view; it is told then."""
        words = self.snapshot.denied_words(_FORMS.get(name, name))
        if words:
            self.notify(words, severity="warning", markup=False)
        return bool(words)
