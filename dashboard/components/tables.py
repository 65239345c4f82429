"""Plain tables of view rows, for those short enough to be shown whole."""

from collections.abc import Sequence
from typing import Any, Final

from dash import dcc, html

from control.views.tables.column import Column
from control.views.tables.rows import Cell, Row
from dashboard.components.markup import still
from dashboard.components.parts import attributes

NAME_TAIL: Final = 10
"""Of a long name, so many last characters are always shown."""


def rows_table(
    rows: Sequence[Row], columns: Sequence[Column], *, link: bool = True, reloads: bool = False
) -> html.Div:
    """One line per row; the first cell links to the row's view, which ``reloads`` the page where
    that view is another cluster's.

    On narrow screens only columns of rank 1 stay (the style sheet hides the others).
    """
    head = html.Tr([_head(column) for column in columns])
    body = [
        html.Tr(
            [
                _cell(
                    row.cell(column.id),
                    column,
                    row.path if link and place == 0 else "",
                    key=f"{row.key} {column.id}",
                    reloads=reloads,
                )
                for place, column in enumerate(columns)
            ],
            **attributes({"data-key": row.key, "data-path": row.path}),
        )
        for row in rows
    ]
    table = html.Table([html.Thead(head), html.Tbody(body)], className="rows")
    return still(table, className="rows-frame")


def _head(column: Column) -> html.Th:
    return html.Th(column.title, title=column.help or None, className=_class_of(column))


def _cell(cell: Cell, column: Column, path: str, *, key: str, reloads: bool) -> html.Td:
    words = cell.shaped(is_number=column.is_number)
    tone = f" tone-{cell.tone}" if cell.tone else ""
    if not column.is_long and " " not in cell.text:
        tone += " word"  # a state or an id, which no narrow column breaks
    if cell.lines:
        return html.Td(_opened(words, cell.lines, key), className=_class_of(column) + tone)
    if not path:
        return html.Td(words, className=_class_of(column) + tone)
    name = name_parts(words) if column.is_long else words
    link = dcc.Link(name, href=f"/{path}", refresh=reloads, title=words)
    return html.Td(link, className=_class_of(column) + tone)


def _opened(words: str, lines: Sequence[str], key: str) -> html.Details:
    """The words of a cell, and all of them where it is opened; ``key`` keeps it open."""
    whole = html.Ul([html.Li(line) for line in lines], className="lines")
    return html.Details([html.Summary(words), whole], **attributes({"data-key": key}))


def name_parts(name: str) -> Any:
    """A name that gives way in its middle: what it ends with often tells it from others."""
    if len(name) <= NAME_TAIL * 2:
        return name
    parts = {"name-head": name[:-NAME_TAIL], "name-tail": name[-NAME_TAIL:]}
    spans = [html.Span(words, className=kind) for kind, words in parts.items()]
    return html.Span(spans, className="name-parts")


def _class_of(column: Column) -> str:
    return f"{'number' if column.is_number else 'text'} rank-{column.rank}"
