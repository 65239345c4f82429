"""End of the process from outside: SIGTERM, SIGHUP and their like leave the terminal as it was
(Textual issue 5140).

The application is asked to leave as after ``q``, then the process dies of the signal, as whoever
sent it expects. An application that does not leave in time loses the terminal all the same.
"""

import os
import signal
import sys
import termios
from collections.abc import Callable
from threading import Timer
from types import FrameType
from typing import Any, Final

ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
LEAVE_WITHIN_S: Final = 2.0
_SHELLS: Final = 128
"""What a shell adds to a signal to tell it as an exit code."""
_AS_IT_WAS: Final = (
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # mouse
    "\x1b[?2004l\x1b[?2048l\x1b[?1004l\x1b[?7h\x1b[<u"  # paste, sizes, focus, line ends, keys
    "\x1b[0m\x1b[?1049l\x1b[?25h"  # style, screen, cursor
)


class Ending:
    """From ``begin`` on these signals call ``leave``; ``finish`` dies of the one that came."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._came: int | None = None
        self._before: dict[int, Any] = {}
        self._attributes: list[Any] | None = None

    def begin(self) -> None:
        """Once the terminal is about to be changed. What is ignored (``nohup``) stays so."""
        if self._before:
            return
        try:
            self._attributes = termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr]
        except (termios.error, OSError, ValueError):
            self._attributes = None
        for number in ENDINGS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)

    def finish(self) -> None:
        """The terminal is as it was: die of the signal, where one came."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        if self._came is not None:
            signal.signal(self._came, signal.SIG_DFL)
            os.kill(os.getpid(), self._came)

    def _take(self, number: int, _: FrameType | None) -> None:
        if self._came is None:
            self._came = number
            late = Timer(LEAVE_WITHIN_S, self._give_up)
            late.daemon = True
            late.start()
            self._leave()

    def _give_up(self) -> None:
        """In a thread of its own: whatever holds the application up."""
        try:
            if self._attributes is not None:
                stdin = sys.__stdin__.fileno()  # type: ignore[union-attr]
                termios.tcsetattr(stdin, termios.TCSANOW, self._attributes)
            screen = sys.__stderr__.fileno()  # type: ignore[union-attr]
            os.set_blocking(screen, False)
            os.write(screen, _AS_IT_WAS.encode())
            os.set_blocking(screen, True)
        except (termios.error, OSError, ValueError):
            pass  # there is no terminal any more
        assert self._came is not None
        os._exit(_SHELLS + self._came)
