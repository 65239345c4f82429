"""Forms that may not be used: a role or a right lacks, nothing may be changed, or a past state is
looked at. They are greyed, with the reason.

Rights come and go while a page is open, and so does the past; the form follows by itself.
"""

from typing import Any, Final

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html, no_update

from control.access.login import acting
from control.operations.catalogue.moves.reassign import REASSIGN
from control.operations.catalogue.topics.produce import PRODUCE
from control.views.refusals import PAST, refusals
from dashboard import ids
from dashboard.components.parts import attributes
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import Time, moment_of

_BUTTONS: Final = ((ids.PLAN_BUTTON, REASSIGN.name), (ids.PRODUCE_SEND, PRODUCE.name))


def lacking_id(form: str) -> str:
    """Where a form says what lacks."""
    return f"lacking-{form}"


def lacking(context: PageContext, form: str) -> html.P:
    """Missing rights of the form's operation; empty: none."""
    shown = line(words(context, form))
    return html.P(shown, id=lacking_id(form), className="lacking", role="status")


def line(told: str) -> list[Any]:
    """The reason, and the way to now where that is what lacks."""
    if told != PAST:
        return [told] if told else []
    back = html.Button("back to now", className="finding-step", **attributes({"data-now": "yes"}))
    return [f"{told} ", back]


def is_denied(context: PageContext, form: str, time: Time | None = None) -> bool:
    """Whether the form may not be used."""
    return form in every_word(context, time)


def words(context: PageContext, form: str, time: Time | None = None) -> str:
    """Why not; empty: it may."""
    return every_word(context, time).get(form, "")


def every_word(context: PageContext, time: Time | None = None) -> dict[str, str]:
    """Reasons of all forms that are not allowed to who looks at ``time``, for the browser."""
    snapshot = context.snapshot
    is_past = moment_of(time, now_ms=context.now_ms()) is not None
    found = refusals(snapshot.watch, is_read_only=snapshot.is_read_only, is_past=is_past)
    login = acting()
    return {**found, **({} if login is None else login.refusals(context.watched.name))}


def register(app: Dash, context: PageContext) -> None:
    """Keep the forms of whole views, and what opens dialogs, as the rights are."""
    for button, form in _BUTTONS:
        _follow(app, button, form)
    _follow_openers(app, context)


def _follow_openers(app: Dash, context: PageContext) -> None:
    """Buttons and keys, in the browser: views come and go there."""

    @app.callback(
        Output(ids.DENIED, "data"),
        Input(ids.RIGHTS_PUSHED, "data"),
        Input(ids.TIME, "data"),
        State(ids.DENIED, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def tell(_: object, time: Time | None, told: dict[str, str] | None) -> Any:
        now = every_word(context, time)
        return no_update if now == told else now

    in_browser: Any = app.clientside_callback
    in_browser(ClientsideFunction("partiscope", "noteDenied"), Input(ids.DENIED, "data"))
    every = {"form": ALL, "about": ALL}
    in_browser(
        ClientsideFunction("partiscope", "greyOpeners"),
        Output({"type": ids.OPENER, **every}, "disabled"),
        Output({"type": ids.OPENER_WHY, **every}, "title"),
        Input(ids.DENIED, "data"),
        State({"type": ids.OPENER, **every}, "id"),
    )


def _follow(app: Dash, button: str, form: str) -> None:
    @app.callback(
        Output(button, "disabled", allow_duplicate=True),
        Output(lacking_id(form), "children"),
        Input(ids.DENIED, "data"),
        State(lacking_id(form), "children"),
        # A view that is come to from the past knows nothing of it.
        prevent_initial_call="initial_duplicate",
        websocket=True,
    )
    def follow(denied: dict[str, str] | None, shown: list[Any] | None) -> tuple[Any, Any]:
        now = (denied or {}).get(form, "")
        # Only a change is written: while something is sent the button is disabled anyway.
        if now == (shown or [""])[0].strip():
            return no_update, no_update
        return bool(now), line(now)
