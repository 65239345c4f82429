"""Keys whose operation the principal may not do on a watched cluster: greyed, and they say why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from textual.events import Key

from tui.keys_in_order import KeysInOrder
from tui.screens.base import ViewScreen

if TYPE_CHECKING:
    from control.views.snapshots.snapshot import OperatorSnapshot

_FORMS: Final = {"plan": "reassign", "produce": "produce"}
"""The operation behind the view that a key opens."""


class RightsScreen(ViewScreen):
    """A view with keys of its own that change something."""

    NEEDS: ClassVar[Mapping[str, str]] = {}
    """Per action, the operation of the catalogue that must be allowed."""

    def needed(self, action: str) -> str:
        """The operation that must be allowed for an action; empty: none."""
        return self.NEEDS.get(action, "")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None greys a key."""
        denied = self.partiscope.snapshot.denied_operations
        return None if self.needed(action) in denied else True


class GreyedKeys(KeysInOrder):
    """Rights come and go while it runs; the keys follow."""

    @property
    def snapshot(self) -> OperatorSnapshot:
        """The snapshot that the screens show."""
        raise AssertionError("PartiscopeApp has it")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None greys a key; the letters of places are keys only while one is to be chosen."""
        if action in {"go_to", "stay"}:
            return isinstance(self.screen, ViewScreen) and self.screen.is_going
        form = _FORMS.get(str(parameters[0])) if action == "operate" else None
        return None if form in self.snapshot.denied_operations else True

    def on_key(self, event: Key) -> None:
        """Greyed keys do nothing by themselves."""
        active = self.active_bindings.get(event.key)
        if active is None or active.enabled or not isinstance(self.screen, ViewScreen):
            return
        action = active.binding.action
        own = self.screen.needed(action) if isinstance(self.screen, RightsScreen) else ""
        self.is_denied(own or action.removeprefix("operate('").removesuffix("')"))

    def is_denied(self, name: str) -> bool:
        """Whether a right lacks for an operation, or for that of a view; it is told then."""
        words = self.snapshot.denied_words(_FORMS.get(name, name))
        if words:
            self.notify(words, severity="warning", markup=False)
        return bool(words)
