"""Serves ``/metrics`` alone: for Prometheus on another machine, and where nobody needs a page."""

from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from control.exposition.exposition import Exposition
from control.views.snapshots.feed import feed_of
from control.views.snapshots.process_memory import be_small, take_turns
from control.views.snapshots.store import StoreReader
from dashboard.server import metrics, serving
from dashboard.server.origin_check import OriginCheck
from dashboard.settings import DashboardSettings


def serve(settings: DashboardSettings, *, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve until interrupted. ``on_ready`` is given the address of the metrics.

    Raises:
        OSError: the port is taken.
    """
    take_turns()
    be_small()
    listener = serving.listen(settings)
    port = int(listener.getsockname()[1])
    reader = StoreReader(settings.store)
    feeds = {it.name: feed_of(reader, it, bus=settings.bus) for it in settings.clusters}
    server = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    serving.register_health(server)
    metrics.register(server, Exposition(feeds=feeds, limits=settings.limits))
    hosts = settings.hosts(port)
    config = uvicorn.Config(
        OriginCheck(server, lambda: hosts),
        log_level="warning",
        timeout_graceful_shutdown=2,
        access_log=False,
    )
    for feed in feeds.values():
        feed.start()
    try:
        if on_ready is not None:
            on_ready(f"{settings.url(port)}{metrics.PATH}")
        serving.Server(config).run(sockets=[listener])
    finally:
        for feed in feeds.values():
            feed.stop()
        listener.close()
