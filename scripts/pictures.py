"""Makes docs/pictures from the running product with its demo load; nothing is drawn by hand.

    .venv/bin/python scripts/pictures.py [--out docs/pictures] [--url http://127.0.0.1:8050]

Without --url it starts `partiscope up` on ports of its own and ends it afterwards; that takes
about two minutes, most of it to let the demo load write some history.
"""

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, expect

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.browser import chromium  # noqa: E402 (the checkout is no package)

READY_TIMEOUT_S: Final = 180.0
HISTORY_S: Final = 75.0
"""So long the demo load runs before the first picture."""
PORT: Final = 29_192
PAGE_PORT: Final = 28_150
DESK: Final = (1280, 860)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture: where, how, and what must be there before it is taken."""

    name: str
    path: str
    ready: str
    scheme: Literal["light", "dark"] = "light"
    size: tuple[int, int] = DESK
    act: Callable[[Page], None] = lambda page: None


def make_plan(page: Page) -> None:
    """Plan, and show the review."""
    page.locator("#plan-button").click()
    expect(page.locator("#plan-now .barlayer")).to_be_visible(timeout=30_000)
    page.locator("#plan-result").scroll_into_view_if_needed()


SHOTS: Final = (
    Shot(name="overview", path="overview", ready="#heat-map .heat-plot img"),
    Shot(
        name="partition",
        path="topics/orders/partitions/7",
        ready="#detail-replicas tbody tr",
        scheme="dark",
    ),
    Shot(name="plan", path="plan?topics=clicks", ready="#plan-button", act=make_plan),
)


def main() -> None:
    """Take all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--url", help="a page that runs already")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.url:
        take_all(given.url, given.out)
        return
    with demo() as url:
        time.sleep(HISTORY_S)
        take_all(url, given.out)


@contextmanager
def demo() -> Iterator[str]:
    """The product with its demo load, for as long as the context lasts; the page's address."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "up.log"
        command = (
            *(sys.executable, "-m", "partiscope", "up", "--data", f"{folder}/data"),
            *("--port", str(PORT), "--dashboard-port", str(PAGE_PORT)),
        )
        with log.open("wb") as said:
            process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said)
        try:
            yield address(process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until it is ready; where the page is."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"^ready in .*page (\S+)", log.read_text(), re.MULTILINE)
        if found:
            return found[1]
        time.sleep(0.5)
    raise SystemExit(f"`partiscope up` did not come up:\n{log.read_text()}")


def take_all(url: str, out: Path) -> None:
    """Every shot as a PNG."""
    with chromium() as browser:
        for shot in SHOTS:
            take(browser, url, shot, out / f"{shot.name}.png")
            sys.stderr.write(f"{out / shot.name}.png\n")


def take(browser: Browser, url: str, shot: Shot, target: Path) -> None:
    """One shot, once what it shows is there and drawn."""
    width, height = shot.size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=shot.scheme
    )
    page = context.new_page()
    page.goto(f"{url}/{shot.path}")
    expect(page.locator(shot.ready).first).to_be_visible(timeout=30_000)
    shot.act(page)
    page.wait_for_timeout(1_500)
    page.screenshot(path=target)
    context.close()


if __name__ == "__main__":
    main()
