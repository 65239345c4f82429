"""Textual's application with what it lacks in a terminal that is slow, shared or far away."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from textual.app import App
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.events import Event, Key
from textual.notifications import SeverityLevel
from textual.screen import Screen

from control.views.printable import printable_in_place
from tui.terminal.driver import SparingDriver
from tui.terminal.no_color import NoColors

HELD_S_MAX: Final = 0.5
"""A key whose widget is gone before it has dealt with it holds the next ones no longer."""
HELD_AGAIN_S: Final = 0.03
QUIET_ROUNDS: Final = 2
"""Rounds from the focus to the app without anything left in a queue."""


class TerminalApp(App[None]):
    """Hands out a key once the one before has been dealt with; sends only cells that changed.

    Textual puts a key into the queue of the widget that has the focus, from where it rises to the
    app; Tab, Backspace and all other bindings act only there. A letter that came with it would be
    taken by the first widget meanwhile, and "ab", Backspace, "c" would be "ab". Keys do come
    together, over SSH or where the machine is busy. Waits for Textual issue 6605.
    """

    def __init__(self) -> None:
        super().__init__(driver_class=SparingDriver)
        if self.no_color:
            self._filters[-1:] = [NoColors()]
        self._keys: deque[Key] = deque()
        self._on_its_way: Key | None = None
        self._quiet_rounds = 0

    @property
    def holds_keys(self) -> bool:
        """Hook: keys wait for what takes them next."""
        return False

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Every message is text as it is: it may hold names that others chose."""
        _ = markup
        words = printable_in_place(message)
        super().notify(words, title=title, severity=severity, timeout=timeout, markup=False)

    def on_resize(self) -> None:
        """Terminals move text about when their size changes."""
        self._forget_screen()

    def action_repaint(self) -> None:
        """``ctrl+l``: somebody else wrote on this terminal."""
        self._forget_screen()
        self.refresh()

    def action_mouse(self) -> None:
        """``M``: the mouse is ours, or the terminal's, which then selects text with it."""
        if isinstance(self._driver, SparingDriver):
            is_ours = self._driver.turn_mouse()
            ours = "mouse on: clicks select and open here; M gives it back to the terminal"
            theirs = "mouse off: the terminal selects text with it; M turns it on"
            self.notify(ours if is_ours else theirs)

    def _forget_screen(self) -> None:
        if isinstance(self._driver, SparingDriver):
            self._driver.forget()

    def _handle_exception(self, error: Exception) -> None:
        """A view that was still being built when the application was left lacks its widgets."""
        if isinstance(error, NoMatches) and (self._exit or not self.is_running):
            return
        super()._handle_exception(error)

    async def on_event(self, event: Event) -> None:
        """Keys that come from the terminal wait for their turn."""
        if isinstance(event, Key) and not event.is_forwarded:
            self._keys.append(event)
            await self._hand_out()
        else:
            await super().on_event(event)

    async def _hand_out(self) -> None:
        while self._keys and self._on_its_way is None and self.screen_stack:
            if not self.screen.is_mounted:
                self._wait_for(self.screen)
                return
            if self.holds_keys:
                self.set_timer(HELD_AGAIN_S, self._hand_out)
                return
            key, taker = self._keys.popleft(), self.focused or self.screen
            self._on_its_way = key
            await super().on_event(key)
            # One that a binding took at once may have sent a message that opens a view.
            self.set_timer(HELD_S_MAX, lambda key=key: self._dealt_with(key))
            self._follow(key, taker)

    def _wait_for(self, screen: Screen[Any]) -> None:
        """Keys are for what is seen next: until it has its widgets, and one of them the focus."""
        if not screen.call_later(self.call_later, self._hand_out):
            self.set_timer(HELD_S_MAX, self._hand_out)

    def _follow(self, key: Key, node: DOMNode | None) -> None:
        """Right behind the key, through the same queues."""
        if node is None or node is self or not node.call_later(self._follow, key, node.parent):
            self.call_later(self._arrived, key)

    async def _arrived(self, key: Key) -> None:
        """Waits for the effects of a key too (a row opens, a filter closes): a message between two
        queues gets another round."""
        is_busy = any(node.message_queue_size for node in self._takers())
        self._quiet_rounds = 0 if is_busy else self._quiet_rounds + 1
        if self._on_its_way is key and self._quiet_rounds < QUIET_ROUNDS:
            self._follow(key, self.focused or self.screen)
        else:
            await self._dealt_with(key)

    def _takers(self) -> list[DOMNode]:
        return [*(self.focused or self.screen).ancestors_with_self]

    async def _dealt_with(self, key: Key) -> None:
        if self._on_its_way is key:
            self._on_its_way, self._quiet_rounds = None, 0
            await self._hand_out()
