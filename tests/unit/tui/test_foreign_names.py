"""Names that others chose are text: no markup, no escape sequence, whatever view shows them."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.feed import SnapshotFeed
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.settle import settle
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.screens.dialogs.operation import OperationScreen
from tui.terminal_session import Services
from tui.widgets.name_input import NameInput

ODD = ("a[/b]c", "\x1b[2Jevil", "[red", "two\nlines", "user\u202egpj")


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Services]:
    rows = synthetic_rows(SyntheticSizes(topics=2, partitions=2, groups=5), at_ms=NOW_MS)
    names = dict(zip(sorted({row["group_id"] for row in rows["groups"]}), ODD, strict=True))
    for table in rows.values():
        for row in table:
            if row.get("group_id") in names:
                row["group_id"] = names[row["group_id"]]
            for name in ("rack", "client_id", "member_id", "host"):
                if isinstance(row.get(name), str):
                    row[name] = f"[/{row[name]}]"
    StoreBuilder(tmp_path).write(rows)
    reader = AggregatesReader(str(tmp_path))
    feed = SnapshotFeed(reader, now_ms=lambda: NOW_MS)
    watched = WatchedCluster(bootstrap="127.0.0.1:1")
    services = Services(feed=feed, history=reader, watched=watched, bus="", now_ms=lambda: NOW_MS)
    yield replace(services, bus="127.0.0.1:1")
    feed.stop()


@pytest.mark.parametrize(
    "path",
    [
        "overview",
        "groups",
        "groups?q=lag:[/",
        "findings",
        "brokers",
        "what-if",
        "topics/[/x",
        *(f"groups/{quote(name, safe='')}" for name in ODD),
    ],
)
async def test_no_view_takes_a_name_for_more_than_text(odd: Services, path: str) -> None:
    app = PartiscopeApp(odd, path=path)
    async with app.run_test(size=(100, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("TopBar")), "the view")
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            await pilot.pause()
        app.notify("[/nothing] \x1b[2J")
        await pilot.pause()
        for strip in app.screen._compositor.render_strips():
            assert strip.text.isprintable()
    assert app.return_code in (0, None)


@pytest.mark.parametrize("name", ODD)
async def test_forms_offer_every_name_as_text(odd: Services, name: str) -> None:
    app = PartiscopeApp(odd, path=f"groups/{quote(name, safe='')}")
    async with app.run_test(size=(100, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query("TopBar")), "the group")
        await pilot.press("O")
        await settle(pilot, lambda: isinstance(app.screen, OperationScreen), "the form")
        field = app.screen.query_one("#field-group", NameInput)
        assert field.typed_name == name
        first, field.value = field.value[0], ""
        field.focus()
        await pilot.press(first)
        await settle(pilot, lambda: bool(field._suggestion), "a name to complete to")
        await pilot.press("right")
        assert field.typed_name in ODD, "completed to a name, whatever had to be escaped"
        for strip in app.screen._compositor.render_strips():
            assert strip.text.isprintable()
    assert app.return_code in (0, None)
