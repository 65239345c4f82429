"""What ten browsers ask is computed once.

An answer is kept under all that it depends on: the version of the snapshot, the view, the colour
scheme, the time. Who asks while it is being computed waits for it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, TypeVar

ANSWERS_MAX: Final = 96

_T = TypeVar("_T")


class _Answer:
    __slots__ = ("is_there", "lock", "value")

    def __init__(self) -> None:
        self.lock = Lock()
        self.is_there = False
        self.value: Any = None


class Shared:
    """The newest answers, the least recently asked for go first. Safe between threads."""

    def __init__(self, most: int = ANSWERS_MAX) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Hashable, build: Callable[[], _T]) -> _T:
        """The answer to ``key``; ``build`` makes it where there is none."""
        answer = self._place(key)
        with answer.lock:
            if not answer.is_there:
                answer.value = build()
                answer.is_there = True
            found: _T = answer.value
        return found

    def _place(self, key: Hashable) -> _Answer:
        with self._lock:
            answer = self._answers.setdefault(key, _Answer())
            self._answers.move_to_end(key)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return answer


def time_key(time: dict[str, str] | None) -> Hashable:
    """The charts' time as a part of a key."""
    return tuple(sorted((time or {}).items()))
