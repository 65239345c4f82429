"""An operator's hands: a page in Chromium and ``partiscope tui`` in a real terminal (tmux)."""

import re
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from playwright.sync_api import Page, expect

from tests.support.browser import chromium, dialog_of, open_page
from tests.support.installation import Installation
from tests.support.patience import patience_s
from tests.support.settle import wait_until
from tests.support.tasks.facts import Facts
from tests.support.tasks.task import Click, Fill, Keys, Step, Task
from tests.support.tmux import PROGRAM, SEEN_S, START_S, Tmux

SIZE: Final = (160, 50)
ANSWER_S: Final = 0.6
"""A key that changes nothing on the screen is taken for answered then."""
STILL_S: Final = 0.25
LEADS_S: Final = patience_s(10.0)
_FIGURES: Final = re.compile(r"(\x1b\[[\d;]*m)|[\d.]+")
BUSY: Final = ("asking the cluster", "planning …", "changing it …", "reading …", "previewing it …")
_KEYS: Final = {"↓": "Down", "↑": "Up", "Esc": "Escape", "PgDn": "NPage"}
_OF_VIEWS: Final = {"topics": "Topic {}", "groups": "Group {}", "brokers": "Broker {}",
                   "browse": "Messages of topic {}"}  # fmt: skip
PALETTE: Final = "🔎"
CONFIRMS: Final = "y"
CONFIRM: Final = "Type "
_LISTS: Final = {"topics": "t", "partitions": "p", "brokers": "b", "groups": "g", "moves": "r",
                 "findings": "f", "map": "m"}  # fmt: skip


GRIDS: Final = ("topics", "partitions", "groups")
OPENS: Final = ".ag-cell:not("
"""Part of the selector of a row's name, which opens the row."""
FIRST_ROW: Final = '.ag-pinned-left-cols-container [row-index="0"]'
FIRST_LINE: Final = r"\n (?:topic|group) +\S.*\n {}"
"""Below the titles of the columns."""


def _pattern(words: str) -> re.Pattern[str]:
    """Of what is seen, as ``Task`` has it."""
    whole = words.startswith("=")
    either = "|".join(map(re.escape, words.removeprefix("=").split("|")))
    return re.compile(rf"(?<![\w.,−+-])(?:{either})(?![\w.,])" if whole else either)


class Face(Protocol):
    """Does tasks."""

    name: str

    def do(self, task: Task, facts: Facts) -> None:
        """Begin where the task begins, do its steps, and see what it wants seen."""


class PageFace:
    """In Chromium."""

    name = "page"

    def __init__(self, page: Page, url: str) -> None:
        self._page, self._url = page, url

    def do(self, task: Task, facts: Facts) -> None:
        """Begin, step, see."""
        self._page.goto(f"{self._url}/{task.start.format(**facts)}")
        expect(self._page.locator("main > *").first).to_be_visible()
        if task.start in GRIDS:  # keys about rows want rows
            expect(self._page.locator(".ag-row").first).to_be_visible()
        if task.start.startswith("groups/"):
            expect(self._page.locator(".ag-row-selected").first).to_be_visible()
        for step in task.page:
            self._take(step, facts)
        for words in task.seen:
            found = self._page.get_by_text(_pattern(words.format(**facts)))
            expect(found.filter(visible=True).first).to_be_visible()
        for words in task.unseen:
            expect(self._page.get_by_text(words).filter(visible=True)).to_have_count(0)
        if task.first:
            expect(self._page.locator(FIRST_ROW)).to_contain_text(task.first)

    def _take(self, step: Step, facts: Facts) -> None:
        page = self._page
        if isinstance(step, Keys):
            for key in step.keys.split():
                page.keyboard.press({"↓": "ArrowDown", "Esc": "Escape"}.get(key, key))
        elif isinstance(step, Fill):
            if step.key:
                page.keyboard.press(step.key)
            label = re.compile(rf"^{re.escape(step.label.format(**facts))}( \*)?$")
            field = page.get_by_label(label).filter(visible=True).first
            if step.at:
                field = page.locator(step.at)
            field.fill(step.text.format(**facts))
            if step.enters:
                field.press("Enter")
        else:
            self._click(step, facts)

    def _click(self, step: Click, facts: Facts) -> None:
        if step.at:
            before = self._page.url
            self._page.locator(step.at.format(**facts)).first.click()
            if OPENS in step.at:  # the next key is about the view that it leads to
                expect(self._page).not_to_have_url(before)
            return
        page = self._page
        within = dialog_of(page) if dialog_of(page).is_visible() else page.locator("body")
        words = step.words.format(**facts)
        named = within.get_by_role("button", name=words).or_(within.get_by_role("link", name=words))
        named.filter(visible=True).first.click()


class TerminalFace:
    """In tmux, a key at a time."""

    name = "terminal"

    def __init__(self, installation: Installation) -> None:
        self._tmux = Tmux(shlex.join((str(PROGRAM), "tui", "--data", str(installation.data))), SIZE)

    def wait_ready(self) -> None:
        """Until it shows the cluster."""
        self._tmux.wait("RACKS", "billing", seconds=START_S)

    def close(self) -> None:
        """Ends its tmux, which is of its own."""
        self._tmux.close()

    def do(self, task: Task, facts: Facts) -> None:
        """Begin, step, see."""
        self._go(task.start.format(**facts))
        for step in task.terminal:
            self._take(step, facts)
        self._wait([words.format(**facts) for words in task.seen_in_terminal], task.asks)
        wait_until(lambda: self._is_so(task), f"rows of: {task.asks}", story=self.picture)
        self._press(*task.leaves.split())

    def _is_so(self, task: Task) -> bool:
        shown = self.picture()
        is_sorted = not task.first or bool(re.search(FIRST_LINE.format(task.first), shown))
        return is_sorted and not any(words in shown for words in task.unseen)

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
            self._lead("g")
            self._lead(_LISTS[view])
        elif view == "moves":
            self._lead("g")
            self._lead("r")
            self._wait((rest,), "the list of moves")
            listed = re.findall(r"^ (mv-\w+) ", self.picture(), re.MULTILINE)
            self._press(*["Down"] * listed.index(rest), "Enter")
            self._wait((f" {rest} ", "throttle"), "the move")
        elif rest:
            topic, is_partition, number = rest.partition("/partitions/")
            words = f"Partition {topic}-{number}" if is_partition else _OF_VIEWS[view].format(rest)
            self._press(":")
            self._wait((PALETTE,), "the palette")
            self._type(words)
            self._wait((words, path), f"the palette finds {path}")
            self._lead("Enter")
            wait_until(lambda: PALETTE not in self.picture(), f"the palette leads to {path}")
            self._rest("")

    def _take(self, step: Step, facts: Facts) -> None:
        if isinstance(step, Keys):
            if step.keys == CONFIRMS:
                self._wait((" confirms ",), "it asks")
            for key in step.keys.split():
                self._lead(key)
        elif isinstance(step, Fill):
            if step.label.startswith(CONFIRM):
                self._wait((step.label.format(**facts).lower(),), "it asks")
            elif step.key:
                self._lead(step.key)
            else:
                self._wait((step.label,), "its field")
            self._press(*["Tab"] * step.tabs)
            self._type(step.text.format(**facts))
            if step.enters:
                self._lead("Enter")
        else:
            raise TypeError(f"{step} is no step of a terminal")

    def _lead(self, key: str) -> None:
        """A key that surely changes what is seen: what follows it must not come too early."""
        before = self._looks()
        self._tmux.press(_KEYS.get(key, key))
        pressed_s = time.monotonic()
        while self._looks() == before and time.monotonic() < pressed_s + LEADS_S:
            time.sleep(0.03)
        self._rest("")

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
            lambda: not self._lacks(wanted),
            what,
            timeout_s=SEEN_S,
            story=lambda: f"{self._lacks(wanted)}\n{self.picture()}",
        )

    def _lacks(self, wanted: Sequence[str]) -> list[str]:
        shown = self.picture()
        return [words for words in wanted if not _pattern(words).search(shown)]


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
