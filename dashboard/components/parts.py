"""Small parts: cards, tiles, badges, findings, what to say when there is nothing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import dash_mantine_components as dmc
from dash import dcc, html

from control.model.command_line import typed
from control.views.next_links import linked
from control.views.next_steps import action_of
from control.views.tables.findings import FindingRow, in_words
from control.views.tables.rows import SHAPES, Cell, Fact, Tone
from dashboard import ids
from dashboard.figures.base import HEIGHT, Figure

GRAPH_CONFIG: Final[Any] = {"displayModeBar": False, "responsive": True, "scrollZoom": False}
_BEFORE_UNIT: Final = re.compile(r"(?<=\d) (?=[A-Za-z/%]{1,5}(?![A-Za-z]))|(?<=[▲▼◆✔✖★]) ")

BLANK: Final[Any] = {
    "data": [],
    "layout": {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "xaxis": {"visible": False},
        "yaxis": {"visible": False},
    },
}
"""A chart before its first figure: nothing, on any ground."""


def attributes(named: dict[str, str]) -> dict[str, Any]:
    """HTML attributes whose names are no Python names (``data-…``, ``aria-…``)."""
    return dict(named)


def aria(label: str) -> dict[str, Any]:
    """Words of a screen reader for a control that shows a sign only."""
    return attributes({"aria-label": label})


def card(title: str, *children: Any, extra: Any = None, class_name: str = "") -> html.Section:
    """A titled block of a view; ``extra`` stands at the right of its title. Without a title where
    that of the view says it all."""
    head = [html.Div([html.H2(title), html.Div(extra)], className="card-head")] if title else []
    return html.Section([*head, *children], className=f"card {class_name}".strip())


def folded(title: str, *children: Any, is_open: bool = False) -> html.Details:
    """A block of a view that opens by a click on its title."""
    return html.Details([html.Summary(title), *children], className="card folded", open=is_open)


def graph(
    component_id: str, height: int = HEIGHT, *, grows: bool = False, figure: Figure | None = None
) -> html.Div:
    """A chart as wide as its card; one that ``grows`` also takes what height is left there.
    Without a ``figure`` it is blank until its callback answers. Its place has its height before
    the library of charts is there, so that nothing below it moves away from a pointer."""
    growing = " grows" if grows else ""
    chart = dcc.Graph(
        id=component_id,
        figure=figure or BLANK,
        config=GRAPH_CONFIG,
        style={"height": f"{height}px"},
        className=f"graph{growing}",
        responsive=True,
    )
    return html.Div(chart, className=f"graph-place{growing}", style={"minHeight": f"{height}px"})


TILE_CHARACTERS: Final = 22
"""A longer text takes two places: in one it would be many lines tall."""


def tiles(facts: Iterable[Fact]) -> list[html.Div]:
    """A tile for each figure of a view about one thing."""
    return [tile(*fact) for fact in facts]


def tile(label: str, cell: Cell, why: str = "") -> html.Div:
    """One figure with its name; a number's unit stays on its line."""
    value = toned(cell)
    value.children = _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", value.children)
    return html.Div(
        [html.Div(label, className="tile-label"), html.Div(value, className="tile-value")],
        className="tile long" if len(cell.text) > TILE_CHARACTERS else "tile",
        title=why or None,
    )


def toned(cell: Cell) -> html.Span:
    """A cell's text in its tone, with the tone's shape where it has one."""
    words = cell.shaped(is_number=False)
    return html.Span(words, className=f"tone-{cell.tone}" if cell.tone else None)


def badge(component_id: str, content: Any) -> html.Span:
    """A place in the top bar."""
    return html.Span(content, id=component_id, className="badge")


def finding_line(row: FindingRow) -> html.Div:
    """A finding: shape, subject, what, since when, why, and the step to take."""
    return html.Div(
        [
            html.Span(row.severity.shape, className=f"finding-shape tone-{row.severity.tone}",
                      title=row.severity.text),
            dcc.Link(_subject(row), href=f"/{row.path}", className="finding-subject"),
            *_title(row),
            html.Span(linked_words(row.reason.text), className="finding-reason"),
            html.Span(row.since.text, className="finding-since"),
            _next_step(row),
            *_links("each: ", [(it.label.text, it) for it in row.parts]),
            *_links("hence ", [(in_words(it), it) for it in row.consequences]),
        ],
        className=f"finding edge-{row.severity.tone}",
        **attributes({"data-path": row.path, "data-key": row.key}),
    )  # fmt: skip


def _links(head: str, rows: Sequence[tuple[str, FindingRow]]) -> list[html.Div]:
    """The brokers or the consequences of a finding, each with the way to its view."""
    links = [
        dcc.Link(words, href=f"/{it.path}", className="finding-consequence") for words, it in rows
    ]
    return [html.Div([head, *links], className="finding-consequences")] if links else []


def finding_words(row: FindingRow) -> html.Div:
    """A finding that is only thought of: no date, no step."""
    return html.Div(
        [
            html.Span(row.severity.shape, className=f"finding-shape tone-{row.severity.tone}"),
            html.Span(_subject(row), className="finding-subject"),
            *_title(row),
            html.Span(linked_words(row.reason.text), className="finding-reason"),
        ],
        className=f"finding edge-{row.severity.tone}",
    )


def _is_said_by_title(row: FindingRow) -> bool:
    """``at-min-isr: 5 partitions at min ISR`` says it twice."""
    return row.label.text.replace("-", " ").lower() in row.title.text.replace("-", " ").lower()


def _subject(row: FindingRow) -> str:
    return row.title.text if _is_said_by_title(row) else row.label.text


def _title(row: FindingRow) -> list[html.Span]:
    if _is_said_by_title(row):
        return []
    return [html.Span(row.title.text, className="finding-title")]


def linked_words(text: str) -> Any:
    """A text in which commands are links to the views that do the same."""
    parts = [dcc.Link(it.words, href=f"/{it.path}") if it.path else it.words for it in linked(text)]
    return parts if len(parts) > 1 else (parts or [""])[0]


def _next_step(row: FindingRow) -> Any:
    """A link to what mends it, filled in, or a button that opens its form; words alone where it is
    not done here."""
    action, step = action_of(row), row.next_step.text
    if not action.form and not action.path:
        return html.Span(linked_words(step), className="finding-step")
    words = "".join(it.words for it in linked(step)) + " →"
    if not action.form:
        return dcc.Link(words, href=f"/{action.path}", className="finding-step")
    return opener(
        html.Button, words, action.form, dict(action.given), about=row.key, className="finding-step"
    )


def opener(
    kind: Any, words: str, form: str, given: Mapping[str, str], *, about: str = "", **more: Any
) -> html.Span:
    """A button that opens a form filled in with ``given``; greyed, with the reason as its title,
    where a right lacks. ``about`` tells it from others of the same form in a view."""
    place = {"form": form, "about": about}
    filled = {"data-form": form, "data-given": urlencode(given)}
    button = kind(words, id={"type": ids.OPENER, **place}, **attributes(filled), **more)
    return html.Span(button, id={"type": ids.OPENER_WHY, **place})


def calm_line(words: str) -> html.Div:
    """No finding."""
    return html.Div(
        [
            html.Span(SHAPES[Tone.FINE], className="finding-shape tone-fine"),
            html.Span(words, className="finding-title"),
        ],
        className="finding edge-fine",
    )


def empty(title: str, *steps: str) -> html.Div:
    """Nothing to show, and what to do about it."""
    return html.Div(
        [
            html.P(title, className="empty-title"),
            html.Ul([html.Li(linked_words(typed(step))) for step in steps]) if steps else None,
        ],
        className="empty",
        role="status",
    )


def warnings(*words: str) -> list[Any]:
    """One line each, of those that say something."""
    return [html.Div(f"▲ {it}", className="finding edge-warning") for it in words if it]


def modal(component_id: str, title: str, children: Any, **more: Any) -> Any:
    """A dialog, closed; its button to close has a name for who cannot see its sign."""
    return dmc.Modal(
        children,
        id=component_id,
        title=title,
        opened=False,
        closeButtonProps=aria("close"),
        transitionProps={"duration": 0},
        **more,
    )


def measure_switch(component_id: str, measures: dict[str, str], value: str) -> Any:
    """Which figure a chart shows."""
    return dmc.SegmentedControl(
        id=component_id,
        data=[{"value": name, "label": label} for name, label in measures.items()],
        value=value,
        size="xs",
    )


def crumbs(parts: Sequence[tuple[str, str]]) -> html.Nav:
    """Where one is; all but the last lead up."""
    shown: list[Any] = []
    for place, (label, path) in enumerate(parts):
        if place:
            shown.append(html.Span("/", className="crumb-slash"))
        is_last = place == len(parts) - 1
        shown.append(html.H1(label) if is_last else dcc.Link(label, href=f"/{path}"))
    return html.Nav(shown, className="crumbs")


def redirect(from_: str, to: str) -> dict[str, str]:
    """Data of ``ids.REDIRECT``: the browser goes from one view to another once something begins,
    unless the operator went elsewhere meanwhile."""
    return {"from": f"/{from_}", "to": to}
