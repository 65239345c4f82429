"""Accessibility of a page as axe-core judges it."""

from functools import cache
from importlib.resources import files
from typing import Any, Final

from playwright.sync_api import Page

SERIOUS: Final = ("serious", "critical")
_RUN: Final = """
async () => {
    // In the middle of a transition colours are neither those of before nor those of after.
    const ends = it => it.effect.getComputedTiming().endTime < 1e5;
    const transitions = document.getAnimations().filter(ends);
    await Promise.allSettled(transitions.map(it => it.finished));
    const judged = await axe.run(document, {resultTypes: ['violations']});
    return judged.violations.map(found => ({
        id: found.id, impact: found.impact, help: found.help,
        where: found.nodes.slice(0, 4).map(
            node => node.target.join(' ') + ': ' + node.failureSummary
        ),
    }));
}
"""


@cache
def _script() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


def serious_findings(page: Page) -> list[dict[str, Any]]:
    """What hinders people seriously, each with the places where it does."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_script())
    return [found for found in page.evaluate(_RUN) if found["impact"] in SERIOUS]
