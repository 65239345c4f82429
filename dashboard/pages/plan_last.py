"""The last step of a plan: what must be typed, and the button that runs it."""

from collections.abc import Mapping
from typing import Any, Final

import dash_mantine_components as dmc
from dash import dcc, html

from control.operations.previews import Previewed
from control.views import format as text
from control.views.plan_map import NO_VALUES
from dashboard import ids
from dashboard.components.forms import text_field

_REFUSED: Final = "Pre-flight refuses this plan: see ✖ above."


def last_step() -> Any:
    """The word to type and the button. The button stays the same one, so that a click while
    pre-flight still runs is not lost."""
    button = dmc.Button("Move", id=ids.PLAN_CONFIRM)
    actions = [
        html.Div(id=ids.PLAN_TYPE, style={"display": "contents"}),
        button,
        html.P(id=ids.PLAN_NOTE, className="note"),
    ]
    return html.Div(actions, id=ids.PLAN_LAST, className="actions")


def last_words(
    previewed: Previewed | None, reviewed: Mapping[str, str] = NO_VALUES
) -> tuple[list[Any], str, bool, str, str]:
    """The word to type; the button's words, whether it is off, its colour; the words beside it.
    None: there is nothing to confirm. ``reviewed``: what the review is of."""
    if previewed is None or previewed.effect.review is None:
        return [dcc.Store(id=ids.PLAN_REVIEWED)], "Move", True, "red", _REFUSED
    proposal = previewed.effect.review.proposal
    label = f"Move {text.plural_text(len(proposal.changes), 'partition')}"
    store = dcc.Store(id=ids.PLAN_REVIEWED, data={"preview": previewed.name, **reviewed})
    if previewed.effect.refusal is not None:
        return [store], label, True, "red", _REFUSED
    word = previewed.word
    typed = [text_field(ids.PLAN_TYPED, f"Type {word} to confirm", word)] if word else []
    words = "It goes on when you leave; it can be cancelled and rolled back."
    return [*typed, store], label, False, "blue", words
