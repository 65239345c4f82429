"""Operations that are no view: a key or the palette opens their form about what is here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from textual.app import SystemCommand
from textual.events import Key

from tui.rights import GreyedKeys
from tui.screens.base import ViewScreen

VIEWS_OF_FORMS: Final = {"reassign": "plan", "produce": "produce"}
"""Operations that have a view of their own."""


COPIES: Final = 3
"""Of a new topic, where there are as many brokers."""


class OperationKeys(GreyedKeys):
    """The catalogue of operations brings a Kafka client along: it is loaded when first needed."""

    def on_key(self, event: Key) -> None:
        """A key that nobody else has taken may be that of an operation."""
        is_free = event.is_printable and event.key not in self.active_bindings
        if not is_free or not isinstance(self.screen, ViewScreen):
            return
        from control.operations.catalogue import FORMS

        for form in FORMS:
            if form.key == event.key and form.name not in VIEWS_OF_FORMS:
                event.stop()
                self.action_form(form.name)

    def action_form(self, name: str) -> None:
        """The dialog of an operation, filled in with what is here."""
        here = self.screen
        brokers = self.snapshot.cluster.brokers.num_rows or COPIES
        given = {"replication_factor": str(min(COPIES, brokers))}
        if isinstance(here, ViewScreen) and name != "create_topic":
            given = here.given_here
        self.open_form(name, given)

    def open_form(self, name: str, given: Mapping[str, str]) -> None:
        """The dialog of an operation, filled in."""
        if self.is_denied(name):
            return
        from control.operations.catalogue import form_named
        from tui.screens.operation import OperationScreen

        self.push_screen(OperationScreen(form_named(name), given), self._performed)

    def operation_commands(self) -> Iterator[SystemCommand]:
        """For the palette."""
        from control.operations.catalogue import FORMS

        for form in FORMS:
            if form.name not in VIEWS_OF_FORMS:
                words = self.snapshot.denied_words(form.name) or f"{form.help} ({form.key})"
                yield SystemCommand(form.title, words, partial(self.action_form, form.name))

    def action_open(self, path: str) -> None:
        """Show the view of a path."""
        raise AssertionError("Navigation has it")

    def _performed(self, path: str | None) -> None:
        """To where it is seen; a view of what is below that may be gone, so Esc must not lead
        there."""
        if path:
            while isinstance(self.screen, ViewScreen) and _is_below(self.screen, path):
                self.pop_screen()
            self.action_open(path)


def _is_below(screen: ViewScreen, path: str) -> bool:
    return str(screen.path).startswith(f"{path}/")
