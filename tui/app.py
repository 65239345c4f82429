"""The terminal application: keys, the feed of snapshots, and the clock of ages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import Any, ClassVar, Final

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import Theme

from control.model.command_line import command
from control.views.keymap import PLACES
from control.views.paths import DEFAULT_VIEW, ViewPath
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.process_memory import settle
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tour import HELP, TITLE, Offer
from tui.messages import FormChosen, PathChosen, SnapshotArrived
from tui.navigator import Navigator, explain_row, show_help
from tui.palette import Names, commands
from tui.preferences import Preferences
from tui.screens.base import ViewScreen
from tui.screens.views import build_screen
from tui.terminal.app import TerminalApp
from tui.terminal_session import OtherCluster, Services, TerminalSession
from tui.tour import Tour
from tui.widgets.filter_line import FilterLine

AGE_TICK_S: Final = 1.0
SETTLE_AFTER_S: Final = 2.0


class PartiscopeApp(TerminalApp):
    """Wires session, navigator and screens; every screen has the keys that it binds."""

    TITLE = "Partiscope"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = TerminalApp.COMMANDS | {Names}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "screen.goto", "go", show=True),
        Binding("R", "screen.here('plan')", "reassign", show=True),
        Binding("P", "screen.here('produce')", "produce", show=True),
        Binding("w", "screen.here('what-if')", "what if", show=False),
        Binding("v", "screen.here('browse')", "messages", show=False),
        Binding("V", "screen.here('configs')", "configs", show=False),
        Binding("space", "pause", "pause", show=False),
        Binding("at", "navigate('time')", "time", show=False),
        Binding("plus,equals_sign", "navigate('zoom', -1)", "zoom in", show=False),
        Binding("minus", "navigate('zoom', 1)", "zoom out", show=False),
        Binding("left_square_bracket", "navigate('shift', -1)", "earlier", show=False),
        Binding("right_square_bracket", "navigate('shift', 1)", "later", show=False),
        Binding("c", "navigate('cluster')", "cluster", show=False),
        Binding("y", "copy_link", "copy link", show=False),
        Binding("i", "navigate('explain')", "explain", show=False),
        Binding("escape", "back", "back", show=False),
        Binding("M", "mouse", "mouse", show=False),
        Binding("ctrl+l", "repaint", "repaint", show=False),
        Binding("colon,ctrl+p", "command_palette", "palette", show=False),
        Binding("question_mark", "navigate('help')", "help", show=True),
        Binding("q", "quit", "quit", show=True),
        *(Binding(place.key, f"screen.goto({place.path!r})", show=False, priority=True)
          for place in PLACES),
        Binding("escape", "screen.goto('')", show=False, priority=True),
    ]  # fmt: skip

    def __init__(
        self,
        services: Services,
        *,
        path: str = "overview",
        others: Sequence[OtherCluster] = (),
        preferences: Preferences | None = None,
        tour: Offer = Offer.NONE,
    ) -> None:
        """``preferences``: what is kept over restarts; None: nothing is."""
        super().__init__()
        self._preferences = preferences or Preferences(None)
        if self._preferences.theme in self.available_themes:
            self.theme = self._preferences.theme
        self.session = TerminalSession(services, others)
        self.navigator = go = Navigator(self, self.session, self._show_anew)
        self._ways: Mapping[str, Callable[..., None]] = {
            "time": go.choose_time, "cluster": go.choose_cluster,
            "zoom": go.zoom, "shift": go.shift,
            "explain": partial(explain_row, self), "help": partial(show_help, self),
        }  # fmt: skip
        self.tour = None if tour is Offer.NONE else Tour(self, go)
        self._begins_tour = tour is Offer.ONCE and path == DEFAULT_VIEW
        self._first = path
        self._shown: OperatorSnapshot | None = None
        self._denied: Mapping[str, str] = {}
        self.session.listen(self._take)

    @property
    def holds_keys(self) -> bool:
        """While a step of the tour comes: it takes them."""
        return self.tour is not None and self.tour.is_coming

    def on_mount(self) -> None:
        """Open the first view and start the clock of ages.

        Later: until this is done Textual shows nothing, but paints all the same.
        """
        keep_theme = partial(_keep_theme, self, self._preferences)
        self.theme_changed_signal.subscribe(self, keep_theme)
        self.call_later(self._begin)

    def _begin(self) -> None:
        self.session.services.feed.start()
        self._shown = self.session.snapshot
        self._denied = self.session.denied
        self.push_screen(build_screen(ViewPath(), self.session))
        self.navigator.open(self._first)
        if self.tour and self._begins_tour and self._preferences.claim_tour():
            self.tour.show(0)
        self.set_interval(AGE_TICK_S, self._tick)
        self.set_timer(SETTLE_AFTER_S, settle)

    async def on_unmount(self) -> None:
        """Leave the feeds and the cluster."""
        await self.session.close()

    def on_path_chosen(self, message: PathChosen) -> None:
        """Somebody wants to see another view."""
        self.navigator.open(message.path, is_instead=message.is_instead)

    def on_form_chosen(self, message: FormChosen) -> None:
        """Somebody wants to do something."""
        self.navigator.open_form(message.name, message.given, message.rows)

    def on_snapshot_arrived(self, message: SnapshotArrived) -> None:
        """Show it, unless paused, in the past, or shown already by the first view."""
        if message.feed is not self.session.services.feed:
            return  # of a cluster that was left meanwhile
        if self.session.is_live and message.snapshot is not self._shown:
            self._refresh(message.snapshot)

    def action_navigate(self, way: str, *given: int) -> None:
        """A dialog about where to go, or another stretch of time."""
        self._ways[way](*given)

    async def action_back(self) -> None:
        """One level back; first a filter that was typed here goes."""
        if not any(line.is_restored() for line in self.screen.query(FilterLine)):
            await self.navigator.back()

    def action_pause(self) -> None:
        """Hold the figures still; the age goes on. From the past: back to now."""
        self.navigator.leave_past()
        self.session.pause()
        self._show_anew()

    def action_copy_link(self) -> None:
        """Copy the path of this view (by OSC 52, so it works over SSH)."""
        if isinstance(self.screen, ViewScreen):
            link = self.session.link_of(self.screen.path)
            self.copy_to_clipboard(link)
            self.notify(f"copied: {command(f'tui {quote(link)}')}")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: what is ours before Textual's own commands."""
        yield from commands(screen, self.navigator)
        if self.tour is not None:
            yield SystemCommand(TITLE, HELP, partial(self.tour.show, 0))
        yield from super().get_system_commands(screen)

    def _take(self, feed: SnapshotFeed, snapshot: OperatorSnapshot) -> None:
        """In the feed's thread: first what the view on top needs, then hand over."""
        for screen in _views(self.screen_stack[-1:]):
            screen.prepare(snapshot)
        self.post_message(SnapshotArrived(snapshot, feed))

    def _show_anew(self) -> None:
        """Another moment or cluster: every view, and the charts of the one on top."""
        self._refresh(self.session.snapshot)
        for screen in _views(self.screen_stack[-1:]):
            screen.ask_history()

    def _refresh(self, snapshot: OperatorSnapshot) -> None:
        self._shown = snapshot
        if (denied := self.session.denied_in(snapshot)) != self._denied:
            self._denied = denied
            self.refresh_bindings()
        for screen in _views(self.screen_stack):
            screen.receive(snapshot)

    def _tick(self) -> None:
        for screen in _views(self.screen_stack[-1:]):
            screen.tick()


def _views(stack: list[Screen[object]]) -> list[ViewScreen]:
    return [screen for screen in stack if isinstance(screen, ViewScreen)]


def _keep_theme(app: PartiscopeApp, preferences: Preferences, theme: Theme) -> None:
    try:
        preferences.keep_theme(theme.name)
    except OSError as error:
        app.notify(f"this theme is not kept for the next start: {error}", severity="warning")
