"""Forms of operations: fields with checks, and the confirmation that each form needs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, groupby

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
    choice_labels: tuple[str, ...] = ()
    """Words of the choices, in their order; empty: the choices themselves."""
    section: str = ""
    """Heading of the fields it stands among; fields of a section follow one another."""
    only_for: tuple[str, ...] = ()
    """Choices of the form's chooser that it belongs to; empty: all."""
    is_required: bool = False
    keeps_blanks: bool = False
    """Blanks at its ends are part of the text."""
    check: FieldCheck | None = None

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Label and value of each choice."""
        return tuple(zip(self.choice_labels or self.choices, self.choices, strict=True))

    def is_for(self, choice: str) -> bool:
        """Whether it is shown while the form's chooser says this."""
        return not self.only_for or choice in self.only_for

    def text_of(self, value: str) -> str:
        """A value without the blanks around it; those of a group are part of its name."""
        return value if self.keeps_blanks or self.kind is FieldKind.GROUP else value.strip()

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
    is_destructive: bool = False
    """It takes something away for good: its button stands apart."""
    chooser: str = ""
    """The field that decides which others are shown (``FormField.only_for``); empty: none."""
    complete: Callable[[Mapping[str, str]], Mapping[str, str]] = dict
    """Adds to the given values what they imply, such as the chooser's choice."""

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

    @property
    def sections(self) -> Iterator[tuple[str, tuple[FormField, ...]]]:
        """Heading and fields of each section, in the form's order."""
        for title, fields in groupby(self.fields, key=lambda field: field.section):
            yield title, tuple(fields)

    def shown(self, values: Mapping[str, str]) -> tuple[FormField, ...]:
        """The fields that belong to the chooser's choice in these complete values."""
        choice = values.get(self.chooser, "")
        return tuple(field for field in self.fields if field.is_for(choice))

    def defaults(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """Values to open the form with; `given` (what the cursor stands on) wins."""
        values = self.complete(given or {})
        return {field.name: values.get(field.name, field.default) for field in self.fields}

    def first_to_type(self, given: Mapping[str, str] | None = None) -> str:
        """The field where a hand begins: the first needed one that is not given, else the first
        that is empty, else the first."""
        known = given or {}
        values = self.defaults(known)
        fields = self.shown(values)
        needed = (it.name for it in fields if it.is_required and not known.get(it.name))
        empty = (it.name for it in fields if not values[it.name])
        return next(chain(needed, empty, (it.name for it in fields)))

    def errors(self, values: Mapping[str, str]) -> dict[str, str]:
        """Errors by shown field; empty when all is fine."""
        texts = self.defaults(values)
        found = {f.name: f.error_in(f.text_of(texts[f.name])) for f in self.shown(texts)}
        return {name: text for name, text in found.items() if text is not None}

    def parse(self, values: Mapping[str, str]) -> dict[str, str]:
        """Checked values of every field.

        Fields that the chooser's choice hides have their defaults. Where nothing was chosen, the
        choice is the one that the values imply, and nothing that was given is dropped.

        :raises InvalidInputError: naming each wrong field.
        """
        errors = self.errors(values)
        if errors:
            raise InvalidInputError(errors)
        given = self.defaults(values)
        texts = {field.name: field.text_of(given[field.name]) for field in self.fields}
        if not values.get(self.chooser):
            return texts
        hidden = set(self.fields).difference(self.shown(texts))
        return texts | {field.name: field.default for field in hidden}
