"""Work beside a screen, which may be gone when the work is done."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from textual.css.query import NoMatches
from textual.worker import Worker

if TYPE_CHECKING:
    from textual.dom import DOMNode as _Beside
else:
    _Beside = object
"""Textual takes styles and keys from the first base that is a node: the screen itself."""


class WorksWhileShown(_Beside):
    """A screen that is left while its work goes on: its widgets go first, and the work, which is
    cancelled only then, may look for one in between."""

    def run_worker(self, work: Any, *names: Any, **options: Any) -> Worker[Any]:
        """:param work: a function. A coroutine would stay unawaited where its worker is cancelled
        before it begins.
        """
        beside = self._awaited(work) if iscoroutinefunction(work) else self._called(work)
        return super().run_worker(beside, *names, **options)

    def _awaited(self, work: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
        async def awaited() -> Any:
            try:
                return await work()
            except NoMatches:
                if self._is_shown:
                    raise

        return awaited

    def _called(self, work: Callable[[], Any]) -> Callable[[], Any]:
        def called() -> Any:
            try:
                return work()
            except NoMatches:
                if self._is_shown:
                    raise

        return called

    @property
    def _is_shown(self) -> bool:
        return self.is_running and self.is_attached and not self._pruning
