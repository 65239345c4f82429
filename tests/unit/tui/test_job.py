"""The metrics job in the terminal."""

from textual.widgets import Static

from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.terminal_session import Services


async def test_g_h_shows_the_job_and_how_it_went(services: Services) -> None:
    app = PartiscopeApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("g", "h")
        await settle(pilot, lambda: "state rows" in _text(app, "#job-history"), "history")
        shown = _text(app, "#job-figures")
        assert "batch time  ✔ 0.3 s" in shown
        assert "delay       0.7 s" in shown


def _text(app: PartiscopeApp, name: str) -> str:
    return "".join(str(it.content) for it in app.screen.query(name).results(Static))
