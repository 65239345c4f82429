"""``/metrics``: figures, findings and health for Prometheus and whatever reads its formats.

Made in a thread, one at a time, and at most once for each snapshot. What the library knows of a
process comes after ours, with the end that OpenMetrics wants.
"""

import asyncio
import gzip
from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from control.exposition.exposition import Exposition
from control.exposition.series import Format
from dashboard.server.asker import GONE, AskerGoneError, in_turn, while_asked

PATH: Final = "/metrics"
LEVEL: Final = 1
"""Of gzip: 20 MB become 1 or 2, in a tenth of a second."""
PROCESS_METRICS: Final = {
    "partiscope_build_info": "1; its label is the version",
    "partiscope_exposition_seconds": "How long the figures of this scrape took to write",
    "partiscope_exposition_bytes": "Their size before compression",
    "partiscope_exposition_series": "How many series they are",
}
"""Of the serving process, beside ``process_…``."""


def register(server: FastAPI, exposition: Exposition) -> None:
    """The route. Whoever may ask for a view may ask for it."""
    turn = asyncio.Semaphore(1)

    @server.get(PATH, include_in_schema=False)
    async def answer(request: Request) -> Response:
        accepts = request.headers.get("accept", "")
        is_zipped = "gzip" in request.headers.get("accept-encoding", "")
        scrape = in_turn(turn, lambda: scraped(exposition, accepts, is_zipped=is_zipped))
        try:
            return await while_asked(request, scrape)
        except AskerGoneError:
            return Response(status_code=GONE)


def scraped(exposition: Exposition, accepts: str, *, is_zipped: bool) -> Response:
    """The answer in the format that the header ``Accept`` wants; plain text where it is silent."""
    encoder, content_type = choose_encoder(accepts)
    is_open = content_type.startswith(Format.OPENMETRICS)
    written = exposition.written()
    text = written.text(Format.OPENMETRICS if is_open else Format.PLAIN)
    own = CollectorRegistry(auto_describe=False)
    own.register(_OfProcess(written.took_s, len(text), written.series))
    ProcessCollector(registry=own)
    body = text + encoder(own)
    headers = {"cache-control": "no-store", "content-type": content_type}
    if is_zipped:
        body = gzip.compress(body, LEVEL)
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers)


class _OfProcess(Collector):
    """Metrics of the serving process and of the scrape itself."""

    def __init__(self, took_s: float, size: int, series: int) -> None:
        self._values = {"seconds": took_s, "bytes": size, "series": series}

    def collect(self) -> Iterator[Metric]:
        """Each family once."""
        build = "partiscope_build"
        about = PROCESS_METRICS[f"{build}_info"]
        yield InfoMetricFamily(build, about, value={"version": version("partiscope")})
        for unit, value in self._values.items():
            name = f"partiscope_exposition_{unit}"
            yield GaugeMetricFamily(name, PROCESS_METRICS[name], value=value)
