"""The broker's own time that a request takes, for quotas of it (KIP-124): without its waits."""

from collections.abc import Callable, Coroutine, Generator
from time import perf_counter_ns
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class RequestTime:
    """Sums up the steps of one request."""

    __slots__ = ("_begun_ns", "_spent_ns")

    def __init__(self) -> None:
        self._spent_ns = 0
        self._begun_ns: int | None = None

    def begin(self) -> None:
        """It is worked for from now on."""
        self._begun_ns = perf_counter_ns()

    def end(self) -> None:
        """It waits, or is done."""
        self._spent_ns, self._begun_ns = self.spent_ns, None

    @property
    def spent_ns(self) -> int:
        """Until now."""
        going_on = 0 if self._begun_ns is None else perf_counter_ns() - self._begun_ns
        return self._spent_ns + going_on


@coroutine
def timed(time: RequestTime, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await `work`, and count each of its steps."""
    step: Callable[[Any], Any] = work.send
    value: Any = None
    while True:
        time.begin()
        try:
            waits_for = step(value)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            time.end()
        try:
            step, value = work.send, (yield waits_for)
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:  # noqa: BLE001  # a task that is cancelled: the work decides
            step, value = work.throw, error
