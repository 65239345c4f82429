"""Memory of the page's process while browser sessions come, open every view, and go.

    python -m benchmarks.page_sessions [--sessions 100] [--replicas 10000] [--mib-max 300]

Each session is a browser of its own that opens every view of a living store (a new version every
1 to 5 s), filters and sorts a table, looks at the past, and leaves. Prints the resident memory
every ten sessions; ends with status 1 where it is more than ``--mib-max`` at the end.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, expect

from benchmarks.processes import cpu_seconds, resident_mib
from benchmarks.screen_store import LivingStore
from tests.support.browser import chromium
from tests.support.page_server import PageServer

VIEWS: Final = {
    "overview": "#tiles .tile",
    "findings": "main",
    "topics": ".ag-row",
    "topics/topic-1": ".ag-row",
    "topics/topic-1/partitions/1": "#detail-tiles .tile",
    "partitions": ".ag-row",
    "brokers": ".ag-row",
    "brokers/1": "main h1",
    "groups": ".ag-row",
    "map": "#map-figure > *",
    "map?by=partitions": "#cells-figure",
    "what-if": "#loss-answer .tile",
    "job": "main",
    "moves": "main",
    "journal": "main",
}
"""By path, what stands there once the view does."""
PAST: Final = ("topics?at={}", "overview?at={}")
WAIT_MS: Final = 60_000


def sessions(browser: Browser, server: PageServer, count: int) -> Iterator[int]:
    """Each of them, when it has left."""
    for number in range(count):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        try:
            _visit(page, server.url)
        finally:
            context.close()
        yield number + 1


def _visit(page: Page, url: str) -> None:
    page.goto(f"{url}/overview")
    for view, selector in VIEWS.items():
        _go(page, view)
        page.locator(selector).first.wait_for(state="attached")
    _go(page, "partitions")
    page.locator(".ag-row").first.wait_for()
    page.locator("#filter-partitions").fill("topic-2")
    expect(page.locator("#count-partitions")).to_contain_text(" of ", timeout=WAIT_MS)
    ago = int(time.time()) - 60
    for view in PAST:
        _go(page, view.format(ago))
        page.locator("main h1, #tiles").first.wait_for()


def _go(page: Page, view: str) -> None:
    """As a link does."""
    page.evaluate(
        """(address) => {
            window.history.pushState({}, "", "/" + address);
            window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
        }""",
        view,
    )


def main() -> None:
    """Print resident memory by sessions, then one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=10_000)
    parser.add_argument("--mib-max", type=float, default=300.0)
    given = parser.parse_args()
    found: dict[int, float] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        LivingStore(Path(folder) / "store", given.replicas) as store,
        PageServer(Path(folder) / "store") as server,
        chromium() as browser,
    ):
        print(f"{store.replicas:,} replicas, a version every {store.interval_s:g} s", flush=True)
        print(f"{'sessions':>10}{'MiB':>8}{'CPU s':>8}")
        for number in sessions(browser, server, given.sessions):
            if number == 1 or number % 10 == 0 or number == given.sessions:
                found[number] = round(resident_mib(server.pid), 1)
                cpu_s = cpu_seconds(server.pid)
                print(f"{number:>10}{found[number]:>8.0f}{cpu_s:>8.0f}", flush=True)
        last = resident_mib(server.pid)
    print(json.dumps({"replicas": given.replicas, "resident_mib": found}))
    sys.exit(1 if last > given.mib_max else 0)


if __name__ == "__main__":
    main()
