"""The palette: every view, operation and name, found by a few letters; one key away."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html

from control.model.ids import path_segment
from control.operations.catalogue import FORMS
from control.views import tour
from control.views.keymap import PLACES
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tour import Offer
from dashboard import ids
from dashboard.components.parts import aria, attributes, modal
from dashboard.context import PageContext

ENTRIES_MAX: Final = 12
_VIEWS_OF_FORMS: Final = {"reassign": "plan", "produce": "produce"}
_DOES: Final = (
    ("pause-button", "Pause or resume", "hold the figures still"),
    ("scheme-switch", "Light or dark", "the other colours"),
    ("copy-button", "Copy link", "of this view"),
    ("time-button", "Another time", "an hour, a day ago: tables, findings, charts"),
    ("help-button", "Keys", "all of them"),
)
"""Buttons of the frame by id, with what they are called here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line: exactly one of ``path``, ``form`` and ``button`` says what it does."""

    title: str
    help: str
    key: str = ""
    path: str = ""
    form: str = ""
    button: str = ""


def dialog() -> Any:
    """The palette, closed; part of the frame."""
    return modal(
        ids.PALETTE,
        "Go or do",
        [
            dmc.TextInput(
                id=ids.PALETTE_QUERY,
                placeholder="a view, a topic, a group, a broker, an operation",
                value="",
                **aria("what to go to or to do"),
            ),
            html.Div(id=ids.PALETTE_LIST, className="palette-list"),
        ],
    )


def register(app: Dash, context: PageContext) -> None:
    """Answer what is typed."""

    @app.callback(
        Output(ids.PALETTE_LIST, "children"),
        Input(ids.PALETTE_QUERY, "value"),
        State(ids.DENIED, "data"),
        # Opening it empties the field, which asks.
        prevent_initial_call=True,
        websocket=True,
    )
    def find(query: str | None, denied: dict[str, str] | None) -> list[Any]:
        found = entries(context.snapshot, query or "", denied or {}, context.settings.tour)
        return [entry_line(entry) for entry in found] or [
            html.P("nothing has that name", className="note")
        ]


def entries(
    snapshot: OperatorSnapshot, query: str, denied: Mapping[str, str], offer: Offer = Offer.NONE
) -> tuple[Entry, ...]:
    """Entries with every word of ``query`` in title or help; titles that begin with it come first.
    Operations in ``denied`` have the reason as their help."""
    words = query.lower().split()
    found = [
        entry
        for entry in islice(_all(snapshot, denied, offer), 500_000)
        if all(word in f"{entry.title} {entry.help}".lower() for word in words)
    ]
    start = query.lower().strip()
    titles = {entry: entry.title.lower() for entry in found}
    found.sort(key=lambda it: (titles[it] != start, not titles[it].startswith(start)))
    return tuple(found[:ENTRIES_MAX])


def entry_line(entry: Entry) -> html.Button:
    """Title, help and key; scripts find what it does in its data."""
    return html.Button(
        [
            html.Span(entry.title, className="palette-title"),
            html.Span(entry.help, className="palette-help"),
            html.Kbd(entry.key) if entry.key else None,
        ],
        className="palette-entry",
        **attributes({"data-go": entry.path, "data-form": entry.form, "data-button": entry.button}),
    )


def _all(snapshot: OperatorSnapshot, denied: Mapping[str, str], offer: Offer) -> Iterator[Entry]:
    for place in PLACES:
        yield Entry(title=place.title, help=place.help, key=f"g {place.key}", path=place.path)
    for form in FORMS:
        path = _VIEWS_OF_FORMS.get(form.name, "")
        name = "" if path else form.name
        words = denied.get(form.name) or form.help
        yield Entry(title=form.title, help=words, key=form.key, path=path, form=name)
    for button, title, words in _DOES:
        yield Entry(title=title, help=words, button=button)
    if offer is not Offer.NONE:
        yield Entry(title=tour.TITLE, help=tour.HELP, button=ids.TOUR_AGAIN)
    for broker in snapshot.cluster.broker_ids:
        yield Entry(title=f"broker {broker}", help="broker", path=f"brokers/{broker}")
    for group in snapshot.group_table["group_id"].to_pylist():
        yield Entry(title=group, help="group", path=f"groups/{path_segment(group)}")
    for topic in snapshot.cluster.topics:
        yield Entry(title=topic, help="topic", path=f"topics/{topic}")
        yield Entry(title=f"messages of {topic}", help="browse", path=f"browse/{topic}")
