"""Fields of forms, and how errors are told."""

from typing import Any

import dash_mantine_components as dmc
from dash import html

from control.kafka.errors import KafkaPortError
from control.model.command_line import typed
from control.operations.errors import OperationError
from dashboard.components.parts import linked_words


def text_field(component_id: str, label: str, hint: str = "", value: str = "", **more: Any) -> Any:
    """One line of text."""
    return dmc.TextInput(
        id=component_id, label=label, placeholder=hint, value=value, size="sm", **more
    )


def choice(component_id: str, label: str, options: dict[str, str], value: str) -> Any:
    """One of a few."""
    data = [{"value": name, "label": words} for name, words in options.items()]
    return dmc.Select(
        id=component_id, label=label, data=data, value=value, allowDeselect=False, size="sm"
    )


def problem(error: Exception) -> html.Div:
    """An error: what, why, and what to do next."""
    title, reason, step = parts_of(error)
    lines = [html.P(title, className="empty-title"), html.P(linked_words(reason), className="note")]
    if step:
        lines.append(html.P(["→ ", html.Span(linked_words(step))], className="note"))
    return html.Div(lines, className="finding edge-critical stacked", role="alert")


def parts_of(error: Exception) -> tuple[str, str, str]:
    """Title, reason and next step of any error that an operator may see."""
    if isinstance(error, KafkaPortError | OperationError):
        return error.title, error.reason, error.next_step
    return "That does not work", typed(str(error)) or type(error).__name__, ""


def good(words: str) -> html.Div:
    """Something was done."""
    return html.Div(f"✔ {words}", className="finding edge-fine", role="status")
