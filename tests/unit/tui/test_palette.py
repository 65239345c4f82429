"""The palette finds every view, every operation and every name, from every view."""

from typing import Any

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot

from control.operations.catalogue import FORMS
from control.views.keymap import PLACES
from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.palette import Names
from tui.screens.base import ViewScreen
from tui.terminal_session import Services

PATHS = ["overview", "map", "plan", "produce/topic-1", "topics/topic-1/partitions/1"]
NAMES = {
    "topic-3": "topics/topic-3",
    "messages topic-3": "browse/topic-3",
    "produce topic-3": "produce/topic-3",
    "topic-3-5": "topics/topic-3/partitions/5",
    "segments topic-3-5": "topics/topic-3/partitions/5/segments",
    "group-2": "groups/group-2",
    "broker 102": "brokers/102",
    "what 103": "what-if?broker=103",
}


async def _opened(app: PartiscopeApp, pilot: Pilot[None], path: str) -> ViewScreen:
    await settle(
        pilot,
        lambda: isinstance(app.screen, ViewScreen) and str(app.screen.path) == path,
        path,
    )
    assert isinstance(app.screen, ViewScreen)
    return app.screen


async def _found(screen: ViewScreen, query: str) -> list[tuple[str, Any]]:
    provider = Names(screen)
    return [(str(hit.help), hit.command) async for hit in provider.search(query)]


@pytest.mark.parametrize("path", PATHS)
async def test_every_view_and_operation_is_found_from_everywhere(
    services: Services, path: str
) -> None:
    app = PartiscopeApp(services, path=path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await _opened(app, pilot, path)
        titles = " | ".join(command.title for command in app.get_system_commands(screen))
        assert all(place.title in titles for place in PLACES)
        assert all(
            form.title in titles for form in FORMS if form.name not in ("reassign", "produce")
        )
        assert "Reassign" in titles
        assert "Produce" in titles
        for query, wanted in NAMES.items():
            assert wanted in dict(await _found(screen, query)), query
        await pilot.press("ctrl+p")  # also where a text field has the keys
        await settle(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette")


async def test_what_is_found_opens(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(120, 40)) as pilot:
        await _opened(app, pilot, "topics")
        await pilot.press("colon")
        await settle(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette")
        await pilot.press(*"topic-3-5")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await _opened(app, pilot, "topics/topic-3/partitions/5")


async def test_keys_of_the_open_view_are_found(services: Services) -> None:
    app = PartiscopeApp(services, path="topics")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await _opened(app, pilot, "topics")
        commands = {command.title: command for command in app.get_system_commands(screen)}
        assert {"Here: filter", "Here: sort", "Here: columns", "Here: export"} <= set(commands)
        commands["Here: filter"].callback()
        await settle(pilot, lambda: app.screen.query_one("#filter").has_focus, "the filter")
