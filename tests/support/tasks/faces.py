"""An operator's hands: a page in Chromium and ``partiscope tui`` in a real terminal (tmux)."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from playwright.sync_api import Page, expect

from tests.support.browser import chromium, dialog_of, open_page
from tests.support.installation import Installation
from tests.support.settle import wait_until
from tests.support.tasks.task import Click, Fill, Keys, Step, Task
from tests.support.tmux import PROGRAM, SEEN_S, START_S, Tmux

SIZE: Final = (160, 50)
ANSWER_S: Final = 0.6
"""A key that changes nothing on the screen is taken for answered then."""
STILL_S: Final = 0.12
LEADS_S: Final = 5.0
_FIGURES: Final = re.compile(r"(\x1b\[[\d;]*m)|[\d.]+")
BUSY: Final = ("asking the cluster", "planning …", "changing it …", "reading …", "not ready yet")
_KEYS: Final = {"↓": "Down", "↑": "Up", "Esc": "Escape", "PgDn": "NPage"}
_OF_VIEWS: Final = {"topics": "Topic {}", "groups": "Group {}", "brokers": "Broker {}",
                   "browse": "Messages of topic {}"}  # fmt: skip
PALETTE: Final = "🔎"
CONFIRMS: Final = "y"
CONFIRM: Final = "Type "
_LISTS: Final = {"topics": "t", "partitions": "p", "brokers": "b", "groups": "g", "moves": "r",
                 "findings": "f", "map": "m"}  # fmt: skip


class Face(Protocol):
    """Does tasks."""

    name: str

    def do(self, task: Task) -> None:
        """Begin where the task begins, do its steps, and see what it wants seen."""


class PageFace:
    """In Chromium."""

    name = "page"

    def __init__(self, page: Page, url: str) -> None:
        self._page, self._url = page, url

    def do(self, task: Task) -> None:
        """Begin, step, see."""
        self._page.goto(f"{self._url}/{task.start.format(face=self.name)}")
        expect(self._page.locator("main > *").first).to_be_visible()
        for step in task.page:
            self._take(step)
        for words in task.seen:
            found = self._page.get_by_text(words.format(face=self.name)).filter(visible=True)
            expect(found.first).to_be_visible()

    def _take(self, step: Step) -> None:
        page = self._page
        if isinstance(step, Keys):
            for key in step.keys.split():
                page.keyboard.press({"↓": "ArrowDown", "Esc": "Escape"}.get(key, key))
        elif isinstance(step, Fill):
            if step.key:
                page.keyboard.press(step.key)
            label = re.compile(rf"^{re.escape(step.label.format(face=self.name))}( \*)?$")
            field = page.get_by_label(label).filter(visible=True).first
            if step.at:
                field = page.locator(step.at)
            field.fill(step.text.format(face=self.name))
            if step.enters:
                field.press("Enter")
        else:
            self._click(step)

    def _click(self, step: Click) -> None:
        if step.at:
            self._page.locator(step.at.format(face=self.name)).first.click()
            return
        page = self._page
        within = dialog_of(page) if dialog_of(page).is_visible() else page.locator("body")
        words = step.words.format(face=self.name)
        named = within.get_by_role("button", name=words).or_(within.get_by_role("link", name=words))
        named.filter(visible=True).first.click()


class TerminalFace:
    """In tmux, a key at a time."""

    name = "terminal"

    def __init__(self, installation: Installation) -> None:
        self._tmux = Tmux(f"{PROGRAM} tui --data {installation.data}", SIZE)

    def wait_ready(self) -> None:
        """Until it shows the cluster."""
        self._tmux.wait("RACKS", "billing", seconds=START_S)

    def close(self) -> None:
        """Ends its tmux, which is of its own."""
        self._tmux.close()

    def do(self, task: Task) -> None:
        """Begin, step, see."""
        self._go(task.start.format(face=self.name))
        for step in task.terminal:
            self._take(step)
        self._wait([words.format(face=self.name) for words in task.seen_in_terminal], task.asks)
        self._press(*task.leaves.split())

    def picture(self) -> str:
        """What stands on the screen."""
        return self._tmux.picture()

    def _go(self, path: str) -> None:
        """Back to the overview, then on: lists by their letters, things by the palette."""
        for _ in range(4):
            self._tmux.press("Escape")
        self._wait(("RACKS",), "the overview")
        view, _, rest = path.partition("/")
        if view in _LISTS and not rest:
            self._press("g", _LISTS[view])
        elif rest:
            topic, is_partition, number = rest.partition("/partitions/")
            words = f"Partition {topic}-{number}" if is_partition else _OF_VIEWS[view].format(rest)
            self._press(":")
            self._wait((PALETTE,), "the palette")
            self._type(words)
            self._wait((words, path), f"the palette finds {path}")
            while PALETTE in self.picture():
                self._lead("Enter")

    def _take(self, step: Step) -> None:
        if isinstance(step, Keys):
            if step.keys == CONFIRMS:
                self._wait((" confirms ",), "it asks")
            self._press(*step.keys.split())
        elif isinstance(step, Fill):
            if step.label.startswith(CONFIRM):
                self._wait((step.label.format(face=self.name).lower(),), "it asks")
            elif step.key:
                self._lead(step.key)
            else:
                self._wait((step.label,), "its field")
            self._press(*["Tab"] * step.tabs)
            self._type(step.text.format(face=self.name))
            if step.enters:
                self._press("Enter")
        else:
            raise TypeError(f"{step} is no step of a terminal")

    def _lead(self, key: str) -> None:
        """A key that surely changes what is seen: what follows it must not come too early."""
        before = self._looks()
        self._press(key)
        pressed_s = time.monotonic()
        while self._looks() == before and time.monotonic() < pressed_s + LEADS_S:
            time.sleep(0.03)

    def _looks(self) -> str:
        """Colours too, without figures: those change by themselves."""
        return _FIGURES.sub(lambda it: it[1] or "0", self._tmux.run("capture-pane", "-e", "-p"))

    def _press(self, *keys: str) -> None:
        """Keys, until the screen has answered and stands still."""
        if keys:
            before = self.picture()
            for key in keys:
                self._tmux.press(_KEYS.get(key, key))
            self._rest(before)

    def _type(self, text: str) -> None:
        before = self.picture()
        self._tmux.type(text)
        self._rest(before)

    def _rest(self, before: str) -> None:
        """Until the screen is another one and stands still, and nothing is being asked."""
        pressed_s = since_s = time.monotonic()
        last = before
        while (now_s := time.monotonic()) < pressed_s + SEEN_S:
            now = self.picture()
            if now != last or any(words in now for words in BUSY):
                last, since_s = now, now_s
            elif now_s - since_s > (STILL_S if last != before else ANSWER_S):
                return
            time.sleep(0.03)

    def _wait(self, wanted: Sequence[str], what: str) -> None:
        wait_until(
            lambda: all(words in self.picture() for words in wanted),
            what,
            timeout_s=SEEN_S,
            story=lambda: f"{[it for it in wanted if it not in self.picture()]}\n{self.picture()}",
        )


@contextmanager
def page_face(installation: Installation) -> Iterator[Face]:
    """A browser, and no error on its console."""
    errors: list[str] = []
    with chromium() as browser:
        yield PageFace(
            open_page(browser, f"{installation.page}/overview", errors), installation.page
        )
    assert errors == []


@contextmanager
def terminal_face(installation: Installation) -> Iterator[Face]:
    """One terminal for all tasks."""
    face = TerminalFace(installation)
    try:
        face.wait_ready()
        yield face
    finally:
        face.close()
