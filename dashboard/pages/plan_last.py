"""The last step of a plan: what must be typed, and the button that runs it."""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from control.model.fleet import WatchedCluster
from control.operations.reassignment.planning import Preview
from control.planner.ghost import plan_name
from control.views import format as text
from control.views.ghost import NO_VALUES
from dashboard import ids
from dashboard.components.forms import text_field


def last_step() -> Any:
    """What must be typed, and the button: it stays the same one, so that a click while pre-flight
    still runs is not lost."""
    button = dmc.Button("Move", id=ids.PLAN_CONFIRM)
    actions = [
        html.Div(id=ids.PLAN_TYPE, style={"display": "contents"}),
        button,
        html.P(id=ids.PLAN_NOTE, className="note"),
    ]
    return html.Div(actions, id=ids.PLAN_LAST, className="actions")


def last_words(
    preview: Preview | None, watched: WatchedCluster, judged: Mapping[str, str] = NO_VALUES
) -> tuple[list[Any], str, bool, str, str]:
    """What must be typed before; the button's words, whether it is off, its colour; what is said
    beside it. None: there is nothing that could be confirmed. ``judged``: values of the form that
    pre-flight went by; a confirmation with others is not what was reviewed."""
    count = 0 if preview is None else len(preview.proposal.changes)
    is_refused = preview is None or preview.is_refused
    label = f"Move {text.plural_text(count, 'partition')}" if count else "Move"
    words = (
        "Pre-flight refuses this plan: see ✖ above."
        if is_refused
        else "It goes on when you leave; it can be cancelled and rolled back."
    )
    word = "" if is_refused else watched.word_to_type()
    typed = [text_field(ids.PLAN_TYPED, f"Type {word} to confirm", word)] if word else []
    reviewed = None if preview is None else {"name": plan_name(preview.proposal), **judged}
    reviewed_one = dcc.Store(id=ids.PLAN_REVIEWED, data=reviewed)
    return [*typed, reviewed_one], label, is_refused, "red" if is_refused else "blue", words
