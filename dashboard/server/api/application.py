"""The API as an application of its own, with the OpenAPI document that its declarations make."""

from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

from dashboard.context import PageContext
from dashboard.server.api import errors, moves, operations, records, tables
from dashboard.server.api.errors import ProblemDocument

DOCUMENT: Final = "/api/v1/openapi.json"
_ABOUT: Final = """\
Tables and operations of Partiscope for programs. Each request carries a token of
`partiscope tokens add` as `Authorization: Bearer TOKEN`. Errors tell what, why and what next.
"""
_ERRORS: Final = {
    401: "No token lets the request in.",
    403: "The role, or a right on the cluster, lacks it.",
    404: "There is no such thing.",
    409: "The cluster, or another operation, stands against it.",
    410: "The preview is gone.",
    422: "A field or parameter is wrong.",
    429: "Too many attempts failed, or too much is asked at once.",
    503: "Cluster, bus or figures do not answer.",
}


def create_api(context: PageContext) -> FastAPI:
    """An ASGI app for paths under ``/api/``; ``TokenCheck`` stands before it."""
    api = FastAPI(
        title="Partiscope",
        version=version("partiscope"),
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        responses={
            status: {"model": ProblemDocument, "description": about}
            for status, about in _ERRORS.items()
        },
    )
    errors.register(api)
    tables.register(api, context)
    records.register(api, context)
    operations.register(api, context)
    moves.register(api, context)

    async def document() -> Response:
        return JSONResponse(openapi(api))

    api.add_api_route(DOCUMENT, document, include_in_schema=False)
    return api


def openapi(api: FastAPI) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    found: dict[str, Any] = api.openapi()
    schemes = found.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["token"] = {"type": "http", "scheme": "bearer"}
    found["security"] = [{"token": []}]
    return found
