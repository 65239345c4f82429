"""A form of the catalogue of operations as fields in the terminal."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Checkbox, Input, Label, Select, Static

from control.operations.catalogue.forms import FieldKind, FormField, OperationForm
from control.views.next_links import without_flags
from tui.widgets.name_input import NameInput

OFFERED: Final = frozenset({FieldKind.TOPIC, FieldKind.GROUP, FieldKind.BROKER})
"""Their names are completed from what the cluster has."""


class Tick(Checkbox):
    """A checkbox that is told by its sign, not by its colour alone."""

    @property
    def _button(self) -> Content:
        self.BUTTON_INNER = "✔" if self.value else " "
        return super()._button


class FormPanel(VerticalScroll, can_focus=False):
    """One line a field, with its help or what is wrong with it; Enter in a field submits."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "submit", "go on", show=True)]

    class Edited(Message):
        """A field was changed."""

    class Submitted(Message):
        """The form is complete and its values pass the form's checks."""

        def __init__(self, values: Mapping[str, str]) -> None:
            super().__init__()
            self.values = values

    def __init__(self, form: OperationForm, given: Mapping[str, str] | None = None) -> None:
        super().__init__(id="form-panel")
        self.form = form
        self._first = form.first_to_type(given)
        self._given = form.defaults(given)
        self._denied = ""

    def compose(self) -> ComposeResult:
        """Missing conditions, then the fields in the form's order."""
        denied = Static("", id="form-denied", classes="wrong", markup=False)
        denied.display = False
        yield denied
        for title, fields in self.form.sections:
            if title:
                yield Static(title, classes="section", markup=False)
            for field in fields:
                with Horizontal(classes="field", id=f"line-{field.name}"):
                    yield Label(field.label)
                    yield self._widget(field)
                    yield Static(field.help, id=f"hint-{field.name}", classes="hint", markup=False)

    def show_denied(self, why: str) -> None:
        """Why it may not be done on this cluster; empty: it may."""
        self._denied = why
        line = self.query_one("#form-denied", Static)
        line.display = bool(why)
        line.update(why)

    def on_mount(self) -> None:
        """The field where a hand begins has the cursor, its text marked."""
        self._show_fields()
        self.query_one(f"#field-{self._first}").focus()

    def _show_fields(self) -> None:
        """Only the fields of the chooser's choice, and headings that have some."""
        shown = {field.name for field in self.form.shown(self.values())}
        titles = iter(self.query(".section"))
        for title, fields in self.form.sections:
            for field in fields:
                self.query_one(f"#line-{field.name}").display = field.name in shown
            if title:
                next(titles).display = any(field.name in shown for field in fields)

    def offer(self, name: str, options: Iterable[str]) -> None:
        """The topics or groups from which a field completes what is typed."""
        self.query_one(f"#field-{name}", NameInput).offer(options)

    def values(self) -> dict[str, str]:
        """The texts of all fields by name."""
        return {field.name: self._value(field) for field in self.form.fields}

    def show_errors(self, errors: Mapping[str, str]) -> None:
        """Shows errors beside their fields, the cursor in the first such field; help again without
        any."""
        for wrong in [field.name for field in self.form.fields if field.name in errors][:1]:
            self.query_one(f"#field-{wrong}").focus()
        for field in self.form.fields:
            hint = self.query_one(f"#hint-{field.name}", Static)
            error = errors.get(field.name)
            hint.update(f"✖ {without_flags(error)}" if error else field.help)
            hint.set_class(error is not None, "wrong")

    def action_submit(self) -> None:
        """Check everything; send, or say what is wrong."""
        values = self.values()
        errors = self.form.errors(values)
        self.show_errors(errors)
        if not errors and not self._denied:
            self.post_message(self.Submitted(values))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in any field."""
        event.stop()
        self.action_submit()

    def on_input_changed(self) -> None:
        """A text was changed."""
        self.post_message(self.Edited())

    def on_select_changed(self) -> None:
        """A choice was changed."""
        if self.form.chooser:
            self._show_fields()
        self.post_message(self.Edited())

    def _widget(self, field: FormField) -> Input | Select[str] | Checkbox:
        name, value = f"field-{field.name}", self._given[field.name]
        if field.kind in OFFERED:
            return NameInput(value, name)
        if field.choices:
            return Select(field.options, value=value, allow_blank=False, id=name, compact=True)
        if field.kind is FieldKind.FLAG:
            return Tick(value=value == "yes", id=name, compact=True)
        return Input(value, id=name, compact=True)

    def _value(self, field: FormField) -> str:
        widget = self.query_one(f"#field-{field.name}")
        if isinstance(widget, Checkbox):
            return "yes" if widget.value else ""
        if isinstance(widget, Select):
            return widget.value if isinstance(widget.value, str) else ""
        if isinstance(widget, NameInput):
            return widget.typed_name
        assert isinstance(widget, Input)
        return field.text_of(widget.value)
