"""Base of every view: its path, the top bar, the footer, and a snapshot to show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.screen import Screen
from textual.visual import VisualType
from textual.widgets import Static

from control.views.paths import ViewPath
from control.views.printable import printable_in_place
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.context import AppContext
from tui.services import Services
from tui.widgets.key_line import GotoLine, KeyLine
from tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.widgets.form import FormPanel


class ViewScreen(Screen[Any]):
    """One view; subclasses compose their body and show snapshots."""

    def __init__(self, path: ViewPath) -> None:
        super().__init__()
        self.path = path
        self._is_composed = False
        """All widgets are there, those within others too."""
        self._put: dict[str, VisualType] = {}

    @property
    def partiscope(self) -> AppContext:
        """The application, typed."""
        return cast("AppContext", self.app)

    @property
    def services(self) -> Services:
        """Services of the screens."""
        return self.partiscope.services

    @property
    def word_to_type(self) -> str | None:
        """Word to type before a change; None: none."""
        return self.services.watched.word_to_type() or None

    @property
    def topic_here(self) -> str:
        """The topic that is in view, for the keys that act on one."""
        return self.path.params.get("topic", "")

    @property
    def partition_here(self) -> str:
        """The partition that is in view; empty: none, or several."""
        return self.path.params.get("partition", "")

    @property
    def group_here(self) -> str:
        """The consumer group that is in view."""
        return self.path.params.get("group", "")

    @property
    def broker_here(self) -> str:
        """The id of the broker that is in view."""
        return self.path.params.get("broker", "")

    @property
    def given_here(self) -> dict[str, str]:
        """Names of the things in view, by the fields of forms."""
        topic = self.topic_here
        about = {"group": self.group_here, "broker": self.broker_here}
        return {"topic": topic, "topics": topic, **about}

    @property
    def plan_here(self) -> ViewPath:
        """The form that ``R`` opens from here."""
        return ViewPath(
            view="plan", query={"topics": self.topic_here, "partition": self.partition_here}
        )

    @property
    def loss_here(self) -> ViewPath:
        """The question that ``w`` asks from here."""
        return ViewPath(view="what-if", query={"broker": self.broker_here})

    def compose(self) -> ComposeResult:
        """Top bar, body, keys."""
        yield TopBar()
        yield from self.compose_body()
        yield KeyLine()
        yield GotoLine()

    def compose_body(self) -> ComposeResult:
        """The view's own widgets."""
        raise AssertionError(f"{type(self).__name__} has no body")

    @property
    def is_going(self) -> bool:
        """After ``g``: the next key is the letter of a place."""
        return any(line.display for line in self.query(GotoLine))

    def on_key(self) -> None:
        """A key that leads nowhere: what it does here comes after."""
        if self.is_going:
            self.query_one(GotoLine).leave()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Show a snapshot in the body."""
        raise AssertionError(f"{type(self).__name__} shows nothing")

    def prepare(self, snapshot: OperatorSnapshot) -> None:
        """In the feed's thread: have made what is slow and kept by the snapshot, so that no key
        waits for it."""
        _ = snapshot.headline, snapshot.finding_rows

    def ask_history(self) -> None:
        """Hook: charts show another stretch of time."""

    def on_mount(self) -> None:
        """Names first: whatever is known is shown before the first refresh."""
        self._is_composed = True
        self.receive(self.partiscope.snapshot)

    def receive(self, snapshot: OperatorSnapshot) -> None:
        """A newer snapshot, or the old one after the pause."""
        if not self._is_composed:
            return  # it will ask when it is
        self._bar(snapshot)
        self.show(snapshot)
        for panel in map(_form_panel, self.query("FormPanel")):
            panel.show_denied(snapshot.denied_words(panel.form.name))

    def put(self, selector: str, content: VisualType) -> None:
        """Show something in a line of the body, unless the view was left in the meantime.

        A string is text as it is, without markup: it may hold names that others chose. What a
        worker brings may arrive when its screen is already gone. What stands there already
        is not written again: over SSH every byte counts.
        """
        content = _plain(content)
        if self._put.get(selector) == content:
            return
        self._put[selector] = content
        for line in self.query(selector).results(Static):
            line.update(content)

    def tick(self) -> None:
        """A second has passed: ages grow."""
        if self._is_composed:
            self._bar(self.partiscope.snapshot)

    def _bar(self, snapshot: OperatorSnapshot) -> None:
        bar = self.query_one(TopBar)
        bar.show(
            snapshot,
            watched=self.services.watched,
            now_ms=self.services.now_ms(),
            is_paused=self.partiscope.is_paused,
            at_ms=self.partiscope.at_ms,
        )


def heading(name: str, rest: str = "", style: str = "") -> Text:
    """The title of a list and what follows it."""
    return Text.assemble((name, "bold"), (f" {rest}", style))


def _plain(content: VisualType) -> VisualType:
    """Characters that a terminal obeys are made visible; styles stay in their places."""
    if isinstance(content, str):
        return Text(printable_in_place(content))
    if isinstance(content, Text) and not content.plain.isprintable():
        content = content.copy()
        content.plain = printable_in_place(content.plain)
    return content


def _form_panel(widget: Widget) -> FormPanel:
    """Typed without loading it: most views have no form."""
    return cast("FormPanel", widget)
