"""Operations of the API: each form of the catalogue is a path that answers with a preview, and one
path confirms a preview by its hash. The session judges, as for every face."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import FastAPI, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, create_model

from control.access.login import acting
from control.model.units import counted
from control.operations.catalogue import MOVE_OPERATIONS, OPERATIONS, operation_named
from control.operations.catalogue.forms import FormField, OperationForm
from control.operations.catalogue.moves.reassign import REASSIGN, Reassign
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.several import ROWS_MAX, several_of, takes_several
from control.operations.operation_session import OperationSession
from control.views.paths import ViewPath
from control.views.previews import preview_document, preview_hash
from dashboard.context import PageContext
from dashboard.server.api.errors import ApiError
from dashboard.server.api.tables import ClusterChoice

PATH: Final = "/api/v1/operations"
AT_ONCE_MAX: Final = 20
"""Previews and confirmations that are answered at once; more are refused."""
TEXT_MAX: Final = 500_000
FORMS: Final = tuple(it.FORM for it in (*OPERATIONS, *MOVE_OPERATIONS))
ClusterQuery = Annotated[ClusterChoice, Query()]
_BASE: Final = ConfigDict(extra="forbid")
Value = Annotated[str, Field(max_length=TEXT_MAX)] | int | bool


class Confirmation(BaseModel):
    """Confirms one preview."""

    model_config = _BASE
    hash: str = Field(description="That of the preview.", max_length=64)
    typed: str = Field("", description="The preview's word, where it has one.", max_length=1_000)
    reason: str = Field("", description="For the journal.", max_length=1_000)


class DoneDocument(BaseModel):
    """Result of an operation."""

    done: str = Field(description="What was done.")
    lines: list[str] = Field(description="Outcome of each row, where there were several.")
    view: str = Field(description="Path of the view that shows it; empty: none.")
    params: dict[str, str] = Field(description="Names in that path, such as the new reassignment.")


class PreviewChange(BaseModel):
    """One value that would change."""

    name: str
    now: str | int | None
    then: str | int | None
    words: str


class PreviewDocument(BaseModel):
    """Everything to read before a confirmation."""

    preview: str = Field(description="Its name, for the path that confirms it.")
    hash: str = Field(description="What a confirmation must repeat.")
    operation: str
    what: str
    word: str = Field(description="What must be typed to confirm it; empty: nothing.")
    is_needed: bool = Field(description="Whether there is something to change.")
    changes: list[PreviewChange]
    notes: list[str]
    refusal: str | None = Field(description="Why it cannot be done as it is.")
    reassignment: dict[str, Any] | None = Field(description="Figures and checks of a plan.")
    plan: list[dict[str, Any]] = Field(description="Partitions that move: from, to.")
    partitions_left_out: int = Field(description="Further partitions of the plan.")
    expires_in_s: float = Field(description="A confirmation that comes later is refused.")


class OperationDocument(BaseModel):
    """One operation of the catalogue."""

    name: str
    title: str
    help: str
    is_destructive: bool
    why_not: str = Field(description="Why this token may not; empty: it may.")


class OperationsDocument(BaseModel):
    """The catalogue."""

    operations: list[OperationDocument]


class _Busy:
    """Counts requests that run."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """:raises ApiError: there are too many, or a value makes no sense."""
        if self._count >= AT_ONCE_MAX:
            raise ApiError(
                429, "the operation was not begun",
                why=f"{AT_ONCE_MAX} previews and operations run", next_step="try again later",
            )  # fmt: skip
        self._count += 1
        try:
            yield
        except ValueError as error:
            raise ApiError(
                422, "the operation was not begun", why=str(error), next_step="correct it"
            ) from error
        except OSError as error:
            raise ApiError(
                503, "the operation was not begun", why=str(error), next_step="try again"
            ) from error
        finally:
            self._count -= 1


def register(api: FastAPI, context: PageContext) -> None:
    """The catalogue, a path for each form, and one that confirms."""
    busy = _Busy()

    async def every(asked: ClusterQuery) -> Response:
        login = acting()
        denied = dict(context.snapshot.denied_operations)
        denied |= {} if login is None else login.refusals(context.watched.name)
        told = [
            OperationDocument(
                name=it.name, title=it.title, help=it.help, is_destructive=it.is_destructive,
                why_not=denied.get(it.name, ""),
            )
            for it in FORMS
        ]  # fmt: skip
        return JSONResponse(OperationsDocument(operations=told).model_dump())

    api.add_api_route(
        PATH,
        every,
        operation_id="operations",
        summary="Every operation, and why this token may not do it",
        tags=["Operations"],
        responses={200: {"model": OperationsDocument, "description": "The catalogue."}},
    )
    for form in FORMS:
        _register_preview(api, context, form, busy)
    _register_confirmation(api, context, busy)


def _register_preview(api: FastAPI, context: PageContext, form: OperationForm, busy: _Busy) -> None:
    async def answer(body: Any, asked: ClusterQuery) -> Response:
        with busy.one_more():
            session = _session(context)
            command = await _command(session, form, body)
            previewed = await session.preview(command, is_kept=True)
        return JSONResponse(preview_document(previewed), 201)

    answer.__annotations__["body"] = request_of(form)
    api.add_api_route(
        f"{PATH}/{form.name}/previews",
        answer,
        methods=["POST"],
        status_code=201,
        operation_id=f"preview_{form.name}",
        summary=f"Preview of: {form.title}; nothing is changed",
        description=form.help,
        tags=["Operations"],
        responses={201: {"model": PreviewDocument, "description": "The preview."}},
    )


def _register_confirmation(api: FastAPI, context: PageContext, busy: _Busy) -> None:
    async def answer(preview: str, body: Confirmation, asked: ClusterQuery) -> Response:
        with busy.one_more():
            session = _session(context)
            previewed = session.kept_preview(preview)
            if preview_hash(previewed) != body.hash:
                raise ApiError(
                    409, f"{previewed.effect.command.what} was not done",
                    why="the hash is not that of this preview", next_step="read the preview again",
                    fields={"hash": "of another preview"},
                )  # fmt: skip
            done = await session.perform(previewed, typed=body.typed, reason=body.reason)
        view = str(ViewPath(view=done.view, params=done.params)) if done.view else ""
        told = DoneDocument(
            done=done.words, lines=list(done.lines), view=view, params=dict(done.params)
        )
        return JSONResponse(told.model_dump())

    api.add_api_route(
        "/api/v1/previews/{preview}/confirmation",
        answer,
        methods=["POST"],
        operation_id="confirm",
        summary="Does what a preview says, once; who asks again hears what came of it",
        tags=["Operations"],
        responses={200: {"model": DoneDocument, "description": "It is done, or submitted."}},
    )


def request_of(form: OperationForm) -> type[BaseModel]:
    """Model of the body that asks for a preview of this form."""
    fields: dict[str, Any] = {it.name: _field(it, form) for it in form.fields}
    inner = create_model(f"Fields of {form.name}", __config__=_BASE, **fields)
    is_empty_fine = not any(it.is_required() for it in inner.model_fields.values())
    body: dict[str, Any] = {
        "fields": (inner, Field(default_factory=inner) if is_empty_fine else Field()),
    }
    if takes_several(form):
        noun = form.fields[0].name
        body["rows"] = (
            list[str],
            Field([], max_length=ROWS_MAX, description=f"Several, in the place of `{noun}`."),
        )
    if form.name == REASSIGN.name:
        body["alternative"] = (int, Field(1, ge=1, le=9, description="Which of the plans."))
    return create_model(f"Preview of {form.name}", __config__=_BASE, **body)


def _field(field: FormField, form: OperationForm) -> tuple[Any, Any]:
    is_free = bool(field.only_for) or (takes_several(form) and field is form.fields[0])
    told = f"{field.label}. {field.help}".strip()
    told += f" One of: {', '.join(field.choices)}." if field.choices else ""
    if field.is_required and not field.default and not is_free:
        return Value, Field(description=told)
    return Value, Field(field.default, description=told)


async def _command(session: OperationSession, form: OperationForm, body: Any) -> Operation:
    values = _texts(body.fields.model_dump(exclude_unset=True))
    if rows := getattr(body, "rows", []):
        return several_of(form, rows, values)
    if form.name != REASSIGN.name:
        return operation_named(form.name).of(form.parse(values))
    plan = await session.plan(values)
    if body.alternative > len(plan.alternatives):
        offered = counted(len(plan.alternatives), "plan")
        why = "; ".join(plan.limits) or f"{offered} on offer"
        raise ApiError(409, "there is no such plan", why=why, next_step="ask for another")
    return Reassign.of_plan(plan.alternatives[body.alternative - 1].proposal, values)


def _texts(given: Mapping[str, str | int | bool]) -> dict[str, str]:
    """Values as forms have them."""
    return {
        name: ("yes" if value else "") if isinstance(value, bool) else str(value)
        for name, value in given.items()
    }


def _session(context: PageContext) -> OperationSession:
    """:raises ApiError: no cluster is known."""
    if context.watched.bootstrap is None:
        raise ApiError(
            409, "nothing can be done", why="the page knows no cluster to act on",
            next_step="start the page with --bootstrap HOST:PORT",
        )  # fmt: skip
    return context.actions.session
