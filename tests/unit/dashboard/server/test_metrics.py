"""``/metrics`` as a scraper asks for it: formats, compression, one at a time."""

import gzip
from pathlib import Path
from typing import Final

import pytest
from fastapi.responses import Response
from prometheus_client import parser
from prometheus_client.openmetrics import parser as open_parser

from control.exposition.exposition import Exposition
from dashboard.server.metrics import PROCESS_METRICS, scraped
from tests.support.scraped import Scraped
from tests.unit.dashboard.page_context import context_on

PROMETHEUS_3: Final = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
"""As Prometheus 3 sends it."""


def _exposition(store: Path) -> Exposition:
    return Exposition(feeds={"prod": context_on(store).feed})


def _told(answer: Response) -> Scraped:
    body = bytes(answer.body)
    if answer.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    is_open = answer.headers["content-type"].startswith("application/openmetrics-text")
    read = open_parser if is_open else parser
    return Scraped(read.text_string_to_metric_families(body.decode()))


@pytest.mark.parametrize(
    ("accepts", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        (PROMETHEUS_3, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(
    tmp_path: Path, accepts: str, content_type: str
) -> None:
    answer = scraped(_exposition(tmp_path), accepts, is_zipped=False)

    assert answer.headers["content-type"].startswith(content_type)
    assert answer.headers["cache-control"] == "no-store"
    told = _told(answer)
    assert told.values_of("partiscope_figures_stale", "cluster") == {"prod"}
    assert told.names >= PROCESS_METRICS.keys()
    assert (told.value("process_resident_memory_bytes") or 0) > 1e6
    assert (told.value("partiscope_exposition_series") or 0) > 10


def test_it_is_compressed_for_who_takes_that(tmp_path: Path) -> None:
    exposition = _exposition(tmp_path)
    plain, zipped = (scraped(exposition, "", is_zipped=it) for it in (False, True))

    assert zipped.headers["content-encoding"] == "gzip"
    assert len(zipped.body) < len(plain.body) / 2
    assert _told(zipped).names == _told(plain).names
