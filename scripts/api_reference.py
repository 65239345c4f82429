"""Writes docs/reference/api.md from the OpenAPI document, which the API's declarations make.

    .venv/bin/python scripts/api_reference.py [--check]

With --check it writes nothing, and exits with 1 where the document is not what it would write.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from command_reference import ROOT, write_or_check

from control.views.snapshots.store import StoreReader
from dashboard.context import PageContext
from dashboard.server.api.application import create_api, openapi
from dashboard.settings import DashboardSettings

DOCUMENT: Final = ROOT / "docs" / "reference" / "api.md"
HEAD: Final = """\
# API

The declarations of tables and operations write this page (`scripts/api_reference.py`), and the
OpenAPI document at `/api/v1/openapi.json`. Keys of rows are the names that [columns](columns.md)
have "in files". A table answers 100 rows unless `limit` asks for up to 1,000; `offset` asks for the
next. [How programs log in](../operate/security.md#programs-the-api), and
[an example with its answer](../operate/scripts.md#over-http).

`cluster` in the query of each request names a watched cluster; without, it is the usual one.
Parameters that are not listed are refused. An error is
`{"error": {"what": …, "why": …, "next": …, "fields": {…}}}`, with these statuses:

| status | when |
|---|---|
"""


def written(document: Mapping[str, Any]) -> str:
    """The whole page."""
    paths = document["paths"]
    answers = next(iter(paths.values()))["get"]["responses"]
    rows = [
        f"| {status} | {it['description'].rstrip('.')} |"
        for status, it in answers.items()
        if status != "200"
    ]
    lines = [HEAD + "\n".join(rows)]
    tag = ""
    for path, methods in paths.items():
        for method, it in methods.items():
            if it["tags"][0] != tag:
                tag = it["tags"][0]
                lines.append(f"\n## {tag}\n\n| request | | parameters or body |\n|---|---|---|")
            lines.append(_row(path, method, it, document["components"]["schemas"]))
    return "\n".join(lines) + "\n"


def _row(path: str, method: str, told: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    given = " ".join([*_parameters(told), *_fields(told, schemas)])
    return f"| `{method.upper()} {path}` | {told['summary'].rstrip('.')} | {given} |"


def _parameters(told: Mapping[str, Any]) -> Iterator[str]:
    for each in told.get("parameters", ()):
        if each["in"] == "query" and each["name"] != "cluster":
            yield f"`{each['name']}`"


def _fields(told: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """Names in the body; ``fields`` holds those of the form."""
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {})
    shown = _properties(body.get("schema", {}), schemas)
    for name, each in shown.items():
        inner = " ".join(f"`{it}`" for it in _properties(each, schemas))
        yield f"`{name}` ({inner})" if inner else f"`{name}`"


def _properties(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    properties: Mapping[str, Any] = found.get("properties", {})
    return properties


def _document() -> dict[str, Any]:
    context = PageContext(
        clusters={}, reader=StoreReader("unused"), settings=DashboardSettings(store="unused")
    )
    return openapi(create_api(context))


if __name__ == "__main__":
    write_or_check(DOCUMENT, written(_document()))
