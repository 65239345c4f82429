"""One key after the other, however many arrive at once."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from textual.app import App
from textual.dom import DOMNode
from textual.events import Event, Key
from textual.screen import Screen

HELD_S_MAX: Final = 0.5
"""A key whose widget is gone before it has dealt with it holds the next ones no longer."""
QUIET_ROUNDS: Final = 2
"""Rounds from the focus to the app without anything left in a queue."""


class KeysInOrder(App[None]):
    """Hands out a key once the one before has been dealt with.

    Textual puts a key into the queue of the widget that has the focus, from where it rises to the
    app; Tab, Backspace and all other bindings act only there. A letter that came with it would be
    taken by the first widget meanwhile, and "ab", Backspace, "c" would be "ab". Keys do come
    together, over SSH or where the machine is busy (Textual issue 6605).
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._keys: deque[Key] = deque()
        self._on_its_way: Key | None = None
        self._quiet_rounds = 0

    async def on_event(self, event: Event) -> None:
        """Keys that come from the terminal wait for their turn."""
        if isinstance(event, Key) and not event.is_forwarded:
            self._keys.append(event)
            await self._hand_out()
        else:
            await super().on_event(event)

    async def _hand_out(self) -> None:
        while self._keys and self._on_its_way is None:
            if not self.screen.is_mounted:
                self._wait_for(self.screen)
                return
            key, taker = self._keys.popleft(), self.focused or self.screen
            self._on_its_way = key
            await super().on_event(key)
            if key.is_forwarded:
                self.set_timer(HELD_S_MAX, lambda key=key: self._dealt_with(key))
                self._follow(key, taker)
            else:
                self._on_its_way = None

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
