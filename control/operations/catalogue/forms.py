"""Forms of operations: fields with checks, and the confirmation that each form needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from control.operations.checks import FieldCheck
from control.operations.errors import InvalidInputError


class FieldKind(StrEnum):
    """Which widget a field wants."""

    TEXT = "text"
    LONG_TEXT = "long_text"
    NUMBER = "number"
    CHOICE = "choice"
    FLAG = "flag"
    TOPIC = "topic"
    """A name, with the cluster's topics to choose from."""
    GROUP = "group"
    BROKER = "broker"
    """An id, with the cluster's brokers to choose from."""
    BROKERS = "brokers"
    """Ids with commas between."""


class Confirmation(StrEnum):
    """Step between the form and the change."""

    NONE = "none"
    PREVIEW = "preview"
    """The change is shown and one key confirms."""
    TYPED = "typed"
    """It destroys: a name must be typed. Which one, ``Operation.thing`` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field. An empty text is "not given" unless the field is required."""

    name: str
    label: str
    kind: FieldKind = FieldKind.TEXT
    default: str = ""
    help: str = ""
    choices: tuple[str, ...] = ()
    is_required: bool = False
    check: FieldCheck | None = None

    def error_in(self, text: str) -> str | None:
        """Why the field refuses a text, or None."""
        if not text:
            return "is needed" if self.is_required else None
        if self.choices and text not in self.choices:
            return f"one of {', '.join(self.choices)}"
        return self.check(text) if self.check is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationForm:
    """One operation as both screens offer it. `key` is the letter that opens it."""

    name: str
    key: str
    title: str
    help: str
    fields: tuple[FormField, ...]
    confirmation: Confirmation
    submit_label: str
    view: str = ""
    """The view that has it; empty: a dialog."""
    needs: str = ""
    """The operation whose rights it needs; empty: its own."""

    @property
    def right(self) -> str:
        """The operation that must be allowed."""
        return self.needs or self.name

    def field(self, name: str) -> FormField:
        """A field by name.

        :raises KeyError: there is none.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def defaults(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """Values to open the form with; `given` (what the cursor stands on) wins."""
        return {field.name: (given or {}).get(field.name, field.default) for field in self.fields}

    def errors(self, values: Mapping[str, str]) -> dict[str, str]:
        """Errors by field; empty when all is fine."""
        found = {f.name: f.error_in(values.get(f.name, f.default).strip()) for f in self.fields}
        return {name: text for name, text in found.items() if text is not None}

    def parse(self, values: Mapping[str, str]) -> dict[str, str]:
        """Checked values of every field.

        :raises InvalidInputError: naming each wrong field.
        """
        errors = self.errors(values)
        if errors:
            raise InvalidInputError(errors)
        return {f.name: values.get(f.name, f.default).strip() for f in self.fields}
