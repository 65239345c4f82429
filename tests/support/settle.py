"""Wait until something came about, rather than for some time; the deadline is generous."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from tests.support.patience import patience_s

if TYPE_CHECKING:
    from textual.app import App
    from textual.pilot import Pilot

TIMEOUT_S: Final = 60.0
"""On a quiet machine; like every ``timeout_s`` here it is stretched by ``patience_s``."""


def wait_until(
    condition: Callable[[], bool],
    what: str,
    *,
    timeout_s: float = TIMEOUT_S,
    story: Callable[[], str] = str,
) -> None:
    """Ask until it is so; fails with ``what`` and the ``story`` of those who should do it."""
    deadline = time.monotonic() + patience_s(timeout_s)
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}\n{story()}"
        time.sleep(0.02)


async def until(
    condition: Callable[[], object],
    what: str = "it happens",
    *,
    timeout_s: float = TIMEOUT_S,
    story: Callable[[], str] = str,
) -> None:
    """As ``wait_until``, while the loop goes on."""
    deadline = time.monotonic() + patience_s(timeout_s)
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}\n{story()}"
        await asyncio.sleep(0.005)


async def turns(count: int = 20) -> None:
    """Let all that is ready run: turns of the loop, no time. For what must not come about."""
    for _ in range(count):
        await asyncio.sleep(0)


async def eventually(
    ask: Callable[[], Awaitable[object]], wanted: object, *, timeout_s: float = TIMEOUT_S
) -> None:
    """Ask until the answer is the wanted one; fails with the last other one."""
    deadline = time.monotonic() + patience_s(timeout_s)
    while (answer := await ask()) != wanted:
        assert time.monotonic() < deadline, f"{answer!r} instead of {wanted!r}"
        await asyncio.sleep(0.05)


async def settle(
    pilot: "Pilot[Any]", condition: Callable[[], bool], what: str, *, timeout_s: float = TIMEOUT_S
) -> None:
    """Let the application run until ``condition`` holds."""
    deadline = time.monotonic() + patience_s(timeout_s)
    while not condition():
        assert time.monotonic() < deadline, f"never came to {what}: {_shown(pilot.app)}"
        await pilot.pause(0.05)


def _shown(app: "App[Any]") -> str:
    """Where the terminal stands, what has the keys, and the words on it."""
    words = [str(it.render()) for it in app.screen.query("Static") if it.display]
    told = [note.message for note in app._notifications]
    return "\n".join([repr(app.screen), repr(app.focused), *told, *words])
