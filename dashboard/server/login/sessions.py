"""Sessions of the page, and the bound of attempts to log in. In the memory of the page: a restart
ends all sessions.

A session is a random token of 256 bits, of which only the hash is kept here. Nothing is written
into it, so nothing can be forged in it. It ends by time, by logout, and as soon as password or role
of its user change.
"""

import hashlib
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from control.access.login import Users

SESSIONS_MAX: Final = 10_000
"""The oldest ends where there are more; each takes some 300 bytes."""
WINDOW_S: Final = 300.0
NAME_ATTEMPTS_MAX: Final = 10
ADDRESS_ATTEMPTS_MAX: Final = 30
"""Attempts that failed within ``WINDOW_S``."""
_MOST: Final = {"name": NAME_ATTEMPTS_MAX, "address": ADDRESS_ATTEMPTS_MAX}
KEYS_MAX: Final = 20_000
"""Names and addresses of which attempts are counted; the oldest is forgotten first."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One login, and until when it lasts."""

    name: str
    stamp: str
    """Of the user at the login."""
    ends_s: float


class Sessions:
    """All sessions of one page. ``now_s`` is a monotonic clock."""

    def __init__(self, users: Users, *, lasts_s: float, now_s: Clock) -> None:
        self._users = users
        self._lasts_s = lasts_s
        self._now_s = now_s
        self._kept: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, name: str) -> str:
        """The token of a new session."""
        token = secrets.token_urlsafe(32)
        self._kept[_hash(token)] = Session(
            name=name, stamp=self._users.stamp(name), ends_s=self._now_s() + self._lasts_s
        )
        while len(self._kept) > SESSIONS_MAX:
            self._kept.popitem(last=False)
        return token

    def name_of(self, token: str) -> str:
        """The name that this token logs in; empty: none any more."""
        key = _hash(token)
        session = self._kept.get(key)
        if session is None:
            return ""
        is_same = bool(session.stamp) and session.stamp == self._users.stamp(session.name)
        if not is_same or self._now_s() >= session.ends_s:
            del self._kept[key]
            return ""
        return session.name

    def end(self, token: str) -> None:
        """Log out."""
        self._kept.pop(_hash(token), None)


class Attempts:
    """Attempts to log in that failed, by name and by address."""

    def __init__(self, now_s: Clock) -> None:
        self._now_s = now_s
        self._failed: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def begin(self, name: str, address: str) -> float:
        """Counts as failed until ``succeeded``. Seconds to wait where there were too many; 0: it
        may be tried. Without a name the address alone counts."""
        keys = (("name", name), ("address", address))[0 if name else 1 :]
        now_s = self._now_s()
        bounds = ((key, _MOST[key[0]]) for key in keys)
        waits = [self._wait_s(key, most, now_s) for key, most in bounds]
        if any(waits):
            return max(waits)
        for key in keys:
            self._failed.setdefault(key, deque()).append(now_s)
            self._failed.move_to_end(key)
        while len(self._failed) > KEYS_MAX:
            self._failed.popitem(last=False)
        return 0.0

    def succeeded(self, name: str, address: str) -> None:
        """The right password: the name has no failures; the address has one less."""
        self._failed.pop(("name", name), None)
        if of_address := self._failed.get(("address", address)):
            of_address.pop()

    def _wait_s(self, key: tuple[str, str], most: int, now_s: float) -> float:
        failed = self._failed.get(key, deque())
        while failed and failed[0] <= now_s - WINDOW_S:
            failed.popleft()
        return failed[0] + WINDOW_S - now_s if len(failed) >= most else 0.0


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
