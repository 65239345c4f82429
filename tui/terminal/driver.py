"""Textual's driver of a terminal: only what changed is sent, Escape is a key of its own, and the
terminal is left as it was whatever ends the process. Its parser waits for Textual issue 6663."""

import asyncio
from codecs import getincrementaldecoder
from collections.abc import Iterable
from os import read
from select import select
from typing import Any, Final

from textual import constants
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key

from tui.terminal.ending import Ending
from tui.terminal.mirror import ScreenMirror

IDLE_S: Final = 0.1
"""How long input is waited for before it is looked whether the application has ended."""
READ_BYTES_MAX: Final = 4_096
_ESCAPE: Final = "\x1b"
_BEGINS_SEQUENCE: Final = frozenset("[OPX]^_\x1b\x7f")
"""After Escape: these begin a sequence, or (Backspace) are one that text fields know."""


class EscapeParser(XTermParser):
    """Escape and a key in one piece are these two keys.

    So they come when somebody types fast over SSH. Textual takes them for one key with Alt, which
    nothing here is bound to, or drops the Escape: Escape, Enter would confirm what was to be left.
    """

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[Key]:
        is_pair = len(sequence) == 2 and sequence[0] == _ESCAPE
        is_pair = is_pair and sequence[1] not in _BEGINS_SEQUENCE
        if alt or is_pair:
            yield Key("escape", _ESCAPE)
        yield from super()._sequence_to_key_events(sequence[1:] if is_pair else sequence)


class SparingDriver(LinuxDriver):
    """Writes through a mirror of the screen."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._mirror = ScreenMirror()
        self._ending = Ending(self._leave)

    def start_application_mode(self) -> None:
        """Also know the signals that end the process."""
        self._loop_of_app = asyncio.get_running_loop()
        self._ending.begin()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def turn_mouse(self) -> bool:
        """Whether the terminal tells the mouse from now on, after it did not, or the other way."""
        if self._mouse:
            self._disable_mouse_support()
            self._mouse = False
        else:
            self._mouse = True
            self._enable_mouse_support()
        return self._mouse

    def close(self) -> None:
        """Everything is written; where a signal ended the application, the process dies of it."""
        super().close()
        self._ending.finish()

    def _leave(self) -> None:
        self._loop_of_app.call_soon_threadsafe(self._app.exit)

    def write(self, data: str) -> None:
        """Send what differs from what the screen shows."""
        shorter = self._mirror.difference(data)
        if shorter:
            super().write(shorter)

    def forget(self) -> None:
        """Forgets the terminal's cells: the next screen is sent whole."""
        self._mirror.forget()

    def run_input_thread(self) -> None:
        """Keys and mouse, until the application ends.

        Escape alone is told from the begin of a sequence by what follows within ``ESCDELAY``.
        Textual's own loop looks for that no sooner than after 100 ms.
        """
        parser = EscapeParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        wait_s = IDLE_S
        while not self.exit_event.is_set():
            is_typed = bool(select([self.fileno], [], [], wait_s)[0])
            if is_typed:
                text = decode(self._read())
                if not text:
                    self._leave()  # the terminal is gone
                    return
                for event in parser.feed(text):
                    self.process_message(event)
            for event in parser.tick():
                self.process_message(event)
            wait_s = constants.ESCAPE_DELAY if is_typed else IDLE_S

    def _read(self) -> bytes:
        try:
            return read(self.fileno, READ_BYTES_MAX)
        except OSError:
            return b""
