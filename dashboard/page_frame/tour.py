"""The tour on the page: a bar below the navigation, which hides nothing.

The browser walks it (`assets/modules/tour.js`) and remembers that it has begun: one page serves
many viewers, each of whom sees it once in each browser, and the server keeps nothing of them.
"""

import json
from typing import Any, Final

from dash import html

from control.views.tour import AGAIN, HELP, STEPS, TITLE, Offer, Thing
from dashboard import ids
from dashboard.components.parts import aria, attributes

POINTS_AT: Final = {
    Thing.MAP: f"#{ids.MAP_FIGURE}",
    Thing.GROUPS: f"#{ids.grid('groups')}",
    Thing.SEGMENTS: f".card:has(#{ids.DETAIL_SEGMENTS})",
    Thing.PLAN: f".card:has(> * #{ids.PLAN_BUTTON})",
    Thing.MOVES: f".card:has(#{ids.MOVES_TABLE})",
    Thing.MESSAGES: f"#{ids.BROWSE_RESULT}",
}
"""Selectors of what the steps point to."""


def bar(offer: Offer) -> list[Any]:
    """The bar, hidden; nothing where there is no demo to be shown."""
    if offer is Offer.NONE:
        return []
    steps = [
        {"path": step.path, "at": POINTS_AT[step.thing], "title": step.title, "words": step.words}
        for step in STEPS
    ]
    told = {"data-steps": json.dumps(steps), "data-again": AGAIN, "data-offer": offer.value}
    section = html.Section(
        [
            html.Div(
                [html.P("", className="tour-title"), html.P("", className="tour-words")],
                className="tour-told",
                role="status",
                id=ids.TOUR_TOLD,
            ),
            html.Div(
                [
                    _button("Back", "tour-back", "The step before (<)"),
                    _button("Next", "tour-next", "The next step (>)"),
                    _button("End tour", "tour-end", "End the tour (Esc)"),
                ],
                className="tour-buttons",
            ),
        ],
        id=ids.TOUR,
        className="tour",
        hidden=True,
        **aria(TITLE),
        **attributes(told),
    )
    return [section, html.Button(TITLE, id=ids.TOUR_AGAIN, hidden=True)]


def _button(words: str, name: str, title: str) -> html.Button:
    described = {"aria-describedby": ids.TOUR_TOLD} if name == "tour-next" else {}
    return html.Button(words, className=f"export {name}", title=title, **attributes(described))


def link(offer: Offer) -> list[Any]:
    """Asks for the tour, from the help."""
    if offer is Offer.NONE:
        return []
    clicks = attributes({"data-clicks": ids.TOUR_AGAIN})
    button = html.Button(f"{TITLE}: {HELP}", className="text-button", **clicks)
    return [html.P(button)]
