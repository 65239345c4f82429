"""Errors of the API: what, why, what next, as JSON, with the HTTP status that fits."""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from control.kafka.errors import (
    KafkaPortError,
    NoSuchNameError,
    NoSuchPartitionError,
    UnreachableError,
)
from control.operations.errors import (
    InvalidInputError,
    NoRightError,
    NotConfirmedError,
    NotJournaledError,
    OperationError,
    PreviewGoneError,
    ProtectedTopicError,
    ReadOnlyError,
)

_log: Final = logging.getLogger(__name__)
SEE: Final = "see /api/v1/openapi.json"
_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (InvalidInputError, 422),
    (NotConfirmedError, 422),
    (NoRightError, 403),
    (ReadOnlyError, 403),
    (ProtectedTopicError, 403),
    (PreviewGoneError, 410),
    (NotJournaledError, 503),
    (OperationError, 409),
    (UnreachableError, 503),
    (NoSuchNameError, 404),
    (NoSuchPartitionError, 404),
    (KafkaPortError, 502),
)
"""By error, the nearest first."""


class Problem(BaseModel):
    """Why a request was not answered."""

    what: str = Field(description="What did not happen.")
    why: str = Field(description="The reason.")
    next: str = Field(description="What to do.")
    fields: dict[str, str] = Field(default={}, description="By wrong field or parameter, why.")


class ProblemDocument(BaseModel):
    """The body of each error."""

    error: Problem


class ApiError(Exception):
    """A request that cannot be answered."""

    def __init__(
        self,
        status: int,
        what: str,
        *,
        why: str,
        next_step: str,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{what}: {why}")
        self.status = status
        self.problem = Problem(what=what, why=why, next=next_step, fields=dict(fields or {}))

    @property
    def body(self) -> bytes:
        """As JSON."""
        return json.dumps({"error": self.problem.model_dump()}).encode()


def register(api: FastAPI) -> None:
    """Answer every error so."""
    for kind, answer in (
        (ApiError, _answered),
        (OperationError, _told),
        (KafkaPortError, _told),
        (RequestValidationError, _wrong_request),
        (HTTPException, _by_status),
        (Exception, _defect),
    ):
        api.add_exception_handler(kind, answer)


def answer_of(error: ApiError) -> Response:
    """The error as it is sent."""
    return Response(error.body, error.status, media_type="application/json")


async def _answered(_: Request, error: Any) -> Response:
    return answer_of(error)


async def _told(_: Request, error: Any) -> Response:
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    fields = error.fields if isinstance(error, InvalidInputError) else {}
    told = ApiError(status, error.title, why=error.reason, next_step=error.next_step, fields=fields)
    return answer_of(told)


async def _wrong_request(_: Request, error: RequestValidationError | Any) -> Response:
    fields = {
        ".".join(map(str, each["loc"][1:])) or str(each["loc"][0]): each["msg"]
        for each in error.errors()
    }
    why = "; ".join(f"{name}: {reason}" for name, reason in fields.items())
    told = ApiError(
        422, "the request cannot be understood", why=why, next_step=f"correct it; {SEE}",
        fields=fields,
    )  # fmt: skip
    return answer_of(told)


async def _by_status(request: Request, error: HTTPException | Any) -> Response:
    what = "there is no such path" if error.status_code == 404 else str(error.detail)
    why = f"{request.method} {request.url.path} is no request of this API"
    return answer_of(ApiError(error.status_code, what, why=why, next_step=SEE))


async def _defect(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    next_step = "tell whoever runs the page; its log has more"
    why = "the page met an error that it did not expect"
    return JSONResponse(
        {"error": {"what": "not answered", "why": why, "next": next_step, "fields": {}}}, 500
    )
