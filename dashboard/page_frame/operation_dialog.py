"""The dialog of operations: any form of the catalogue, what it is about to do, then the change.

A key or a button of the page puts the form's name and what it is about into ``ids.OPERATION``.
The session keeps what was previewed; its name is beside the button (``ids.OPERATION_PREVIEWED``),
and a confirmation performs that preview. The browser withdraws the button as soon as a field
differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
_TYPED_BEFORE: Final = (
    State(ids.OPERATION_PREVIEWED, "data", allow_optional=True),
    State(ids.OPERATION_TYPED, "value", allow_optional=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedWord:
    """The word typed to confirm a preview that is asked for again."""

    typed: str = ""
    before: Previewed | None = None
    """None: there was none, or it is kept no longer."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Fields of the form, as it was previewed."""

    @property
    def shown(self) -> list[html.Div]:
        """The same confirmation with it."""
        again = self.before
        return [confirmation(again, self.values, typed=self.typed)] if again else []

    @property
    def hidden(self) -> list[html.Div]:
        """The same, where something else is told, for the preview that follows."""
        return [html.Div(self.shown, hidden=True)]


NOTHING_TYPED: Final = TypedWord()


def typed_under(
    context: PageContext, previewed: Mapping[str, Any] | None, typed: str | None
) -> TypedWord:
    """The word in the dialog, and the preview that it stands under."""
    before = context.actions.known_preview(previewed)
    return TypedWord(typed=typed or "", before=before, values=(previewed or {}).get("values", {}))


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
        *_TYPED_BEFORE,
        *fields.every_value(fields.DIALOG),
        running=[(Output(ids.OPERATION_SUBMIT, "loading"), True, False)],
        prevent_initial_call=True,
        websocket=True,
    )
    async def submit(clicks: int | None, asked: dict[str, Any], *rest: Any) -> tuple[Any, Any]:
        before, typed, found, values = rest
        if not clicks:
            return no_update, [no_update] * len(found)
        (form, rows), given = about(asked), fields.values_of(found, values)
        was_typed = typed_under(context, before, typed)
        try:
            shown = await submitted(context, form, given, rows, was_typed)
        except ClusterActionError as error:
            shown = html.Div([refused(form, error), *was_typed.hidden])
            return shown, fields.errors_of(found, error)
        return shown, fields.errors_of(found, None)

    _register_confirm(app, context)


def _register_confirm(app: Dash, context: PageContext) -> None:
    @app.callback(
        Output(ids.OPERATION_OUTCOME, "children", allow_duplicate=True),
        Input(ids.OPERATION_CONFIRM, "n_clicks"),
        *_TYPED_BEFORE,
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
            again = typed_under(context, previewed, typed).shown
            return html.Div([problem(error), *again], className="form")
        except ClusterActionError as error:
            hidden = typed_under(context, previewed, typed).hidden
            return html.Div([problem(error), *hidden])

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
    in_browser(
        ClientsideFunction("partiscope", "endMarks"),
        # Without an output it would not be called for what appears later.
        Output(ids.OPERATION_DONE, "clear_data"),
        Input(ids.OPERATION_DONE, "data"),
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
    context: PageContext,
    form: OperationForm,
    values: Mapping[str, str],
    rows: Sequence[str] = (),
    was_typed: TypedWord = NOTHING_TYPED,
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
    typed, changed = previewed.keeps(was_typed.typed, was_typed.before)
    return confirmation(previewed, values, typed=typed, changed=changed)


async def performed(context: PageContext, name: str, typed: str) -> Any:
    """Done, and where to see it."""
    done = await context.actions.perform(name, typed=typed)
    path = str(ViewPath(view=done.view, params=done.params)) if done.view else ""
    link = [dcc.Link("open →", href=f"/{path}", className="closes")] if path else []
    rows = [html.Ul([html.Li(line) for line in done.lines], className="lines")]
    told = good(done.words)
    if any("✖" in line for line in done.lines):
        told = html.Div(f"▲ {done.words}", className="finding edge-warning", role="status")
    mark = dcc.Store(id=ids.OPERATION_DONE, data=name)
    return html.Div([told, *(rows if done.lines else []), *link, mark], className="form")


def confirmation(
    previewed: Previewed, values: Mapping[str, str], *, typed: str = "", changed: str = ""
) -> html.Div:
    """The preview, the word to type if there is one with what is ``typed`` of it, and the button.
    ``changed`` says that it is another preview than the one before."""
    form, word = previewed.form, previewed.word
    told = [html.P(changed, className="note", role="status")] if changed else []
    label = f"Type {word} to confirm"
    asks = [*told, text_field(ids.OPERATION_TYPED, label, word, typed)] if word else []
    color = "red" if asks else "blue"
    label = form.title if asks else form.submit_label
    asked = [
        html.Ul([html.Li(line) for line in previewed.effect.lines], className="lines"),
        *asks,
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
