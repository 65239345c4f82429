"""Builds the page from its parts, and serves it."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from dash import Dash
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response

from control.access.login import NOBODY, use_login
from control.exposition.exposition import Exposition
from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.feed import feed_of
from control.views.snapshots.process_memory import be_small, keep_loaded, take_turns
from control.views.snapshots.store import StoreReader
from dashboard import router
from dashboard.cluster_actions import ClusterActions
from dashboard.context import ClusterContext, PageContext
from dashboard.live import push
from dashboard.page_frame import shell
from dashboard.pages.browse import register_follow
from dashboard.server import (
    export,
    message_files,
    metrics,
    record_bytes,
    report_files,
    serving,
    table_rows,
)
from dashboard.server.api.application import create_api
from dashboard.server.api.token_check import TokenCheck
from dashboard.server.callback_sharing import CallbackSharing
from dashboard.server.cluster_routing import ClusterDash, ClusterRouting
from dashboard.server.document import ASSETS, MODULES, NOT_SCRIPTS, index_page
from dashboard.server.login.login_check import LoginCheck
from dashboard.server.origin_check import App, OriginCheck
from dashboard.server.request_bounds import BodyBound, BoundedProtocol
from dashboard.server.static_cache import StaticCache
from dashboard.server.tls import RenewedContext
from dashboard.server.warm import warm
from dashboard.settings import DashboardSettings

WORKERS: Final = 6
"""Threads that run callbacks; the page's event loop itself never computes."""

COOKIE: Final = "partiscope-session"
"""Followed by the port: pages on several ports of one host share cookies."""
MESSAGE_BYTES_MAX: Final = 16 << 20
"""Of one message of a page's WebSocket; the page itself refuses a larger one (assets/large.js)."""


def create_app(context: PageContext) -> Dash:
    """The Dash application; its ``server`` is an ASGI app without the guard around it."""
    # Without FastAPI's own documentation pages, which would load scripts from elsewhere.
    server: Any = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    export.register(server, context)
    table_rows.register(server, context)
    record_bytes.register(server, context)
    message_files.register(server, context)
    report_files.register(server, context)
    register_follow(server, context)
    serving.register_health(server)
    feeds = {name: each.feed for name, each in context.clusters.items()}
    limits = context.settings.limits
    metrics.register(server, Exposition(feeds=feeds, limits=limits, now_ms=context.now_ms))
    server.add_api_route("/favicon.ico", _favicon, include_in_schema=False)
    server.add_exception_handler(RequestValidationError, _tell_bad_request)
    app = ClusterDash(
        "dashboard",
        clusters=context.settings.clusters,
        server=server,
        assets_folder=str(ASSETS),
        assets_ignore=NOT_SCRIPTS,
        assets_path_ignore=[f"^{MODULES}$"],
        title="partiscope",
        update_title="",
        index_string=index_page(),
        suppress_callback_exceptions=True,
        websocket_inactivity_timeout=0,
        websocket_max_workers=WORKERS,
        serve_locally=True,
        compress=True,
    )
    app.layout = lambda: shell.layout(context, _opened(app, context))
    shell.register(app, context)
    router.register(app, context)
    push.register(app, context)
    # Otherwise done by the first request for "/" or a callback: a deep link that came first
    # would be served without our scripts and styles.
    app._setup_server()  # type: ignore[no-untyped-call]
    return app


def _favicon() -> Response:
    """Where a browser looks by itself when it opens a file of ours alone."""
    return Response((ASSETS / "favicon.ico").read_bytes(), media_type="image/x-icon")


async def _tell_bad_request(_: Request, error: Any) -> Response:
    faults = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors()]
    return PlainTextResponse(f"400: {'; '.join(faults)}\n", 400)


def _opened(app: Dash, context: PageContext) -> shell.Opened:
    """The view that the asking page shows, as its browser says."""
    try:
        request = app.backend.request_adapter()
    except RuntimeError:  # asked for by the process itself, to validate it
        return router.opened(context, "", "light")
    scheme = "dark" if request.cookies.get("scheme") == "dark" else "light"
    return router.opened(context, request.headers.get("referer", ""), scheme)


def context_of(settings: DashboardSettings) -> PageContext:
    """Context of the page by its settings: what it shows, and where it acts."""
    reader = StoreReader(settings.store)

    def cluster_context(watched: WatchedCluster) -> ClusterContext:
        feed = feed_of(reader, watched, bus=settings.bus)
        actions = ClusterActions(
            watched, bus=settings.bus, denied=lambda: feed.current.denied_operations
        )
        found = ClusterContext(watched=watched, feed=feed, actions=actions)
        feed.subscribe(found.prefetch.follow)
        return found

    clusters = {watched.name: cluster_context(watched) for watched in settings.clusters}
    return PageContext(clusters=clusters, reader=reader, settings=settings, now_ms=reader.now_ms)


def guarded(
    app: Dash, context: PageContext, hosts: Callable[[], frozenset[str]], *, cookie: str = COOKIE
) -> OriginCheck:
    """The page as it is served: behind the check of Host and Origin, and of the login."""
    page = routed(app, context)
    logins, tokens = context.settings.logins, context.settings.tokens
    if logins is not None:
        page = LoginCheck(page, logins, cookie=cookie)
    page = BodyBound(page)
    if tokens is not None:
        proxy = "" if logins is None else logins.proxy_address
        page = TokenCheck(page, create_api(context), tokens, context.clusters, proxy_address=proxy)
    return OriginCheck(page, hosts)


def routed(app: Dash, context: PageContext) -> App:
    """The page itself, for who needs no login."""
    shared = CallbackSharing(StaticCache(app.server), lambda: context.actions.moves.version)
    return ClusterRouting(shared, context.settings.names)


def serve(
    settings: DashboardSettings,
    *,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted. ``on_ready`` is given the address once it answers.

    Raises:
        OSError: the port is taken.
        UnguardedError: it would be there for everybody without a login.
        CertificateError: the files of TLS hold no certificate with its key.
    """
    settings.require_guarded()
    secure = None if settings.certificate is None else RenewedContext(settings.certificate)
    if settings.logins is not None:
        use_login(lambda: NOBODY)
    take_turns()
    be_small()
    listener = serving.listen(settings)
    port = int(listener.getsockname()[1])
    context = context_of(settings)
    app = create_app(context)
    hosts = settings.hosts(port)
    page = guarded(app, context, lambda: hosts, cookie=f"{COOKIE}-{port}")
    config = uvicorn.Config(
        page,
        log_level="warning",
        http=BoundedProtocol,
        ws="websockets-sansio",
        ws_max_size=MESSAGE_BYTES_MAX,
        timeout_graceful_shutdown=2,
        access_log=False,
        ssl_context_factory=None if secure is None else lambda *_: secure.context,
        proxy_headers=False,  # the one trusted proxy is known to LoginCheck alone
    )
    clusters = context.clusters.values()
    for place in clusters:
        place.feed.start()

    async def begin() -> None:
        await warm(OriginCheck(routed(app, context), lambda: hosts), min(hosts))
        keep_loaded()

    async def close() -> None:
        await asyncio.gather(*(place.actions.close() for place in clusters))

    try:
        if on_ready is not None:
            on_ready(settings.url(port))
        serving.Server(config, at_start=begin, at_end=close).run(sockets=[listener])
    finally:
        for place in clusters:
            place.feed.stop()
        listener.close()
