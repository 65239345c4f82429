"""Textual's driver of a terminal: only what changed is sent, and a lone Escape is known at once."""

from codecs import getincrementaldecoder
from os import read
from select import select
from typing import Any, Final

from textual import constants
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from tui.mirror import ScreenMirror

IDLE_S: Final = 0.1
"""How long input is waited for before it is looked whether the application has ended."""
READ_BYTES_MAX: Final = 4_096


class SparingDriver(LinuxDriver):
    """Writes through a mirror of the screen."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._mirror = ScreenMirror()

    def write(self, data: str) -> None:
        """Send what differs from what the screen shows."""
        shorter = self._mirror.difference(data)
        if shorter:
            super().write(shorter)

    def forget(self) -> None:
        """Whatever the screen shows, the next picture is sent whole."""
        self._mirror.forget()

    def run_input_thread(self) -> None:
        """Keys and mouse, until the application ends.

        Escape alone is told from the begin of a sequence by what follows within ``ESCDELAY``.
        Textual's own loop looks for that no sooner than after 100 ms.
        """
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        wait_s = IDLE_S
        while not self.exit_event.is_set():
            is_typed = bool(select([self.fileno], [], [], wait_s)[0])
            if is_typed:
                text = decode(read(self.fileno, READ_BYTES_MAX))
                if not text:
                    return  # nobody types there any more
                for event in parser.feed(text):
                    self.process_message(event)
            for event in parser.tick():
                self.process_message(event)
            wait_s = constants.ESCAPE_DELAY if is_typed else IDLE_S
