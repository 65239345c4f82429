"""The route of exports: a time that is none is refused, not taken for now."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request

from dashboard.server import export
from tests.unit.dashboard.page_context import context_on


async def _stay() -> dict[str, object]:
    await asyncio.Event().wait()
    return {}


@pytest.mark.parametrize(("at", "status"), [("", 200), ("yesterday", 400), ("9" * 20, 400)])
def test_a_time_that_is_none_is_refused(tmp_path: Path, at: str, status: int) -> None:
    server = FastAPI()
    export.register(server, context_on(tmp_path))
    route: Any = server.routes[-1]
    scope = {"type": "http", "query_string": f"at={at}".encode(), "headers": []}
    answer = asyncio.run(route.endpoint("partitions", "csv", Request(scope, _stay)))
    assert answer.status_code == status
