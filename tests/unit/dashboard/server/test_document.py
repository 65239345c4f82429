"""What a browser reads of the page: no more than it uses, and the view with the first answer."""

import asyncio
import json
import re
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from plotly.offline import get_plotlyjs_version

from dashboard import ids
from dashboard.app import create_app
from dashboard.components.markup import MARKUP
from dashboard.server.document import ASSETS, MODULES, PLOTLY
from dashboard.theme import DARK, LIGHT
from tests.unit.dashboard.page_context import context_on

HOST = "http://127.0.0.1:8050"


class Page:
    """Asks the application as a server would."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def get(self, address: str, **headers: str) -> str:
        return asyncio.run(self._get(address, headers))

    async def _get(self, address: str, headers: dict[str, str]) -> str:
        path, _, query = address.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        answers: list[MutableMapping[str, Any]] = []

        asked = [{"type": "http.request"}]

        async def receive() -> MutableMapping[str, Any]:
            return asked.pop() if asked else await asyncio.Future()

        async def send(message: MutableMapping[str, Any]) -> None:
            answers.append(message)

        await self._app(scope, receive, send)
        assert answers[0]["status"] == 200
        return b"".join(answer.get("body", b"") for answer in answers[1:]).decode()


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(create_app(context_on(tmp_path)).server)


def parts(component: Any) -> Iterator[dict[str, Any]]:
    """Properties of all components of a layout."""
    if isinstance(component, list):
        for item in component:
            yield from parts(item)
    elif isinstance(component, dict) and "props" in component:
        yield component["props"]
        yield from parts(component["props"].get("children"))


def layout(page: Page, **headers: str) -> dict[str, dict[str, Any]]:
    found = json.loads(page.get("/_dash-layout", **headers))
    return {str(props["id"]): props for props in parts(found) if "id" in props}


def test_plotly_is_that_of_the_package() -> None:
    head = (ASSETS / PLOTLY).read_text()[:200]
    assert f"plotly.js (cartesian - minified) v{get_plotlyjs_version()}\n" in head


def test_the_document_reads_what_is_used(page: Page) -> None:
    text = page.get("/")
    scripts = re.findall(r'<script [^>]*?src="([^"]*)"', text)
    assert not [name for name in scripts if re.search("polyfill|dash_table|plotly|ag_grid", name)]
    assert all(page.get(name) for name in scripts)
    charts = re.search(r'"(/assets/vendor/plotly[^"]*)"', text)
    assert charts
    assert "Plotly" in page.get(charts[1])
    tables = re.search(r'partiscopeTables\("([^"]*)"\)', text)
    assert tables
    assert "window.dash_ag_grid" in page.get(tables[1])


def test_modules_are_read_before_dash_begins_and_by_their_version(page: Page) -> None:
    text = page.get("/")
    found = re.search(r'<script [^>]*type="importmap">(.*?)</script>', text)
    assert found
    known = json.loads(found[1])["imports"]
    assert set(known) == {f"/assets/modules/{path.name}" for path in (ASSETS / MODULES).glob("*")}
    for address in known.values():
        assert re.search(r"\?m=\d", address)
        assert f'<link rel="modulepreload" href="{address}">' in text
        assert page.get(address)
    begin = 'type="module">import "/assets/modules/main.js";\nvar renderer = new DashRenderer();'
    assert begin in text
    assert not re.findall(r'<script [^>]*src="/assets/modules', text)


def test_the_page_comes_with_what_it_shows(page: Page) -> None:
    found = layout(page, referer=f"{HOST}/overview?at=")
    place = found[ids.LOCATION]
    assert (place["pathname"], place["search"]) == ("/overview", "?at=")
    assert "topic-0" in found[ids.HEAT_MAP][MARKUP]
    assert found[ids.TILES][MARKUP]
    assert "brokers" in found[ids.HEAD][MARKUP]
    assert found[ids.TICK]["data"]["version"] > 0


def test_charts_come_in_the_colours_of_the_browser(page: Page) -> None:
    drawn = layout(page, referer=f"{HOST}/map")[ids.MAP_FIGURE][MARKUP]
    dark = layout(page, referer=f"{HOST}/map", cookie="scheme=dark")
    assert LIGHT.heat[0] in drawn
    assert DARK.heat[0] in dark[ids.MAP_FIGURE][MARKUP]
    assert dark[ids.SCHEME]["data"] == "dark"


def test_a_browser_that_says_nothing_is_given_the_frame(page: Page) -> None:
    found = layout(page)
    assert "pathname" not in found[ids.LOCATION]
    assert not found[ids.CONTENT].get("children")
