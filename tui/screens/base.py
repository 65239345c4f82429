"""Base of every view: its path, the top bar, the footer, and a snapshot to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from rich.text import Text
from textual import actions
from textual.app import ComposeResult
from textual.events import Key
from textual.screen import Screen
from textual.visual import VisualType
from textual.widgets import Static

from control.views.paths import ViewPath
from control.views.printable import printable_in_place
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.messages import FormChosen, PathChosen
from tui.terminal_session import Services, TerminalSession
from tui.widgets.key_line import GotoLine, KeyLine
from tui.widgets.top_bar import TopBar
from tui.work import WorksWhileShown

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.widgets.form import FormPanel

VIEWS_OF_FORMS: Final = {"reassign": "plan", "produce": "produce"}
"""Operations that have a view of their own."""
_RIGHTS_OF_VIEWS: Final = {view: form for form, view in VIEWS_OF_FORMS.items()}


class ViewScreen(WorksWhileShown, Screen[Any]):
    """One view; subclasses compose their body and show snapshots.

    It asks the session, and posts messages about where to go: it does not know the application.
    """

    NEEDS: ClassVar[Mapping[str, str]] = {}
    """Per action, the operation of the catalogue that must be allowed."""

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__()
        self.path = path
        self.session = session
        self._is_composed = False
        """All widgets are there, those within others too."""
        self._put: dict[str, VisualType] = {}

    @property
    def services(self) -> Services:
        """Services of the shown cluster."""
        return self.session.services

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
    def marked_here(self) -> tuple[str, ...]:
        """Names of the rows that are marked in a list."""
        return ()

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

    @property
    def is_going(self) -> bool:
        """After ``g``: the next key is the letter of a place."""
        return any(line.display for line in self.query(GotoLine))

    def compose(self) -> ComposeResult:
        """Top bar, body, keys."""
        yield TopBar()
        yield from self.compose_body()
        yield KeyLine()
        yield GotoLine()

    def compose_body(self) -> ComposeResult:
        """The view's own widgets."""
        raise AssertionError(f"{type(self).__name__} has no body")

    def on_key(self, event: Key) -> None:
        """A key that leads nowhere after ``g``, is greyed, or opens the form of an operation."""
        active = self.active_bindings.get(event.key)
        if self.is_going:
            self.action_goto("")
            if active is not None and active.binding.action == "quit":
                event.stop()  # a mistyped letter of a place must not end the session
                return
        if active is not None:
            if not active.enabled:
                _, action, parameters = actions.parse(active.binding.action)
                self._tell_denied(self._needed(action, parameters))
        elif event.is_printable and (name := _form_of(event.key)):
            event.stop()
            self.post_message(FormChosen(name, given_to(name, self), self.marked_here))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None greys a key; the letters of places are keys only while one is to be chosen."""
        if action == "goto" and parameters:
            return self.is_going
        denied = self.session.denied
        return None if self._needed(action, parameters) in denied else True

    def action_goto(self, path: str | None = None) -> None:
        """``g``: choose a place; then to the path of one, or to none if that is empty."""
        line = self.query_one(GotoLine)
        if path is None:
            line.enter()
            return
        line.leave()
        if path:
            self.post_message(PathChosen(path))

    def action_here(self, view: str) -> None:
        """The plan, loss, messages or configs of what is in view."""
        if self._tell_denied(_RIGHTS_OF_VIEWS.get(view, "")):
            return
        path = _path_here(view, self)
        if path is None:
            self.notify("no topic is here: put the cursor on one (g t lists them)")
        else:
            self.post_message(PathChosen(str(path)))

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
        self.receive(self.session.snapshot)

    def receive(self, snapshot: OperatorSnapshot) -> None:
        """A newer snapshot, or the old one after the pause."""
        if not self._is_composed:
            return  # it will ask when it is
        self.tick()
        self.show(snapshot)
        for panel in map(_form_panel, self.query("FormPanel")):
            panel.show_denied(self.session.denied_in(snapshot).get(panel.form.name, ""))

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
            self.query_one(TopBar).show(self.session)

    def _needed(self, action: str, parameters: tuple[object, ...]) -> str:
        """The operation that must be allowed for an action; empty: none."""
        view = str(parameters[0]) if action == "here" and parameters else ""
        return _RIGHTS_OF_VIEWS.get(view, self.NEEDS.get(action, ""))

    def _tell_denied(self, operation: str) -> bool:
        """Whether a right lacks; the operator is told why."""
        words = self.session.denied_words(operation)
        if words:
            self.notify(words, severity="warning", markup=False)
        return bool(words)


def given_to(form: str, screen: ViewScreen) -> dict[str, str]:
    """Values that a form begins with. A new topic has a name of its own, and no values of its own:
    those of *Like topic*, or of the cluster, hold where a field is empty."""
    return {} if form == "create_topic" else screen.given_here


def _form_of(key: str) -> str:
    """The operation that a key opens; its catalogue brings a Kafka client along."""
    from control.operations.catalogue import FORMS

    names = (form.name for form in FORMS if form.key == key)
    return next((name for name in names if name not in VIEWS_OF_FORMS), "")


def _path_here(view: str, screen: ViewScreen) -> ViewPath | None:
    """The view about what is here; None: nothing of its kind is."""
    if view == "plan":
        return screen.plan_here
    if view == "what-if":
        return screen.loss_here
    if view == "check":
        return ViewPath(view="check")
    given = screen.given_here
    if view == "configs":
        kind = next((it for it in ("broker", "topic") if given.get(it)), "")
        return ViewPath(view=f"{kind}_configs", params={kind: given[kind]}) if kind else None
    topic, partition = given["topic"], screen.partition_here
    if topic:
        return ViewPath(view=view, params={"topic": topic}, query={"partition": partition})
    return ViewPath(view="produce_any") if view == "produce" else None


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
