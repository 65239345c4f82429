"""What an overview costs that nobody touches, and whether each press on it counts.

    python -m benchmarks.page_at_rest [--seconds 60] [--presses 200]

50 partitions, a new version every second. CPU in percent of a core and resident memory of the
tab (Chromium's renderer) and of the page's process, with one tab and with ten; then presses of
120 ms at random moments. Targets: tab 4 % and 200 MB, process 4 % with one tab and 8 % with ten, no
press lost. Ends with status 1 where one is missed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser

from benchmarks.processes import cpu_seconds, resident_mb
from benchmarks.screen_page import PageProbe
from benchmarks.screen_store import LivingStore
from tests.support.browser import chromium
from tests.support.page_server import PageServer
from tests.support.presses import lost_presses

OVERVIEW: Final = "#heat-map .heat-plot img"
TABS: Final = 10
SETTLE_S: Final = 10.0
TARGETS: Final = {
    "tab_percent": 4.0, "tab_mb": 200.0, "process_percent": 4.0, "process_ten_percent": 8.0,
    "lost": 0,
}  # fmt: skip


def renderers() -> Iterator[int]:
    """Processes of this one's browser that draw a page."""
    parents = {int(it.name): _parent(it) for it in Path("/proc").iterdir() if it.name.isdecimal()}
    for pid in parents:
        above = pid
        while above and above != os.getpid():
            above = parents.get(above, 0)
        if above and b"--type=renderer" in _command(pid):
            yield pid


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0  # it has ended


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def percent(pids: list[int], seconds: float) -> float:
    """CPU of these processes, in percent of a core."""
    before, began_s = sum(map(cpu_seconds, pids)), time.monotonic()
    time.sleep(seconds)
    spent_s = sum(map(cpu_seconds, pids)) - before
    return round(100 * spent_s / (time.monotonic() - began_s), 1)


def at_rest(browser: Browser, server: PageServer, seconds: float) -> dict[str, float]:
    """CPU and memory with one tab, and of the page's process with ten."""
    with ExitStack() as tabs:
        _open(browser, server, tabs)
        drawing = list(renderers())
        found = {
            "tab_percent": percent(drawing, seconds),
            "process_percent": percent([server.pid], seconds),
            "tab_mb": round(max(map(resident_mb, drawing))),
        }
        print(json.dumps(found), file=sys.stderr, flush=True)
        for _ in range(TABS - 1):
            _open(browser, server, tabs)
        found["process_ten_percent"] = percent([server.pid], seconds)
        return {**found, "process_mb": round(resident_mb(server.pid))}


def _open(browser: Browser, server: PageServer, tabs: ExitStack) -> None:
    probe = PageProbe(browser, server.url)
    tabs.callback(probe.close)
    probe.open("overview", OVERVIEW)
    time.sleep(SETTLE_S)


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--presses", type=int, default=200)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        LivingStore(Path(folder) / "store", 150) as store,
        PageServer(Path(folder) / "store") as server,
        chromium() as browser,
    ):
        found = at_rest(browser, server, given.seconds)
        print(json.dumps(found), file=sys.stderr, flush=True)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        url, place = f"{server.url}/overview", "#broker-table tbody a"
        lost = lost_presses(
            page, url, place, times=given.presses, wait_for_next=store.wait_for_next
        )
        found |= {"presses": given.presses, "lost": len(lost)}
    print(json.dumps(found))
    missed = [name for name, most in TARGETS.items() if found[name] > most]
    sys.exit(f"missed: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
