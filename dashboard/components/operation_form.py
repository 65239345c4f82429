"""Forms of the catalogue of operations as fields of the page.

A field's id names the place of the form on the page and the field, so that a callback takes all
fields of a place at once, whichever the catalogue has.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import dash_mantine_components as dmc
from dash import ALL, Output, State, html

from control.operations.catalogue import FORMS
from control.operations.catalogue.forms import FieldKind, FormField, OperationForm
from control.operations.errors import InvalidInputError
from control.views.snapshots.snapshot import OperatorSnapshot
from dashboard.components.parts import attributes, linked_words, opener

FIELD: Final = "field"
PLAN: Final = "plan"
PRODUCE: Final = "produce"
BROWSE: Final = "browse"
DIALOG: Final = "dialog"
"""Places of forms on the page."""
OFFERED_MAX: Final = 50
"""So many names that fit what is typed are offered at once."""
UNCHECKED: Final = "unchecked"
"""Value of a field that is yes or no; no choice of an operation has this word."""
_WHOLE: Final = frozenset(
    field.name
    for form in FORMS
    for field in form.fields
    if field.keeps_blanks or field.kind is FieldKind.GROUP
)
"""Fields whose blanks at the ends are part of the text, or are judged later."""


def field_id(place: str, name: Any) -> dict[str, Any]:
    """Id of one field; ``ALL`` as its name means every field of the place."""
    return {"type": FIELD, "place": place, "name": name}


def every_value(place: str) -> tuple[State, State]:
    """Ids and values of all fields of a place, for ``values_of``."""
    wanted = field_id(place, ALL)
    return State(wanted, "id"), State(wanted, "value")


def every_error(place: str) -> Output:
    """Error texts under every field of a place, for ``errors_of``."""
    return Output(field_id(place, ALL), "error")


def values_of(found: Sequence[Mapping[str, str]], values: Sequence[Any]) -> dict[str, str]:
    """The texts of all fields by name."""
    texts = {item["name"]: _text(value) for item, value in zip(found, values, strict=True)}
    return {name: text if name in _WHOLE else text.strip() for name, text in texts.items()}


def errors_of(found: Sequence[Mapping[str, str]], error: Exception | None) -> list[Any]:
    """Errors, field by field, in the order of ``found``."""
    wrong = error.fields if isinstance(error, InvalidInputError) else {}
    told = {name: linked_words(text) for name, text in wrong.items()}
    return [told.get(item["name"]) for item in found]


def form_fields(
    form: OperationForm,
    place: str,
    *,
    given: Mapping[str, str],
    snapshot: OperatorSnapshot,
    only: Iterable[str] = (),
    without: Iterable[str] = (),
) -> html.Div:
    """The form's sections: fields side by side where there is room, long texts below.

    Fields that the chooser's choice hides are there, hidden (``showFields`` in the browser)."""
    chosen = set(only) or {field.name for field in form.fields} - set(without)
    values = form.defaults(given)
    first = form.first_to_type(given)
    shown = form.shown(values)

    def widget(field: FormField) -> html.Div:
        has_focus = place == DIALOG and field.name == first
        drawn = _chooser if field.name == form.chooser else _widget
        told = {"data-field": field.name, "data-only-for": " ".join(field.only_for)}
        return html.Div(
            drawn(field, place, values[field.name], snapshot, has_focus=has_focus),
            hidden=field not in shown,
            **attributes(told),
        )

    drawn = []
    for title, fields in form.sections:
        widgets = [(it.kind, widget(it)) for it in fields if it.name in chosen]
        short = [it for kind, it in widgets if kind is not FieldKind.LONG_TEXT]
        long = [it for kind, it in widgets if kind is FieldKind.LONG_TEXT]
        heading = [html.H3(title)] if title and widgets else []
        line = [html.Div(short, className="form-line")] if short else []
        drawn.append(html.Div([*heading, *line, *long], className="form-section form"))
    return html.Div(drawn, className="form")


def operation_button(
    form: OperationForm, given: Mapping[str, str] | None = None, *, label: str = "", about: str = ""
) -> Any:
    """A button that opens the form in the dialog, filled in with ``given``; one that destroys
    stands apart."""
    words = f"{label or form.title} ({form.key})"
    look = {"color": "red", "className": "destructive"} if form.is_destructive else {}
    look |= {"size": "xs", "variant": "light"}
    return opener(dmc.Button, words, form.name, given or {}, about=about or label, **look)


def _chooser(field: FormField, place: str, value: str, *_: Any, **__: Any) -> Any:
    """The choice that the other fields depend on: all of it in sight."""
    choices = [dmc.Radio(label=label, value=choice) for label, choice in field.options]
    group = dmc.Group(choices, gap="lg")
    return dmc.RadioGroup(group, id=field_id(place, field.name), label=field.label, value=value)


def _widget(
    field: FormField, place: str, value: str, snapshot: OperatorSnapshot, *, has_focus: bool
) -> Any:
    shared: dict[str, Any] = {
        "id": field_id(place, field.name),
        "label": field.label,
        "description": field.help or None,
        "required": field.is_required,
        "size": "sm",
        "inputWrapperOrder": ["label", "input", "description", "error"],
        **(attributes({"data-autofocus": "true"}) if has_focus else {}),
    }
    if field.kind is FieldKind.FLAG:
        options = [{"value": UNCHECKED, "label": "no"}, {"value": "yes", "label": "yes"}]
        chosen = "yes" if value == "yes" else UNCHECKED
        return dmc.Select(data=options, value=chosen, allowDeselect=False, **shared)
    if field.choices:
        options = [{"value": choice, "label": label} for label, choice in field.options]
        return dmc.Select(data=options, value=value, allowDeselect=False, **shared)
    if field.kind in _OFFERS:
        # A name that no figures tell of yet may be typed as well.
        names = [*_OFFERS[field.kind](snapshot)]
        offered = {"filter": {"function": "namesOffered"}, "limit": OFFERED_MAX}
        return dmc.Autocomplete(data=names, value=value, **offered, **shared)
    if field.kind is FieldKind.LONG_TEXT:
        return dmc.Textarea(value=value, autosize=True, minRows=2, maxRows=14, **shared)
    if field.kind is FieldKind.NUMBER:
        return dmc.NumberInput(value=value, hideControls=True, **shared)
    return dmc.TextInput(value=value, **shared)


def _topics(snapshot: OperatorSnapshot) -> Iterable[str]:
    return (name for name in snapshot.cluster.topics if not name.startswith("__"))


def _groups(snapshot: OperatorSnapshot) -> Iterable[str]:
    names: list[str] = snapshot.group_table["group_id"].to_pylist()
    return sorted(names)


def _brokers(snapshot: OperatorSnapshot) -> Iterable[str]:
    return map(str, snapshot.broker_table["broker"].to_pylist())


_OFFERS: Final = {
    FieldKind.TOPIC: _topics,
    FieldKind.GROUP: _groups,
    FieldKind.BROKER: _brokers,
}


def _text(value: Any) -> str:
    """A widget's value as text, as the catalogue's checks take it."""
    if value is None or value == UNCHECKED:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
