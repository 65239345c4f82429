"""What one face has, the other has: views, tables with their columns, operations with their fields.

Both are asked from their registries, so that what is added to one only is found here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from textual.binding import Binding
from textual.widgets import Input

from control.operations.catalogue import FORMS, OPERATIONS
from control.operations.catalogue.forms import OperationForm
from control.views.keymap import KEYS, PLACES
from control.views.paths import VIEWS, ViewPath, parse_path, print_path
from control.views.tables.export import FORMATS
from dashboard import router
from dashboard.components.operation_form import FIELD
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import Look
from dashboard.page_frame.operation_dialog import body
from tests.support.settle import settle
from tests.unit.dashboard.page_context import context_on
from tests.unit.tui.conftest import services, written_store
from tui.app import PartiscopeApp
from tui.screens.base import VIEWS_OF_FORMS
from tui.screens.details.overview import OverviewScreen
from tui.screens.lists.table_screen import TableScreen
from tui.screens.views import SCREENS, build_screen
from tui.terminal_session import Services, TerminalSession
from tui.widgets.form import FormPanel
from tui.widgets.row_table import RowTable

__all__ = ["services", "written_store"]

NAMES: Final = {"broker": "101", "topic": "topic-0", "partition": "0", "group": "group-0",
                "move": "mv-1"}  # fmt: skip
TABLES: Final = ("topics", "partitions", "brokers", "groups", "topics/topic-0", "groups/group-0")
WIDE: Final = (400, 40)
"""No column lacks room."""
FORM_PATHS: Final = {"reassign": "plan", "produce": "produce/topic-0"}
KEY_NAMES: Final = {"Esc": "escape", "Space": "space", "Enter": "enter", ":": "colon", "@": "at",
                    "?": "question_mark", "/": "slash", "↑ ↓": "down", "*": "asterisk"}  # fmt: skip


@pytest.fixture
def page(tmp_path: Path) -> PageContext:
    """The page on a cluster that has what is named above."""
    return context_on(tmp_path / "page", bootstrap="127.0.0.1:1")


@pytest.mark.parametrize("view", VIEWS)
def test_both_faces_have_every_view(view: str, page: PageContext, services: Services) -> None:
    path = ViewPath(view=view, params=NAMES)
    assert _drawn(page, print_path(path))
    assert view in router.VIEWS
    assert view in SCREENS
    screen = build_screen(path, TerminalSession(services))
    assert (view == "overview") == (type(screen) is OverviewScreen)


def test_a_place_of_the_goto_key_is_a_view() -> None:
    assert {parse_path(place.path).view for place in PLACES} <= set(VIEWS)


async def test_both_faces_have_every_column(page: PageContext, services: Services) -> None:
    app = PartiscopeApp(services)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        for path in TABLES:
            app.navigator.open(path)
            await settle(pilot, lambda: bool(_columns_of(app)), path)
            found = [item for item in _walk(_drawn(page, path)) if _is_grid(item)]
            (grid,) = found
            wanted = {column["field"] for column in grid.columnDefs if "field" in column}
            # The page leaves out what its title says already.
            assert wanted == {*_columns_of(app)} - ({"topic"} if "/topic" in path else set())


async def test_both_faces_have_every_operation_with_every_field(
    page: PageContext, services: Services
) -> None:
    done = {operation.FORM.name for operation in OPERATIONS}
    assert {form.name for form in FORMS} == done | set(VIEWS_OF_FORMS)
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=WIDE) as pilot:
        for form in FORMS:
            wanted = [field.name for field in form.fields]
            assert sorted(wanted) == sorted(_fields_of_page(page, form))
            await settle(pilot, lambda: bool(app.screen.query("#table")), "the topics")
            await pilot.press(form.key)
            await settle(pilot, lambda: bool(app.screen.query("#field-" + wanted[0])), form.name)  # noqa: B023
            panel = app.screen.query_one(FormPanel)
            assert panel.form is form
            assert list(panel.values()) == wanted
            app.pop_screen()


def test_both_faces_export_every_format(page: PageContext) -> None:
    found = [getattr(item, "data-export", "") for item in _walk(_drawn(page, "topics"))]
    assert {name for name in found if name} == set(FORMATS)
    keys = [binding for binding in TableScreen.BINDINGS if isinstance(binding, Binding)]
    assert {f"export('{name}')" for name in FORMATS} <= {binding.action for binding in keys}


async def test_the_terminal_has_the_keys_of_the_help(services: Services) -> None:
    app = PartiscopeApp(services, path="topics/topic-0")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("#table")), "the topic")
        of_lists = ("topics", "topics, groups")
        keys = {line.key for line in KEYS if line.where not in {"a move", *of_lists}}
        wanted = {KEY_NAMES.get(key, key) for line in keys for key in line.split(" or ")}
        assert wanted <= set(app.active_bindings)
        assert not isinstance(app.focused, Input)
        app.navigator.open("topics")
        own = {KEY_NAMES.get(it.key, it.key) for it in KEYS if it.where in of_lists}
        await settle(pilot, lambda: own <= set(app.active_bindings), "the keys of the topics")


def _drawn(page: PageContext, path: str) -> Any:
    """A view of the page, as its path asks for it."""
    return router.view(page, f"/{path}", "", Look())


def _columns_of(app: PartiscopeApp) -> tuple[str, ...]:
    tables = app.screen.query("#table").results(RowTable)
    return next((table.shown for table in tables), ())


def _fields_of_page(page: PageContext, form: OperationForm) -> list[str]:
    path = FORM_PATHS.get(form.name)
    drawn = _drawn(page, path) if path else body(page, form, {})
    ids = [getattr(item, "id", None) for item in _walk(drawn)]
    return [it["name"] for it in ids if isinstance(it, dict) and it.get("type") == FIELD]


def _is_grid(item: Any) -> bool:
    return hasattr(item, "columnDefs")


def _walk(component: Any) -> Iterator[Any]:
    """A component of the page with all below it."""
    if isinstance(component, list | tuple):
        for item in component:
            yield from _walk(item)
    elif component is not None and not isinstance(component, str | int | float):
        yield component
        yield from _walk(getattr(component, "children", None))
