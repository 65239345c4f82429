"""A check of a pre-flight."""

from dash import html

from control.move.check import Check
from control.views.preflight_checks import TONES
from control.views.tables.rows import SHAPES
from dashboard.components.parts import linked_words


def check_line(check: Check) -> html.Div:
    """One check with its verdict's shape."""
    tone = TONES[check.verdict]
    return html.Div(
        [
            html.Span(SHAPES[tone], className=f"finding-shape tone-{tone}"),
            html.Span(check.name, className="finding-title"),
            html.Span(linked_words(check.reason), className="finding-reason"),
        ],
        className="check",
    )
