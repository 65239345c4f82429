"""The dialog of operations: any form of the catalogue, what it is about to do, then the change.

A key or a button of the page puts the form's name and what it is about into ``ids.OPERATION``.
The session keeps what was previewed; its name is beside the button (``ids.OPERATION_PREVIEWED``),
and a confirmation performs that preview. The browser withdraws the button as soon as a field
differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from control.operations.catalogue import form_named, operation_named
from control.operations.catalogue.forms import Confirmation, OperationForm
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.several import rows_words, several_of, takes_several
from control.operations.errors import InvalidInputError, NotConfirmedError
from control.operations.previews import Previewed
from control.views.paths import ViewPath
from dashboard import ids
from dashboard.cluster_actions import ClusterActionError
from dashboard.components import operation_form as fields
from dashboard.components.forms import good, problem, text_field
from dashboard.components.parts import modal
from dashboard.context import PageContext
from dashboard.live.displayed_snapshot import Time
from dashboard.page_frame import rights

WITHDRAWN: Final = "The fields have changed since: preview them again."


def dialog() -> Any:
    """The empty dialog, part of the frame."""
    return html.Div(
        [
            dcc.Store(id=ids.OPERATION),
            modal(ids.OPERATION_DIALOG, "", html.Div(id=ids.OPERATION_BODY), size="lg"),
        ]
    )


def register(app: Dash, context: PageContext) -> None:
    """Open, submit, confirm."""

    @app.callback(
        Output(ids.OPERATION_DIALOG, "opened"),
        Output(ids.OPERATION_DIALOG, "title"),
        Output(ids.OPERATION_BODY, "children"),
        Input(ids.OPERATION, "data"),
        State(ids.TIME, "data"),
        prevent_initial_call=True,
        websocket=True,
    )
    def show(asked: dict[str, Any] | None, time: Time | None) -> tuple[Any, Any, Any]:
        if not asked:
            return no_update, no_update, no_update
        form, rows = about(asked)
        return True, form.title, body(context, form, asked.get("given") or {}, time, rows)

    @app.callback(
        Output(ids.OPERATION_OUTCOME, "children"),
        fields.every_error(fields.DIALOG),
        Input(ids.OPERATION_SUBMIT, "n_clicks"),
        State(ids.OPERATION, "data"),
        *fields.every_value(fields.DIALOG),
        running=[(Output(ids.OPERATION_SUBMIT, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def submit(
        clicks: int | None, asked: dict[str, Any], found: list[Any], values: list[Any]
    ) -> tuple[Any, Any]:
        if not clicks:
            return no_update, [no_update] * len(found)
        (form, rows), given = about(asked), fields.values_of(found, values)
        try:
            return await submitted(context, form, given, rows), fields.errors_of(found, None)
        except ClusterActionError as error:
            return refused(form, error), fields.errors_of(found, error)

    _register_confirm(app, context)


def _register_confirm(app: Dash, context: PageContext) -> None:
    @app.callback(
        Output(ids.OPERATION_OUTCOME, "children", allow_duplicate=True),
        Input(ids.OPERATION_CONFIRM, "n_clicks"),
        State(ids.OPERATION_PREVIEWED, "data"),
        State(ids.OPERATION_TYPED, "value", allow_optional=True),
        running=[(Output(ids.OPERATION_CONFIRM, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def confirm(clicks: int | None, previewed: dict[str, Any], typed: str | None) -> Any:
        if not clicks:
            return no_update
        try:
            return await performed(context, previewed["name"], typed or "")
        except NotConfirmedError as error:
            asked = context.actions.session.kept_preview(previewed["name"])
            again = confirmation(asked, previewed["values"])
            return html.Div([problem(error), again], className="form")
        except ClusterActionError as error:
            return problem(error)

    in_browser: Any = app.clientside_callback
    in_browser(
        ClientsideFunction("partiscope", "withdrawPreview"),
        Output(ids.OPERATION_CONFIRMATION, "hidden"),
        Output(ids.OPERATION_WITHDRAWN, "hidden"),
        Input(fields.field_id(fields.DIALOG, ALL), "value"),
        # A preview that comes late is withdrawn too.
        Input(ids.OPERATION_PREVIEWED, "data"),
        State(fields.field_id(fields.DIALOG, ALL), "id"),
    )


def about(asked: Mapping[str, Any]) -> tuple[OperationForm, Sequence[str]]:
    """The form that is asked for, and the marked rows that it is about instead of its first
    field; no rows: the form names what it is about."""
    form, rows = form_named(asked["form"]), asked.get("rows") or []
    if not rows or not takes_several(form):
        return form, []
    return replace(form, fields=form.fields[1:]), rows


def body(
    context: PageContext,
    form: OperationForm,
    given: dict[str, str],
    time: Time | None = None,
    rows: Sequence[str] = (),
) -> html.Div:
    """The form as the dialog shows it first to who looks at ``time``."""
    denied = rights.words(context, form.name, time)
    shown = fields.form_fields(form, fields.DIALOG, given=given, snapshot=context.snapshot)
    is_direct = form.confirmation is Confirmation.NONE and not context.watched.word_to_type()
    button = dmc.Button(
        form.submit_label if is_direct else "Preview",
        id=ids.OPERATION_SUBMIT,
        className="submit",
        disabled=bool(denied),
    )
    return html.Div(
        [
            html.P(form.help, className="note"),
            *([html.P(rows_words(form_named(form.name), rows))] if rows else []),
            html.P(rights.line(denied), className="lacking"),
            shown,
            html.Div(button, className="actions"),
            html.Div(id=ids.OPERATION_OUTCOME, **{"aria-live": "polite"}),  # type: ignore[arg-type]
        ],
        className="form operation-form",
    )


def refused(form: OperationForm, error: Exception) -> html.Div:
    """Errors of a form, without those that stand under their field."""
    wrong = error.fields if isinstance(error, InvalidInputError) else {}
    labels = [field.label for field in form.fields if field.name in wrong]
    if not labels or len(labels) < len(wrong):
        return problem(error)
    words = f"Check {'this field' if len(labels) == 1 else 'these fields'}: {', '.join(labels)}"
    return html.Div(words, className="finding edge-critical", role="alert")


async def submitted(
    context: PageContext, form: OperationForm, values: dict[str, str], rows: Sequence[str] = ()
) -> Any:
    """The change itself where nothing stands before it, else what it would do."""
    asked: Operation = (
        several_of(form_named(form.name), rows, values)
        if rows
        else operation_named(form.name).of(form.parse(values))
    )
    previewed = await context.actions.preview(asked)
    if not previewed.is_needed:
        return good("; ".join(("Nothing to change", *previewed.effect.notes)))
    if form.confirmation is Confirmation.NONE and not previewed.word:
        return await performed(context, previewed.name, "")
    return confirmation(previewed, values)


async def performed(context: PageContext, name: str, typed: str) -> Any:
    """Done, and where to see it."""
    done = await context.actions.perform(name, typed=typed)
    path = str(ViewPath(view=done.view, params=done.params)) if done.view else ""
    link = [dcc.Link("open →", href=f"/{path}", className="closes")] if path else []
    rows = [html.Ul([html.Li(line) for line in done.lines], className="lines")]
    told = good(done.words)
    if any("✖" in line for line in done.lines):
        told = html.Div(f"▲ {done.words}", className="finding edge-warning", role="status")
    return html.Div([told, *(rows if done.lines else []), *link], className="form")


def confirmation(previewed: Previewed, values: dict[str, str]) -> html.Div:
    """The preview, the word to type if there is one, and the button."""
    form, word = previewed.form, previewed.word
    typed = [text_field(ids.OPERATION_TYPED, f"Type {word} to confirm", word)] if word else []
    color = "red" if typed else "blue"
    label = form.title if typed else form.submit_label
    asked = [
        html.Ul([html.Li(line) for line in previewed.effect.lines], className="lines"),
        *typed,
        html.Div(dmc.Button(label, id=ids.OPERATION_CONFIRM, color=color), className="actions"),
    ]
    kept = {"name": previewed.name, "values": values}
    return html.Div(
        [
            dcc.Store(id=ids.OPERATION_PREVIEWED, data=kept),
            html.Div(asked, id=ids.OPERATION_CONFIRMATION, className="form"),
            html.P(WITHDRAWN, id=ids.OPERATION_WITHDRAWN, className="note", hidden=True),
        ]
    )
