"""What the end-to-end tests share: one cluster with one page on it, and a tab a file.

They tell a story: within a file they run in the order in which they are written.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page

from tests.contract.operations_site import Site, site_of
from tests.support.browser import DESKTOP, chromium
from tests.support.cluster import LocalCluster
from tests.support.installation import Installation
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder

CHANGE: Final = ("test_dashboard.py", "test_up.py")
"""What `make test` needs of this folder; all else is `thorough`."""
FORGET: Final = "() => { window.localStorage.clear(); window.sessionStorage.clear(); }"


@dataclass(frozen=True, kw_only=True)
class SitePage:
    """A page on a cluster and the store that it shows. Of the shared one, one test file after the
    other writes versions; each names topics and groups of its own."""

    bootstrap: str
    """Of the cluster, which is its own bus."""
    server: PageServer
    store: StoreBuilder

    def show(self, rows: Mapping[str, Sequence[dict[str, Any]]]) -> PageServer:
        """The page, which is about these rows from here on."""
        self.store.write(rows)
        names = {row["topic"] for row in rows["partitions"]}
        wait_until(lambda: self._topics() == names, f"the page shows {names}")
        return self.server

    def _topics(self) -> set[str]:
        with urlopen(f"{self.server.url}/export/topics.json", timeout=WAIT_S) as answer:
            return {row["topic"] for row in json.load(answer)}


@contextmanager
def page_of(bootstrap: str, store: StoreBuilder) -> Iterator[SitePage]:
    """A page of a cluster that is its own bus."""
    with PageServer(store.folder, "--bootstrap", bootstrap, "--bus", bootstrap) as server:
        yield SitePage(bootstrap=bootstrap, server=server, store=store)


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Everything here is for `make test-all`, but for the files that a change needs."""
    if item.path.name not in CHANGE:
        item.add_marker(pytest.mark.thorough)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Undo the shuffle inside the files of this folder; other tests stay shuffled."""
    ours = [index for index, item in enumerate(items) if "tests/e2e/" in item.nodeid]
    story = sorted((items[index] for index in ours), key=_place)
    for index, item in zip(ours, story, strict=True):
        items[index] = item


def _place(item: pytest.Item) -> tuple[str, int, tuple[int, ...]]:
    """File, line, and which of its parameters."""
    spec: Any = getattr(item, "callspec", None)
    indices = () if spec is None else tuple(spec.indices.values())
    return str(item.path), item.location[1] or 0, indices


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one file: while it lives, Playwright's loop runs in this thread, and no other can."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``partiscope up`` without a load, ready."""
    flags = ("--no-demo", "--brokers", "5")
    with Installation(tmp_path_factory.mktemp("up"), flags=flags, brokers=5) as up:
        up.wait_ready()
        yield up


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three brokers of ours and an executor; whoever stops one takes a cluster of their own."""
    with site_of("ours", tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="package")
def shared_cluster(site: Site) -> LocalCluster:
    assert isinstance(site.cluster, LocalCluster)
    return site.cluster


@pytest.fixture(scope="package")
def site_page(site: Site) -> Iterator[SitePage]:
    store = StoreBuilder(site.folder / "store")
    store.write({})
    with page_of(site.cluster.bootstrap, store) as page:
        yield page


@pytest.fixture(scope="module")
def _tab(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport=DESKTOP)
    yield page
    page.context.close()


@pytest.fixture
def page(_tab: Page, server: PageServer) -> Iterator[Page]:
    """The tab that tests of a file share, on an asset of their server, as if nobody had used it: a
    new one would compile all scripts anew. What its console calls an error fails the test."""
    errors: list[str] = []

    def keep(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(f"{message.text} {message.location['url']}")

    def keep_thrown(error: Error) -> None:
        errors.append(str(error))

    _tab.set_viewport_size(DESKTOP)
    _tab.emulate_media(color_scheme="light")
    _tab.goto(f"{server.url}/assets/clusters.css")
    _tab.evaluate(FORGET)
    _tab.on("console", keep)
    _tab.on("pageerror", keep_thrown)
    yield _tab
    _tab.remove_listener("console", keep)
    _tab.remove_listener("pageerror", keep_thrown)
    _tab.unroute_all(behavior="ignoreErrors")
    _tab.context.clear_permissions()
    _tab.mouse.move(0, 0)
    _tab.goto("about:blank")
    assert errors == []
