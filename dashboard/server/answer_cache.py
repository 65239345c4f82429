"""Cache of answers that many pages want: each is made once, and the newest are kept, up to a number
of bytes.

An answer stands under all that it depends on: the version of the snapshot, the view, the colour
scheme, the time. Who asks while it is being made waits for it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from sys import getsizeof
from threading import Lock
from types import FunctionType, ModuleType
from typing import Any, Final, TypeVar

PLACE_BYTES: Final = 2_000
"""What an answer takes beside itself: its key, and what others wait by."""
PARTS_MAX: Final = 200_000
"""Of one answer that are counted."""
_NOT_OURS: Final = (type, FunctionType, ModuleType)

_T = TypeVar("_T")


@dataclass(slots=True)
class _Place:
    answer: Future[Any] = field(default_factory=Future)
    size_bytes: int = 0


class AnswerCache:
    """Answers of ``bytes_max`` in all: the least recently asked for go first, the newest always
    stays. Safe between threads."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._places: OrderedDict[Hashable, _Place] = OrderedDict()
        self._lock = Lock()
        self.size_bytes = 0
        """Of all that are kept."""

    def of(self, key: Hashable, build: Callable[[], _T]) -> _T:
        """The answer to ``key``; ``build`` makes it where there is none. What it raises is raised
        for all who wait, and not kept."""
        answer, is_new = self.expect(key)
        if not is_new:
            shared: _T = answer.result()
            return shared
        try:
            built = build()
        except BaseException as error:
            self.forget(key, error)
            raise
        self.settle(key, built)
        return built

    def expect(self, key: Hashable) -> tuple[Future[Any], bool]:
        """The answer, kept or on its way; and whether it is new: then who asks makes it, and must
        ``settle`` or ``forget`` it."""
        with self._lock:
            is_new = key not in self._places
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
        return place.answer, is_new

    def settle(self, key: Hashable, answer: Any) -> None:
        """This is the answer that was expected, where it still is."""
        size_bytes = PLACE_BYTES + bytes_of(answer)
        with self._lock:
            place = self._places.get(key)
            if place is None:
                return
            place.size_bytes = size_bytes
            self.size_bytes += size_bytes
            self._drop_old(newest=key)
        place.answer.set_result(answer)

    def forget(self, key: Hashable, error: BaseException | None = None) -> None:
        """There is no answer to share: who waits gets the error, or None."""
        with self._lock:
            place = self._places.pop(key, None)
            if place is None:
                return
            self.size_bytes -= place.size_bytes
        if place.answer.done():
            return
        if error is None:
            place.answer.set_result(None)
        else:
            place.answer.set_exception(error)

    def _drop_old(self, newest: Hashable) -> None:
        for key, place in list(self._places.items()):
            if self.size_bytes <= self._bytes_max:
                return
            # One that is on its way has no size yet.
            if place.size_bytes and key != newest:
                del self._places[key]
                self.size_bytes -= place.size_bytes


def bytes_of(answer: Any) -> int:
    """Rough size of an answer: its texts, columns and objects. Parts that several answers share
    count with each."""
    total, waiting, seen = 0, [answer], set[int]()
    while waiting and len(seen) < PARTS_MAX:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, _NOT_OURS):
            continue
        seen.add(id(part))
        columns = getattr(part, "nbytes", 0)
        total += max(getsizeof(part), columns if isinstance(columns, int) else 0)
        waiting.extend(_parts_of(part))
    return total


def _parts_of(part: Any) -> Iterable[Any]:
    if isinstance(part, str | bytes | int | float | None):
        return ()
    if isinstance(part, Mapping):
        return (*part, *part.values())
    if isinstance(part, list | tuple | set | frozenset):
        return part
    slots = (name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ()))
    inside = getattr(part, "__dict__", {})
    return (*inside.values(), *(getattr(part, name, None) for name in slots if name not in inside))
