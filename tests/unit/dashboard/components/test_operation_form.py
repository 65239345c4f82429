"""Forms of the registry on the page: every field has a widget, every value comes back."""

from pathlib import Path
from typing import Any

import pytest

from control.operations.catalogue import FORMS
from control.operations.catalogue.configs import no_config_words
from control.operations.catalogue.forms import OperationForm
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.operations.catalogue.topics.produce import PRODUCE
from control.operations.errors import InvalidInputError
from dashboard.components.operation_form import (
    DIALOG,
    UNCHECKED,
    errors_of,
    form_fields,
    values_of,
)
from dashboard.context import PageContext
from tests.support.phrases import lacking
from tests.unit.dashboard.page_context import context_on


@pytest.fixture
def context(tmp_path: Path) -> PageContext:
    return context_on(tmp_path)


def widgets_of(component: Any) -> list[Any]:
    """Everything below with an id."""
    children = getattr(component, "children", None)
    below = children if isinstance(children, list) else [] if children is None else [children]
    own = [component] if isinstance(getattr(component, "id", None), dict) else []
    return own + [found for child in below for found in widgets_of(child)]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_an_untouched_form_gives_back_its_defaults(
    form: OperationForm, context: PageContext
) -> None:
    widgets = widgets_of(form_fields(form, "here", given={}, snapshot=context.snapshot))

    given = values_of([item.id for item in widgets], [item.value for item in widgets])

    assert given == {field.name: field.default for field in form.fields}
    assert all(item.label for item in widgets)


def test_what_is_given_is_filled_in_even_where_it_is_not_on_offer(context: PageContext) -> None:
    shown = form_fields(
        ResetOffsets.FORM,
        "here",
        given={"group": "new"},
        snapshot=context.snapshot,
        only=("group",),
    )
    (group,) = widgets_of(shown)

    assert group.value == "new"
    assert group.data == ["group-0", "group-1", "group-2"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_dialog_has_its_cursor_in_one_field_even_where_nothing_is_lacking(
    form: OperationForm, context: PageContext
) -> None:
    given = {field.name: "x" for field in form.fields[:1]}
    widgets = widgets_of(form_fields(form, DIALOG, given=given, snapshot=context.snapshot))

    focused = [it.id["name"] for it in widgets if getattr(it, "data-autofocus", None)]

    assert focused == [form.first_to_type(given)]


def test_mistakes_stand_under_their_fields() -> None:
    found = [{"name": "topic"}, {"name": "count"}]
    with pytest.raises(InvalidInputError) as raised:
        PRODUCE.parse({"topic": "t", "count": "many"})

    wrong = errors_of(found, raised.value)

    assert wrong[0] is None
    assert wrong[1] is not None
    assert wrong[1].startswith("a whole number")
    assert errors_of(found, None) == [None, None]


def test_a_command_under_a_field_is_a_link_to_its_view() -> None:
    near = no_config_words("topic", "retentoin.ms", ["cleanup.policy", "retention.ms"], "orders")

    (wrong,) = errors_of([{"name": "configs"}], InvalidInputError({"configs": near}))

    assert not lacking(str(wrong[0]), "no config retentoin.ms", "did you mean retention.ms?")
    assert wrong[1].href == "/topics/orders/configs"


def test_numbers_come_back_as_they_are_written() -> None:
    found = [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]

    assert values_of(found, [3.0, 2.5, None, UNCHECKED]) == {"a": "3", "b": "2.5", "c": "", "d": ""}
