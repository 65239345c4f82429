"""Columns of a table are chosen by Space and shown by Enter."""

from textual import events
from textual.app import App

from tests.support.settle import settle
from tui.screens.dialogs.choose_columns import ColumnsScreen

COLUMNS = [("lag", "lag"), ("members", "members"), ("state", "state")]


async def test_keys_count_in_their_order_however_fast_they_come() -> None:
    chosen: list[str | None] = []
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ColumnsScreen(COLUMNS, ["lag"]), chosen.append)
        await pilot.pause()
        for name, character in (("down", None), ("space", " "), ("down", None), ("enter", "\r")):
            app.post_message(events.Key(name, character))
        await settle(pilot, lambda: bool(chosen), "the columns are chosen")
    assert chosen == ["lag,members"]
