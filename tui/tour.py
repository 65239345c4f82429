"""The tour in the terminal: a step at a time, each on its view, its thing marked at the left."""

from __future__ import annotations

import time
from typing import Any, Final

from textual.app import App

from control.views.tour import AGAIN, STEPS, Thing
from tui.navigator import Navigator
from tui.screens.base import ViewScreen
from tui.widgets.top_bar import TopBar
from tui.widgets.tour_panel import TourPanel

POINTS_AT: Final = {
    Thing.MAP: "#map",
    Thing.GROUPS: "#table",
    Thing.SEGMENTS: "#segments",
    Thing.PLAN: "#plan",
    Thing.MOVES: "#table",
    Thing.MESSAGES: "#table",
}
"""Selectors of what the steps point to."""
TOURED: Final = "toured"
COMES_S_MAX: Final = 3.0


class Tour:
    """Walks an application over the steps; each view shows its own step, so that whoever leaves
    it by other keys finds the step there when coming back."""

    def __init__(self, app: App[Any], navigator: Navigator) -> None:
        self._app, self._navigator = app, navigator
        self._comes_until_s = 0.0
        self._depth = 0
        """Number of screens when it began."""

    @property
    def is_coming(self) -> bool:
        """A step is wanted, and does not have the keys yet; for so long they are held."""
        return time.monotonic() < self._comes_until_s

    def show(self, place: int) -> None:
        """Goes to the view of a step; past the last one the tour ends."""
        if place >= len(STEPS):
            self.leave()
            return
        stack = self._app.screen_stack
        if not self._app.screen.query(TourPanel):
            self._depth = len(stack)
        self._clear()
        self._navigator.open(STEPS[place].path, is_instead=len(stack) > self._depth)
        screen = self._app.screen
        self._comes_until_s = time.monotonic() + COMES_S_MAX
        # In the queue of the screen: once its widgets are there.
        screen.call_later(self._point, screen, place)

    def leave(self) -> None:
        """Ends it, in the view that is open; at its first step, in the one that was before."""
        is_first = any(it.place == 0 for it in self._app.screen.query(TourPanel))
        self._clear()
        if is_first and len(self._app.screen_stack) > self._depth:
            self._app.call_later(self._navigator.back)
        self._app.notify(AGAIN)

    async def _point(self, screen: ViewScreen, place: int) -> None:
        step = STEPS[place]
        panel = TourPanel(place, go=self.show, leave=self.leave)
        await screen.mount(panel, after=screen.query_one(TopBar))
        for thing in screen.query(POINTS_AT[step.thing]):
            thing.add_class(TOURED)
        # Behind the widget to which the view itself gave them.
        self._app.call_later(self._give_keys, screen, panel)

    def _give_keys(self, screen: ViewScreen, panel: TourPanel) -> None:
        self._comes_until_s = 0.0
        if panel.is_attached:
            screen.set_focus(panel)

    def _clear(self) -> None:
        for screen in self._app.screen_stack:
            screen.query(TourPanel).remove()
            screen.query(f".{TOURED}").remove_class(TOURED)
