"""Going from view to view: keys, palette, links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from shlex import quote
from typing import Any, ClassVar, Final

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from control.model.command_line import command
from control.views.keymap import PLACES
from control.views.paths import PathError, ViewPath, parse_path
from tui.driver import SparingDriver
from tui.messages import PathChosen
from tui.operate import OperationKeys
from tui.palette import Names
from tui.screens.base import ViewScreen
from tui.screens.views import build_screen
from tui.widgets.key_line import GotoLine
from tui.widgets.row_table import RowTable

_COMMANDS: Final = (
    ("What if the broker here fails", "what would be offline, who would lead (w)", "what_if"),
    ("Messages of the topic here", "browse them (v)", "see('browse')"),
    ("Configs of the topic or broker here", "what is set, from where (V)", "see('configs')"),
    ("Another time", "tables, findings and charts as of then (@)", "time"),
    ("Less of the past in charts", "zoom in (+)", "zoom(-1)"),
    ("More of the past in charts", "zoom out (-)", "zoom(1)"),
    ("Explain the figures of the row", "those without room too (i)", "explain"),
    ("Copy the link of this view", "by OSC 52 (y)", "copy_link"),
    ("Another cluster", "switch to it (c)", "clusters"),
    ("Pause, resume", "hold the figures still (Space)", "pause"),
    ("Mouse on, off", "off: the terminal selects text by mouse (M)", "mouse"),
    ("Paint the screen anew", "when somebody else wrote on this terminal (ctrl+l)", "repaint"),
    ("Help", "all keys (?)", "help"),
)
"""What else can be done: words, what they mean, the action."""


class Navigation(OperationKeys):
    """Actions of the keys that every screen has; figures and clock are PartiscopeApp's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "goto", "go", show=True),
        Binding("R", "operate('plan')", "reassign", show=True),
        Binding("P", "operate('produce')", "produce", show=True),
        Binding("w", "what_if", "what if", show=False),
        Binding("v", "see('browse')", "messages", show=False),
        Binding("V", "see('configs')", "configs", show=False),
        Binding("space", "pause", "pause", show=False),
        Binding("at", "time", "time", show=False),
        Binding("plus,equals_sign", "zoom(-1)", "zoom in", show=False),
        Binding("minus", "zoom(1)", "zoom out", show=False),
        Binding("left_square_bracket", "shift(-1)", "earlier", show=False),
        Binding("right_square_bracket", "shift(1)", "later", show=False),
        Binding("c", "clusters", "cluster", show=False),
        Binding("y", "copy_link", "copy link", show=False),
        Binding("i", "explain", "explain", show=False),
        Binding("escape", "back", "back", show=False),
        Binding("M", "mouse", "mouse", show=False),
        Binding("ctrl+l", "repaint", "repaint", show=False),
        Binding("colon,ctrl+p", "command_palette", "palette", show=False),
        Binding("question_mark", "help", "help", show=True),
        Binding("q", "quit", "quit", show=True),
        *(Binding(place.key, f"go_to({place.path!r})", show=False, priority=True)
          for place in PLACES),
        Binding("escape", "stay", show=False, priority=True),
    ]  # fmt: skip

    COMMANDS = OperationKeys.COMMANDS | {Names}

    def link_of(self, path: ViewPath) -> str:
        """The path as it finds this view from elsewhere."""
        return str(path)

    def on_path_chosen(self, message: PathChosen) -> None:
        """A row was opened."""
        self.action_open(message.path)

    def action_open(self, path: str) -> None:
        """Show the view of a path on top of the present one."""
        try:
            place = parse_path(path)
        except PathError as error:
            self.notify(f"{error}. `g` lists the views.", severity="warning")
            return
        if isinstance(self.screen, ViewScreen) and str(self.screen.path) == str(place):
            return
        self.push_screen(build_screen(place))

    def action_operate(self, view: str) -> None:
        """The form of an operation, prefilled with the topic and partition that are here."""
        if self.is_denied(view):
            return
        topic = self.screen.topic_here if isinstance(self.screen, ViewScreen) else ""
        if view == "plan":
            here = self.screen.plan_here if isinstance(self.screen, ViewScreen) else "plan"
            self.action_open(str(here))
        elif topic:
            self.action_open(str(_messages_path("produce", self.screen)))
        else:
            self.action_open("produce")

    def action_what_if(self) -> None:
        """What if the broker that is here dies?"""
        if isinstance(self.screen, ViewScreen):
            self.action_open(str(self.screen.loss_here))

    def action_see(self, what: str) -> None:
        """The messages of the topic that is here, or the configs of the broker or topic."""
        given = self.screen.given_here if isinstance(self.screen, ViewScreen) else {}
        kind = next((it for it in ("broker", "topic") if given.get(it)), "")
        if what == "browse" and given.get("topic"):
            self.action_open(str(_messages_path("browse", self.screen)))
        elif what == "configs" and kind:
            self.action_open(str(ViewPath(view=f"{kind}_configs", params={kind: given[kind]})))
        else:
            self.notify("no topic is here: put the cursor on one (g t lists them)")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: every view, every operation, every key of what is open, before Textual's
        own commands; names come with what is typed (``tui.palette``)."""
        for place in PLACES:
            go = partial(self.action_open, place.path)
            yield SystemCommand(f"Go to {place.title}", f"{place.help} (g {place.key})", go)
        by_partitions = partial(self.action_open, "map?by=partitions")
        yield SystemCommand("Go to Map by partitions", "every partition as a cell", by_partitions)
        yield SystemCommand(
            "Reassign from here", "plan moves (R)", partial(self.action_operate, "plan")
        )
        yield SystemCommand(
            "Produce messages", "to the topic here (P)", partial(self.action_operate, "produce")
        )
        yield from self.operation_commands()
        for words, help_, action in _COMMANDS:
            yield SystemCommand(words, help_, partial(self.call_later, self.run_action, action))
        yield from _keys_of(screen)
        yield from super().get_system_commands(screen)

    def action_copy_link(self) -> None:
        """Copy the path of this view (by OSC 52, so it works over SSH)."""
        if isinstance(self.screen, ViewScreen):
            link = self.link_of(self.screen.path)
            self.copy_to_clipboard(link)
            self.notify(f"copied: {command(f'tui {quote(link)}')}", markup=False)

    def action_explain(self) -> None:
        """``i``: what the figures of the row under the cursor mean, those without room too."""
        from tui.screens.explain import ExplainScreen

        tables = self.screen.query(RowTable)
        focused = self.focused
        table = focused if isinstance(focused, RowTable) else next(iter(tables), None)
        if table is None or table.page is None:
            self.notify("no table is here whose figures could be told")
        else:
            self.push_screen(ExplainScreen(table.page.columns, table.pointed))

    def action_mouse(self) -> None:
        """``M``: the mouse is ours, or the terminal's, which then selects text with it."""
        if isinstance(self._driver, SparingDriver):
            is_ours = self._driver.turn_mouse()
            ours = "mouse on: clicks select and open here; M gives it back to the terminal"
            theirs = "mouse off: the terminal selects text with it; M turns it on"
            self.notify(ours if is_ours else theirs)

    async def action_back(self) -> None:
        """One level back; the overview is the ground floor."""
        if len(self.screen_stack) > 2:
            await self.pop_screen()

    def action_help(self) -> None:
        """All keys."""
        from tui.screens.help import HelpScreen  # the operations' registry comes with it

        self.push_screen(HelpScreen())

    def action_goto(self) -> None:
        """``g``, then the letter of a place."""
        self.screen.query_one(GotoLine).enter()

    def action_stay(self) -> None:
        """None of them."""
        self.screen.query_one(GotoLine).leave()

    def action_go_to(self, path: str) -> None:
        """That one. The overview is the ground floor, everything else comes on top."""
        self.action_stay()
        if path == "overview":
            while len(self.screen_stack) > 2:
                self.pop_screen()
        else:
            self.action_open(path)


def _messages_path(view: str, screen: Screen[Any]) -> ViewPath:
    """A view of the messages of the topic that is here, of its partition where one is."""
    assert isinstance(screen, ViewScreen)
    params, query = {"topic": screen.topic_here}, {"partition": screen.partition_here}
    return ViewPath(view=view, params=params, query=query)


def _keys_of(screen: Screen[Any]) -> Iterator[SystemCommand]:
    """Keys of an open view and their actions, without greyed ones."""
    for active in screen.active_bindings.values():
        binding = active.binding
        if active.node is screen and active.enabled and binding.description:
            words = f"Here: {binding.description}"
            act = partial(screen.app.call_later, screen.app.run_action, binding.action, screen)
            yield SystemCommand(words, f"key {screen.app.get_key_display(binding)}", act)
