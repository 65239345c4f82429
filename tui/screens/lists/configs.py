"""Every config of a topic or broker, or those of two side by side; Enter explains one."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from control.kafka.errors import KafkaPortError
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from control.views.format import clock_text
from control.views.next_links import explained
from control.views.paths import ViewPath
from control.views.printable import printable
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.configs import (
    CONFIGS,
    compared_columns,
    config_rows,
    facts,
    is_changed,
    resource_of,
)
from control.views.tables.query import Page
from tui.messages import FormChosen
from tui.screens.base import ViewScreen, heading
from tui.terminal_session import TerminalSession
from tui.widgets.filter_line import FilterLine
from tui.widgets.row_table import RowTable

FIELDS = {"q": "filter", "with": "compare with"}
"""Of the view's query, and what the screen calls them."""


class ConfigsScreen(ViewScreen):
    """Read from the cluster when it opens, and after each change."""

    AUTO_FOCUS: ClassVar[str | None] = "RowTable"
    """From the first moment: a key that comes with the view is no text of its filter."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "go_to('q')", "filter", show=True),
        Binding("d", "go_to('with')", "compare", show=True),
        Binding("r", "again", "read again", show=True),
        Binding("Z", "reset", "reset to the default", show=True),
    ]

    def __init__(self, path: ViewPath, session: TerminalSession) -> None:
        super().__init__(path, session)
        self._resource = resource_of(path)
        self._entries: tuple[ConfigEntry, ...] = ()
        self._other: tuple[ConfigEntry, ...] | None = None
        self._read_ms = 0

    @property
    def given_here(self) -> dict[str, str]:
        """The config under the cursor, as forms take it."""
        entry = self._pointed
        found = {"configs": f"{entry.name}={entry.value or ''}"} if entry else {}
        return {**super().given_here, **found}

    def compose_body(self) -> ComposeResult:
        """Filter and comparison, then the table."""
        with Horizontal(id="where-from"):
            for name, label in FIELDS.items():
                yield Label(label)
                value = self.path.query.get(name, "")
                yield FilterLine(value, narrows=name == "q", id=f"configs-{name}", compact=True)
        yield Static(id="configs-title", classes="title")
        yield RowTable(id="table", opens=False)

    def on_mount(self) -> None:
        """Nothing to point at yet."""
        self._title("reading …")

    def on_screen_resume(self) -> None:
        """Opened, or back from a dialog that may have changed something."""
        self.action_again()

    def show(self, snapshot: OperatorSnapshot) -> None:
        """Configs come from the cluster itself."""

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as it is typed."""
        if event.input.id == "configs-q":
            self._fill()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Back to the table; another one to compare with is read."""
        self.query_one(RowTable).focus()
        if event.input.id == "configs-with":
            self.action_again()

    def on_filter_line_left(self) -> None:
        """Back to the table; another one to compare with is read at Enter alone."""
        self.query_one(RowTable).focus()

    def on_row_table_row_chosen(self) -> None:
        """All that is known of one."""
        if self._pointed is not None:
            self.app.push_screen(ConfigScreen(self._resource, self._pointed))

    def action_go_to(self, name: str) -> None:
        """To a field."""
        self.query_one(f"#configs-{name}").focus()

    def action_again(self) -> None:
        """Read what is there now."""
        self.run_worker(self._read, exclusive=True, group="configs")

    def action_reset(self) -> None:
        """Remove the setting under the cursor, by the form of its operation."""
        entry = self._pointed
        if entry is not None:
            form = f"configure_{self._resource.scope.name.lower()}"
            given = {**self.given_here, "configs": f"{entry.name}="}
            self.post_message(FormChosen(form, given))

    @property
    def _pointed(self) -> ConfigEntry | None:
        row = next((it.pointed for it in self.query(RowTable)), None)
        return next((it for it in self._entries if row and it.name == row.key), None)

    async def _read(self) -> None:
        self._title("reading …")
        other = self.query_one("#configs-with", Input).value.strip()
        session = self.session.operations
        try:
            self._entries = await session.configs(self._resource)
            self._other = await session.configs(self._beside(other)) if other else None
        except (KafkaPortError, ValueError) as error:
            words = explained(error) if isinstance(error, KafkaPortError) else str(error)
            self._title(f"✖ {words}", "bold red")
            return
        self._read_ms = self.session.now_ms
        self._fill()

    def _beside(self, name: str) -> ConfigResource:
        if self._resource.scope is ConfigScope.BROKER and not name.isdecimal():
            raise ValueError(f"{printable(name)} is not a broker's id")
        return ConfigResource(scope=self._resource.scope, name=name)

    def _fill(self) -> None:
        if not self.is_attached or not self._entries:
            return
        wanted, other = (self.query_one(f"#configs-{it}", Input).value for it in FIELDS)
        query = {"q": wanted, "with": other.strip()}
        self.path = ViewPath(view=self.path.view, params=self.path.params, query=query)
        rows = config_rows(self._resource, self._entries, filter=wanted, other=self._other)
        columns = CONFIGS.columns if self._other is None else compared_columns(other.strip())
        page = Page.whole(rows, columns)
        self.query_one(RowTable).show(page)
        self._title(_counted(self._resource.scope, self._entries, self._read_ms))

    def _title(self, words: str, style: str = "") -> None:
        kind = "TOPIC" if self._resource.scope is ConfigScope.TOPIC else "BROKER"
        name = printable(self._resource.name)
        self.put("#configs-title", heading(f"CONFIGS OF {kind} {name}", printable(words), style))


def _counted(scope: ConfigScope, entries: Sequence[ConfigEntry], at_ms: int) -> str:
    changed = sum(is_changed(scope, entry) for entry in entries)
    read = clock_text(at_ms, with_seconds=True)
    return f"{changed} of {len(entries)} set, read {read}   Enter explains"


class ConfigScreen(ModalScreen[None]):
    """One config in full."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("enter", "dismiss", show=False),
    ]

    def __init__(self, resource: ConfigResource, entry: ConfigEntry) -> None:
        super().__init__()
        self._resource, self._entry = resource, entry

    def compose(self) -> ComposeResult:
        """A line for each fact."""
        text = Text(printable(self._entry.name), style="bold")
        (row,) = config_rows(self._resource, [self._entry])
        cells = [(it.title, row.cell(it.id).text) for it in CONFIGS.columns[1:]]
        for name, words in (*cells, *facts(self._resource.scope, self._entry)):
            if not words:
                continue
            text.append(f"\n\n{name}\n", style="dim").append(printable(words), style="")
        with VerticalScroll(id="message") as box:
            box.border_subtitle = "Esc closes"
            yield Static(text)
