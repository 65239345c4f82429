"""The terminal application: keys, places, and the feed; what a view shows is its screen's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual.css.query import NoMatches
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.theme import Theme

from control.views.paths import ViewPath
from control.views.printable import printable_in_place
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.process_memory import settle
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.driver import SparingDriver
from tui.messages import SnapshotArrived
from tui.no_color import NoColors
from tui.past import PastApp
from tui.preferences import Preferences
from tui.screens.base import ViewScreen
from tui.screens.views import build_screen
from tui.services import Elsewhere, Services

AGE_TICK_S: Final = 1.0
SETTLE_AFTER_S: Final = 2.0


class PartiscopeApp(PastApp):
    """One product, two faces; this one is by keyboard."""

    TITLE = "Partiscope"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        services: Services,
        *,
        path: str = "overview",
        others: Sequence[Elsewhere] = (),
        preferences: Preferences | None = None,
    ) -> None:
        """``preferences``: what is kept over restarts; None: nothing is."""
        super().__init__(services, others, driver_class=SparingDriver)
        if self.no_color:
            self._filters[-1:] = [NoColors()]
        self._preferences = preferences or Preferences(None)
        if self._preferences.theme in self.available_themes:
            self.theme = self._preferences.theme
        self.is_paused = False
        self._first = path
        self._frozen: OperatorSnapshot | None = None
        self._shown: OperatorSnapshot | None = None
        self._denied: Mapping[str, str] = {}

    @property
    def snapshot(self) -> OperatorSnapshot:
        """The snapshot that the screens show: a past one, the one of the pause, or the newest."""
        return self._past or self._frozen or self.services.feed.current

    def on_mount(self) -> None:
        """Open the first view and start the clock of ages.

        Later: until this is done Textual shows nothing, but paints all the same.
        """
        self.theme_changed_signal.subscribe(self, self._keep_theme)
        self.call_later(self._begin)

    def _begin(self) -> None:
        self.services.feed.start()
        self._shown = self.snapshot
        self._denied = self._shown.denied_operations
        self.push_screen(build_screen(ViewPath()))
        if self._first not in ("", "overview"):
            self.action_open(self._first)
        self.set_interval(AGE_TICK_S, self._tick)
        self.set_timer(SETTLE_AFTER_S, settle)

    def on_resize(self) -> None:
        """Terminals move text about when their size changes."""
        self._forget_screen()

    def _keep_theme(self, theme: Theme) -> None:
        try:
            self._preferences.keep_theme(theme.name)
        except OSError as error:
            words = f"this theme is not kept for the next start: {error}"
            self.notify(words, severity="warning", markup=False)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Every message is text as it is: it may hold names that others chose."""
        _ = markup
        words = printable_in_place(message)
        super().notify(words, title=title, severity=severity, timeout=timeout, markup=False)

    def action_repaint(self) -> None:
        """``ctrl+l``: somebody else wrote on this terminal."""
        self._forget_screen()
        self.refresh()

    def on_snapshot_arrived(self, message: SnapshotArrived) -> None:
        """Show it, unless paused, in the past, or shown already by the first view."""
        if message.feed is not self.services.feed:
            return  # of a cluster that was left meanwhile
        if not self.is_paused and self.at_ms is None and message.snapshot is not self._shown:
            self._refresh(message.snapshot)

    def action_pause(self) -> None:
        """Hold the figures still; the age goes on. From the past: back to now."""
        if self.at_ms is not None:
            self.leave_past()
        else:
            self.is_paused = not self.is_paused
        self._frozen = self.services.feed.current if self.is_paused else None
        self._refresh(self.snapshot)
        self.ask_history()

    def show_again(self) -> None:
        """Every view anew, charts included."""
        self._refresh(self.snapshot)

    def _handle_exception(self, error: Exception) -> None:
        """A view that was still being built when the application was left lacks its widgets."""
        if isinstance(error, NoMatches) and (self._exit or not self.is_running):
            return
        super()._handle_exception(error)

    def _forget_screen(self) -> None:
        if isinstance(self._driver, SparingDriver):
            self._driver.forget()

    def _left_cluster(self) -> None:
        super()._left_cluster()
        self.is_paused, self._frozen = False, None

    def _take(self, feed: SnapshotFeed, snapshot: OperatorSnapshot) -> None:
        """In the feed's thread: first what the view on top needs, then hand over."""
        for screen in _views(self.screen_stack[-1:]):
            screen.prepare(snapshot)
        super()._take(feed, snapshot)

    def _refresh(self, snapshot: OperatorSnapshot) -> None:
        self._shown = snapshot
        if snapshot.denied_operations != self._denied:
            self._denied = snapshot.denied_operations
            self.refresh_bindings()
        for screen in _views(self.screen_stack):
            screen.receive(snapshot)

    def _tick(self) -> None:
        for screen in _views(self.screen_stack[-1:]):
            screen.tick()


def _views(stack: list[Screen[object]]) -> list[ViewScreen]:
    return [screen for screen in stack if isinstance(screen, ViewScreen)]
