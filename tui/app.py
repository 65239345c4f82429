"""The terminal application: keys, places, and the feed; what a view shows is its screen's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.screen import Screen

from control.views.paths import ViewPath
from control.views.snapshot import OperatorSnapshot
from tui.actions import Navigation
from tui.messages import SnapshotArrived
from tui.screens.base import ViewScreen
from tui.screens.time import TimeScreen
from tui.screens.views import build_screen
from tui.services import Services

if TYPE_CHECKING:
    from control.operations.operator import Operator

AGE_TICK_S: Final = 1.0


class PartiscopeApp(Navigation):
    """One product, two faces; this one is by keyboard."""

    TITLE = "Partiscope"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, services: Services, *, path: str = "overview") -> None:
        super().__init__()
        self.services = services
        self.is_paused = False
        self._first = path
        self.at_ms: int | None = None
        """Where charts end; None: now."""
        self._frozen: OperatorSnapshot | None = None
        self._operator: Operator | None = None
        self._unsubscribe = services.feed.subscribe(self._take)

    @property
    def operator(self) -> Operator:
        """What acts on the cluster; made when first needed, in this loop."""
        if self._operator is None:
            from control.operations.operator import Operator  # a Kafka client comes with it

            services = self.services
            self._operator = Operator(
                bootstrap=services.bootstrap, bus=services.bus, is_read_only=services.is_read_only
            )
        return self._operator

    @property
    def snapshot(self) -> OperatorSnapshot:
        """What the screens show: the newest, or the one at which the operator paused."""
        return self._frozen or self.services.feed.current

    def on_mount(self) -> None:
        """Open the first view and start the clock of ages."""
        self.services.feed.start()
        self.push_screen(build_screen(ViewPath()))
        if self._first not in ("", "overview"):
            self.action_open(self._first)
        self.set_interval(AGE_TICK_S, self._tick)

    async def on_unmount(self) -> None:
        """Leave the feed and the cluster."""
        self._unsubscribe()
        if self._operator is not None:
            await self._operator.__aexit__()

    def on_snapshot_arrived(self, message: SnapshotArrived) -> None:
        """Show it, unless paused."""
        if not self.is_paused:
            self._refresh(message.snapshot)

    def action_pause(self) -> None:
        """Hold the figures still; the age goes on."""
        self.is_paused = not self.is_paused
        self._frozen = self.services.feed.current if self.is_paused else None
        self._refresh(self.snapshot)

    def action_time(self) -> None:
        """``@``: charts at another time."""
        self.push_screen(TimeScreen(now_ms=self.services.now_ms()), self._at)

    def _at(self, at_ms: int | None) -> None:
        self.at_ms = at_ms
        self._refresh(self.snapshot)

    def _take(self, snapshot: OperatorSnapshot) -> None:
        """Called in the feed's thread: hand over to ours."""
        self.post_message(SnapshotArrived(snapshot))

    def _refresh(self, snapshot: OperatorSnapshot) -> None:
        for screen in _views(self.screen_stack):
            screen.receive(snapshot)

    def _tick(self) -> None:
        for screen in _views(self.screen_stack[-1:]):
            screen.tick()


def _views(stack: list[Screen[object]]) -> list[ViewScreen]:
    return [screen for screen in stack if isinstance(screen, ViewScreen)]
