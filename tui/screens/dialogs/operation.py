"""A form of the catalogue as a dialog: fields, what it would change, one confirmation, done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from control.kafka.errors import KafkaPortError
from control.operations.catalogue import operation_named
from control.operations.catalogue.forms import Confirmation, FieldKind, OperationForm
from control.operations.catalogue.operation import Done
from control.operations.catalogue.several import rows_words, several_of
from control.operations.errors import InvalidInputError, OperationError
from control.views.next_links import explained, without_flags
from control.views.paths import ViewPath
from tui.screens.dialogs.confirm import Confirming
from tui.terminal_session import TerminalSession
from tui.widgets.form import OFFERED, FormPanel
from tui.work import WorksWhileShown

HINT: Final = "Enter goes on · Esc changes nothing"
LINES_MAX: Final = 12
"""So many lines of what would change fit beside the question."""

Values = Mapping[str, str]


class OperationScreen(WorksWhileShown, ModalScreen[str]):
    """Answers the path of the view that shows what was done; empty: there is none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave it")]

    def __init__(
        self,
        form: OperationForm,
        given: Values,
        session: TerminalSession,
        rows: Sequence[str] = (),
    ) -> None:
        """``rows`` are those that are marked; none: the form names what it is about."""
        super().__init__()
        self._session = session
        self._form = form
        self._given = given
        self._rows = rows
        self._path = ""
        self._confirming = Confirming()

    def compose(self) -> ComposeResult:
        """Its effect, its fields, its outcome."""
        with VerticalScroll(id="operation"):
            yield Static(Text.assemble((self._form.title, "bold"), f"  {self._form.help}"))
            form = self._form
            if self._rows:
                yield Static(rows_words(form, self._rows), id="rows", markup=False)
                form = replace(form, fields=form.fields[1:])
            yield FormPanel(form, self._given)
            yield Static(HINT, id="operation-outcome")

    def on_mount(self) -> None:
        """Topics and groups to choose from, and whether it may be done here at all."""
        snapshot = self._session.snapshot
        panel = self.query_one(FormPanel)
        panel.show_denied(self._session.denied_words(self._form.name))
        names = {
            FieldKind.TOPIC: {it for it in snapshot.cluster.topics if not it.startswith("__")},
            FieldKind.GROUP: set(snapshot.group_table["group_id"].to_pylist()),
            FieldKind.BROKER: {str(it) for it in snapshot.broker_table["broker"].to_pylist()},
        }
        for field in panel.form.fields:
            if field.kind in OFFERED:
                panel.offer(field.name, names[field.kind])

    def on_form_panel_submitted(self, event: FormPanel.Submitted) -> None:
        """Show what it would change, or do it."""
        self._say("asking the cluster …")
        self.run_worker(partial(self._go_on, event.values), exclusive=True)

    async def _go_on(self, values: Values) -> None:
        try:
            done = await self._done(values)
        except InvalidInputError as error:
            panel = self.query_one(FormPanel)
            panel.show_errors(error.fields)
            is_beside = {field.name for field in panel.form.fields}.issuperset(error.fields)
            words = HINT if is_beside else f"✖ {without_flags(error.reason)}"
            self._say(words, "" if is_beside else "bold red")
        except (KafkaPortError, OperationError) as error:
            self._say(f"✖ {without_flags(explained(error))}", "bold red")
        else:
            if done is not None and done.lines:
                self._tell_rows(done)
            elif done is not None:
                self.notify(f"✔ {done.words}", markup=False)
                path = ViewPath(view=done.view, params=done.params) if done.view else ""
                self.dismiss(str(path))

    async def _done(self, values: Values) -> Done | None:
        """Done; None where nothing was, which is said."""
        session, form = self._session.operations, self._form
        rows = self._rows
        previewed = await session.preview(
            several_of(form, rows, values)
            if rows
            else operation_named(form.name).of(form.parse(values))
        )
        word = previewed.word
        if not previewed.is_needed:
            self._say("; ".join(("✔ Nothing to change", *previewed.effect.notes)), "green")
            return None
        if form.confirmation is not Confirmation.NONE or word:
            lines = _cut(previewed.effect.lines)
            question = self._confirming.ask(previewed, "\n".join(lines))
            if not await self.app.push_screen_wait(question):
                self._say("nothing was changed")
                return None
        self._say("changing it …")
        return await session.perform(previewed, typed=word)

    def action_leave(self) -> None:
        """To the list, where something was done."""
        self.dismiss(self._path)

    def _tell_rows(self, done: Done) -> None:
        """Outcome of each row or part, until it is read."""
        self._path = str(ViewPath(view=done.view, params=done.params)) if done.view else ""
        self.query_one(FormPanel).display = False
        self.set_focus(None)
        bad = [line for line in done.lines if "✖" in line]
        lines = _cut((*bad, *(line for line in done.lines if line not in bad)))
        self._say("\n".join((f"{done.words} · Esc closes", *lines)), "yellow" if bad else "green")

    def _say(self, line: str, style: str = "") -> None:
        self.query_one("#operation-outcome", Static).update(Text(line, style=style))


def _cut(lines: tuple[str, ...]) -> tuple[str, ...]:
    if len(lines) <= LINES_MAX:
        return lines
    return (*lines[:LINES_MAX], f"… and {len(lines) - LINES_MAX:,} more")
