"""Makes docs/pictures from the running product with its demo load; nothing is drawn by hand.

    .venv/bin/python scripts/pictures.py [--out docs/pictures]

It starts `partiscope up` on ports of its own and ends it afterwards. That takes about two minutes,
most of it to let the demo load write some history.
"""

import argparse
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from struct import pack
from typing import Final, Literal

from PIL import Image
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
TERMINAL: Final = (104, 26)
TERMINAL_AFTER_S: Final = 10
SETTINGS: Final = {"PARTISCOPE_TOUR": "never"}
COLORS: Final = 128
"""Of a picture: enough for screens, at a third of the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture of the page: where, how, and what must be there before it is taken."""

    name: str
    path: str
    ready: str
    scheme: Literal["light", "dark"] = "light"
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
TERMINAL_SHOTS: Final = {"terminal": "overview"}
"""Names and views of the pictures of the terminal."""


def main() -> None:
    """Take all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with demo() as (url, data), chromium() as browser:
        time.sleep(HISTORY_S)
        for shot in SHOTS:
            take(browser, url, shot, out / f"{shot.name}.png")
        for name, path in TERMINAL_SHOTS.items():
            take_terminal(browser, data, path, out / f"{name}.png")


@contextmanager
def demo() -> Iterator[tuple[str, Path]]:
    """The product with its demo load: the page's address, and the data directory."""
    with tempfile.TemporaryDirectory() as folder:
        log, data = Path(folder) / "up.log", Path(folder) / "data"
        command = (
            *(sys.executable, "-m", "partiscope", "up", "--data", str(data)),
            *("--port", str(PORT), "--dashboard-port", str(PAGE_PORT)),
        )
        with log.open("wb") as said:
            environment = {**os.environ, **SETTINGS}
            process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, env=environment)
        try:
            yield address(process, log), data
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


def take(browser: Browser, url: str, shot: Shot, target: Path) -> None:
    """One picture of the page, once what it shows is there and drawn."""
    width, height = DESK
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
    compress(target)


def take_terminal(browser: Browser, data: Path, path: str, target: Path) -> None:
    """One picture of `partiscope tui` on a terminal of its own: Textual draws it, as SVG."""
    drawn = data / f"{target.stem}.svg"
    master, slave = pty.openpty()
    columns, rows = TERMINAL
    ioctl(slave, termios.TIOCSWINSZ, pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "partiscope", "tui", path, "--data", str(data)],
        cwd=ROOT,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={
            **os.environ,
            **SETTINGS,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "TEXTUAL_SCREENSHOT": str(TERMINAL_AFTER_S),
            "TEXTUAL_SCREENSHOT_LOCATION": str(data),
            "TEXTUAL_SCREENSHOT_FILENAME": drawn.name,
        },
    )
    os.close(slave)
    with suppress(OSError):  # the end of a terminal, as Linux tells it
        while os.read(master, 65_536):
            pass
    os.close(master)
    process.wait(30)
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_content(drawn.read_text())
    page.locator("svg").first.screenshot(path=target)
    page.close()
    compress(target)


def compress(picture: Path) -> None:
    """Few colours instead of millions."""
    with Image.open(picture) as image:
        image.convert("RGB").quantize(COLORS).save(picture, optimize=True)
    sys.stderr.write(f"{picture}: {picture.stat().st_size // 1024} kB\n")


if __name__ == "__main__":
    main()
