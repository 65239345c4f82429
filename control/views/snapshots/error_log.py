"""Logs an error that comes again and again once, then how often it came."""

import logging
from collections.abc import Callable
from typing import Final

from control.model.units import counted

REPEAT_MS: Final = 60_000
"""An error that goes on is told again this often."""
KINDS_MAX: Final = 100
"""So many kinds of errors are known; at one more, all are forgotten and told anew."""


class ErrorLog:
    """Two errors are of one kind when they have the same type and were raised at the same line."""

    def __init__(self, log: logging.Logger, now_ms: Callable[[], int]) -> None:
        self._log = log
        self._now_ms = now_ms
        self._told: dict[tuple[object, ...], tuple[int, int]] = {}
        """Per kind: when it was last logged, and how often it came since."""

    def note(self, what: str, error: Exception) -> None:
        """It has happened: logged with its traceback, unless the same was logged in the last
        minute."""
        kind, now_ms = _kind(what, error), self._now_ms()
        at_ms, since = self._told.get(kind, (now_ms - REPEAT_MS, 0))
        if now_ms - at_ms < REPEAT_MS:
            self._told[kind] = (at_ms, since + 1)
            return
        if len(self._told) >= KINDS_MAX:
            self._told.clear()
        self._told[kind] = (now_ms, 0)
        again = f" ({counted(since, 'time')} more since it was last logged)" if since else ""
        self._log.error("%s%s", what, again, exc_info=error)


def _kind(what: str, error: Exception) -> tuple[object, ...]:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = None if trace is None else (trace.tb_frame.f_code, trace.tb_lineno)
    return (what, type(error), where)
