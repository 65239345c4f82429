"""An executor for tests that want to see what a background thread would do, and when."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class AtOnce(Executor):
    """Does in the caller's thread what others do beside it."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(call(*args, **named))
        return done


class Never(Executor):
    """Takes everything and does nothing: as if the process were killed before it could."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        return Future()
