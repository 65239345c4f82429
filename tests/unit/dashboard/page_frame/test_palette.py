"""The palette finds views, operations and names."""

from pathlib import Path

import pytest

from control.operations.catalogue import FORMS
from dashboard.context import PageContext
from dashboard.page_frame.palette import ENTRIES_MAX, entries
from tests.unit.dashboard.page_context import context_on


@pytest.fixture
def context(tmp_path: Path) -> PageContext:
    return context_on(tmp_path)


def test_nothing_typed_offers_the_views(context: PageContext) -> None:
    found = entries(context.snapshot, "", {})

    assert found[0].path == "overview"
    assert len(found) == ENTRIES_MAX


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("topic-2", "topics/topic-2"),
        ("group-1", "groups/group-1"),
        ("broker 102", "brokers/102"),
        ("messages topic-1", "browse/topic-1"),
        ("reassign", "plan"),
    ],
)
def test_names_are_found(context: PageContext, typed: str, path: str) -> None:
    assert entries(context.snapshot, typed, {})[0].path == path


def test_every_operation_is_found_by_its_title_with_its_key(context: PageContext) -> None:
    for form in FORMS:
        first = entries(context.snapshot, form.title, {})[0]
        assert (first.title, first.key) == (form.title, form.key)
        assert first.form == form.name or first.path in {"plan", "produce"}


def test_every_entry_does_one_thing(context: PageContext) -> None:
    for typed in ("", "o", "topic", "pause"):
        for entry in entries(context.snapshot, typed, {}):
            assert sum(map(bool, (entry.path, entry.form, entry.button))) == 1
