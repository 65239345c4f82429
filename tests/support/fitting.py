"""What does not fit on a page: figures that are cut, texts that lie on each other, and the like."""

import time
from typing import Final

from playwright.sync_api import Page

from tests.support.patience import patience_s

WIDTHS: Final = (1440, 1024, 390)
SETTLED_S: Final = 10.0
FAULTS: Final = """() => {
  const found = [];
  const drawn = "svg, .heat, .bars, pre, .message-value, .unseen, .name-head";
  const isClipped = (it) => ["hidden", "clip"].includes(getComputedStyle(it).overflowX);
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const words = node.textContent.trim();
    if (!words || element.closest(drawn) || !element.checkVisibility({ visibilityProperty: true }))
      continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!box.width) continue;
    let shown = { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity };
    let scrolls = false;
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      scrolls ||= ["auto", "scroll"].includes(style.overflowX);
      if (!isClipped(at) && !["auto", "scroll"].includes(style.overflowX)) continue;
      const edge = at.getBoundingClientRect();
      if (isClipped(at) && !scrolls && /\\d/.test(words)
          && (box.left < edge.left - 1 || box.right > edge.right + 1))
        found.push(`cut: ${words} in ${at.className}`);
      shown = { left: Math.max(shown.left, edge.left), right: Math.min(shown.right, edge.right),
        top: Math.max(shown.top, edge.top), bottom: Math.min(shown.bottom, edge.bottom) };
    }
    for (const line of range.getClientRects())
      texts.push({ words, element, left: Math.max(line.left, shown.left),
        right: Math.min(line.right, shown.right), top: Math.max(line.top, shown.top),
        bottom: Math.min(line.bottom, shown.bottom) });
  }
  const isStuck = (it) => Boolean(it.closest(".top-bar, .nav, .past-bar, .confirm-bar, .toast"));
  texts.forEach((one, place) => texts.slice(place + 1).forEach((other) => {
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (across > 2 && down > 4 && isStuck(one.element) === isStuck(other.element))
      found.push(`overlap: ${one.words} / ${other.words}`);
  }));
  const pen = document.createElement("canvas").getContext("2d");
  for (const field of document.querySelectorAll("input[placeholder]")) {
    if (!field.checkVisibility() || field.type === "search") continue;
    const style = getComputedStyle(field);
    pen.font = style.font;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (pen.measureText(field.placeholder).width > room + 1)
      found.push(`cut: placeholder ${field.placeholder}`);
  }
  for (const box of document.querySelectorAll("main input[type=checkbox]")) {
    const { left, right } = box.getBoundingClientRect();
    for (let at = box; at && !at.matches(".ag-row"); at = at.parentElement) {
      const edge = at.getBoundingClientRect();
      if (box.checkVisibility() && isClipped(at) && (left < edge.left || right > edge.right))
        found.push(`cut: a box, ${box.ariaLabel}`);
    }
  }
  for (const head of document.querySelectorAll(".ag-header-cell[col-id]")) {
    const column = head.getAttribute("col-id");
    const cells = [...head.closest(".ag-root").querySelectorAll(`.ag-cell[col-id="${column}"]`)];
    if (cells.some((cell) => !cell.getBoundingClientRect().width))
      found.push(`a head without cells: ${column}`);
  }
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) found.push(`wider than its window: ${scrollWidth}`);
  return found;
}"""


def lasting_faults(page: Page, *, names: str = "") -> list[str]:
    """Those that stay: tables move for a moment when their rows come. ``names`` may be cut."""
    until_s = time.monotonic() + patience_s(SETTLED_S)
    while True:
        page.wait_for_timeout(200)
        faults = [it for it in page.evaluate(FAULTS) if not names or names not in it]
        if not faults or time.monotonic() > until_s:
            return faults
