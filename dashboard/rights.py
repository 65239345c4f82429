"""Forms that the principal may not use on a watched cluster: greyed, with the right that lacks.

Rights come and go while a page is open; the form follows by itself.
"""

from typing import Any, Final

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html, no_update

from control.operations.registry import PRODUCE, REASSIGN
from dashboard import ids
from dashboard.context import Screen

_BUTTONS: Final = ((ids.PLAN_BUTTON, REASSIGN.name), (ids.PRODUCE_SEND, PRODUCE.name))


def lacking_id(form: str) -> str:
    """Where a form says what lacks."""
    return f"lacking-{form}"


def lacking(screen: Screen, form: str) -> html.P:
    """What lacks to do what the form does; empty: nothing."""
    return html.P(words(screen, form), id=lacking_id(form), className="lacking", role="status")


def is_denied(screen: Screen, form: str) -> bool:
    """Whether a right lacks."""
    return form in screen.snapshot.denied_operations


def words(screen: Screen, form: str) -> str:
    """The line of ``lacking``."""
    return screen.snapshot.denied_words(form)


def every_word(screen: Screen) -> dict[str, str]:
    """Of all forms that are denied, for the browser."""
    return {form: words(screen, form) for form in screen.snapshot.denied_operations}


def register(app: Dash, screen: Screen) -> None:
    """Keep the forms of whole views, and what opens dialogs, as the rights are."""
    for button, form in _BUTTONS:
        _follow(app, screen, button, form)
    _follow_openers(app, screen)


def _follow_openers(app: Dash, screen: Screen) -> None:
    """Buttons and keys, in the browser: views come and go there."""

    @app.callback(
        Output(ids.DENIED, "data"),
        Input(ids.TICK, "data"),
        State(ids.DENIED, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def tell(_: object, told: dict[str, str] | None) -> Any:
        now = every_word(screen)
        return no_update if now == told else now

    in_browser: Any = app.clientside_callback
    every = {"form": ALL, "about": ALL}
    in_browser(
        ClientsideFunction("partiscope", "greyOpeners"),
        Output({"type": ids.OPENER, **every}, "disabled"),
        Output({"type": ids.OPENER_WHY, **every}, "title"),
        Input(ids.DENIED, "data"),
        State({"type": ids.OPENER, **every}, "id"),
    )


def _follow(app: Dash, screen: Screen, button: str, form: str) -> None:
    @app.callback(
        Output(button, "disabled", allow_duplicate=True),
        Output(lacking_id(form), "children"),
        Input(ids.TICK, "data"),
        State(lacking_id(form), "children"),
        prevent_initial_call=True,
        websocket=True,
    )
    def follow(_: object, shown: str | None) -> tuple[Any, Any]:
        now = words(screen, form)
        # Only a change is written: while something is sent the button is disabled anyway.
        return (no_update, no_update) if now == (shown or "") else (bool(now), now)
