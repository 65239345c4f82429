"""Work of a screen that is left: what it would show is dropped, and ends nothing."""

import asyncio
import gc

import pytest
from textual.app import App, ComposeResult
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import WorkerFailed

from tests.support.settle import settle
from tui.work import WorksWhileShown


class Asking(WorksWhileShown, Screen[None]):
    """Shows an answer, which comes when a test says so."""

    def __init__(self, shown_in: str = "#answer") -> None:
        super().__init__()
        self.answered = asyncio.Event()
        self.has_looked = False
        self._shown_in = shown_in

    def compose(self) -> ComposeResult:
        yield Static(id="answer")

    def on_mount(self) -> None:
        self.run_worker(self._ask)

    async def _ask(self) -> None:
        try:
            await self.answered.wait()
        finally:
            self.has_looked = True
            self.query_one(self._shown_in, Static).update("answered")


async def test_an_answer_that_comes_while_its_screen_goes_ends_nothing() -> None:
    app = App[None]()
    async with app.run_test() as pilot:
        screen = Asking()
        await app.push_screen(screen)
        children = [*screen.children]
        going = app.pop_screen()
        for child in children:
            await child.remove()
        screen.answered.set()
        await going
        await settle(pilot, lambda: screen.has_looked, "the answer")
        await pilot.pause()
        assert app.is_running


async def test_a_widget_that_a_screen_in_view_lacks_is_a_fault() -> None:
    async def look() -> None:
        app = App[None]()
        async with app.run_test() as pilot:
            screen = Asking("#nowhere")
            await app.push_screen(screen)
            screen.answered.set()
            await settle(pilot, lambda: screen.has_looked, "the answer")
            await pilot.pause()

    with pytest.raises(WorkerFailed) as failed:
        await look()
    assert isinstance(failed.value.error, NoMatches)


async def test_work_that_never_began_leaves_nothing_behind() -> None:
    """Keys may be faster than the loop: each begins anew what the one before has not begun."""

    class Hasty(Asking):
        def on_mount(self) -> None:
            for _ in range(3):
                self.run_worker(self._ask, exclusive=True)

    app = App[None]()
    async with app.run_test() as pilot:
        screen = Hasty()
        await app.push_screen(screen)
        screen.answered.set()
        await settle(pilot, lambda: screen.has_looked, "the answer")
    gc.collect()
