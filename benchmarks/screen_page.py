"""What a person at the page waits for, measured inside a real Chromium.

Every figure is in milliseconds, from the act to the first frame in which its result stands.
"""

import json
import random
import time
from typing import Any, Final

from playwright.sync_api import Browser, Page

DEADLINE_MS: Final = 20_000
"""Of one act; opening a view may take longer."""
OPEN_MS: Final = 60_000
ROW_PX: Final = 34

_PAINTED: Final = """
(function look() {
  if (document.querySelector(%s)) setTimeout(() => { window.painted = performance.now(); });
  else requestAnimationFrame(look);
})();
"""
_PROBE: Final = """
(function () {
  const DEADLINE = 20000;
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const rows = () => Array.from(document.querySelectorAll('.ag-center-cols-container .ag-row'));
  window.probe = {
    until: async (isThere, act) => {
      const began = performance.now();
      if (act) act();
      while (!isThere()) {
        if (performance.now() - began > DEADLINE) return -1;
        await frame();
      }
      return performance.now() - began;
    },
    changes: (selector) => {
      window.seen = [];
      const place = document.querySelector(selector);
      new MutationObserver(() => window.seen.push(Date.now())).observe(
        place, { childList: true, subtree: true, characterData: true });
    },
    // Rows within the window that show nothing; -1 where the window is not covered by rows.
    blanks: () => {
      const view = document.querySelector('.ag-body-viewport').getBoundingClientRect();
      const inside = rows().filter((row) => {
        const box = row.getBoundingClientRect();
        return box.bottom > view.top + 1 && box.top < view.bottom - 1;
      });
      if (inside.length < Math.floor(view.height / 34) - 1) return -1;
      return inside.filter((row) => !row.textContent.trim()).length;
    },
    jump: (row) => window.probe.until(
      () => window.probe.blanks() === 0,
      () => { document.querySelector('.ag-body-viewport').scrollTop = row * 34; }),
    filter: (text, words) => window.probe.until(
      () => document.querySelector('.count').textContent.startsWith(words)
        && window.probe.blanks() <= 0 && rows().length > 0 && rows()[0].textContent.trim(),
      () => {
        const field = document.querySelector('#filter-partitions');
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, text);
        field.dispatchEvent(new Event('input', { bubbles: true }));
      }),
    sort: (column, first) => window.probe.until(
      () => { const top = document.querySelector('.ag-center-cols-container [row-index="0"]');
              return top && top.getAttribute('row-id') === first; },
      () => document.querySelector(`.ag-header-cell[col-id="${column}"] .ag-header-cell-label`)
        .click()),
    // Where to click the row at this place of the window, and which row it is.
    aim: (place) => {
      const view = document.querySelector('.ag-body-viewport').getBoundingClientRect();
      const inside = rows().map((row) => [row, row.getBoundingClientRect()])
        .filter(([_, box]) => box.top >= view.top && box.bottom <= view.bottom)
        .sort((one, other) => one[1].top - other[1].top);
      const [row, box] = inside[place];
      window.aimed = row.getAttribute('row-id');
      return [view.left + view.width / 2, box.top + box.height / 2];
    },
    watch: () => {
      document.addEventListener('mousedown', () => {
        const wanted = `.ag-center-cols-container [row-id="${window.aimed}"].ag-row-selected`;
        window.took = window.probe.until(() => document.querySelector(wanted));
      }, { once: true, capture: true });
    },
  };
})();
"""


def painted(browser: Browser, url: str, selector: str) -> tuple[float, float]:
    """From asking for the address, with an empty cache, until the frame with ``selector`` is out,
    as the page's own clock tells; and until the page answers whoever asks whether it is, which
    scripts that run after it hold up."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(_PAINTED % json.dumps(selector))
    page = context.new_page()
    began_s = time.monotonic()
    page.goto(url, wait_until="commit")
    took: float = page.wait_for_function("() => window.painted", timeout=OPEN_MS).json_value()
    answered = (time.monotonic() - began_s) * 1000
    context.close()
    return took, answered


class PageProbe:
    """One page that is looked at and acted on."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.context = browser.new_context(viewport={"width": 1440, "height": 900})
        self.context.add_init_script(_PROBE)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(OPEN_MS)
        self._url = url
        self._dice = random.Random(7)

    def close(self) -> None:
        """Leave the page."""
        self.context.close()

    def open(self, path: str, selector: str) -> None:
        """A view, once ``selector`` stands."""
        self.page.goto(f"{self._url}/{path}")
        self.page.wait_for_selector(selector)

    def refreshes(self, for_s: float) -> list[float]:
        """When, in seconds since the epoch, the tiles of the overview changed."""
        self.page.evaluate("window.probe.changes('#tiles')")
        self.page.wait_for_timeout(for_s * 1000)
        return [at / 1000 for at in self.page.evaluate("window.seen")]

    def jumps(self, rows: int, count: int) -> list[float]:
        """To random places of the table, until every row in the window has its figures."""
        return [self._timed("jump", self._dice.randrange(rows)) for _ in range(count)]

    def filters(self, topics: int, each: int, count: int) -> list[float]:
        """Type a filter that leaves one topic."""
        asked = [self._dice.randrange(topics) for _ in range(count)]
        found = [
            self._timed("filter", f"topic=topic-{topic} partition>={place % 2}",
                        f"{each - place % 2} of")
            for place, topic in enumerate(asked)
        ]  # fmt: skip
        self._timed("filter", "", "")
        return found

    def sorts(self, last: str, count: int) -> list[float]:
        """By high watermark: down, up, and as it was, in turns."""
        firsts = (last, "topic-0-0")
        found = []
        for _ in range(-(-count // 2)):
            found += [self._timed("sort", "high_watermark", first) for first in firsts]
            self.page.locator('.ag-header-cell[col-id="high_watermark"]').click()
        return found[:count]

    def selections(self, count: int) -> list[float]:
        """Click one row after another."""
        found = []
        for turn in range(count):
            self.page.evaluate("window.probe.until(() => window.probe.blanks() === 0)")
            x, y = self.page.evaluate("place => window.probe.aim(place)", turn % 10)
            self.page.evaluate("window.probe.watch()")
            self.page.mouse.click(x, y)
            found.append(_shown(self.page.evaluate("window.took"), f"select {turn % 10}"))
        return found

    def _timed(self, act: str, *given: Any) -> float:
        took = float(
            self.page.evaluate("([act, given]) => window.probe[act](...given)", [act, list(given)])
        )
        self.page.wait_for_timeout(60)
        return _shown(took, f"{act} {given}")


def _shown(took: float, act: str) -> float:
    """What showed nothing in time counts as the whole deadline, and is said."""
    if took >= 0:
        return took
    print(f"  {act} showed nothing within {DEADLINE_MS / 1000:.0f} s", flush=True)
    return float(DEADLINE_MS)
