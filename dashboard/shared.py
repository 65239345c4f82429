"""What ten browsers ask of the same snapshot is computed once.

An answer is kept under what it depends on: the snapshot, and whatever else ``key`` names (the
colour scheme, a topic, the charts' time). Who asks while it is being computed waits for it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, TypeVar

from control.views.snapshot import OperatorSnapshot

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

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._lock = Lock()

    def of(self, snapshot: OperatorSnapshot, key: Hashable, build: Callable[[], _T]) -> _T:
        """The answer to ``key`` about this snapshot; ``build`` makes it where there is none."""
        answer = self._place((snapshot.cluster.cluster, snapshot.version, snapshot.built_ms, key))
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
            while len(self._answers) > ANSWERS_MAX:
                self._answers.popitem(last=False)
        return answer


def time_key(time: dict[str, str] | None) -> Hashable:
    """The charts' time as a part of a key."""
    return tuple(sorted((time or {}).items()))
