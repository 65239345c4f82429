"""Which of the watched clusters a browser's page is about.

Addresses of views carry it (``/topics?cluster=prod``). What the page then asks in the background
(layout, callbacks, the WebSocket) carries it before the path (``/@prod/_dash-…``), as the page's
configuration says: so one tab is about one cluster for as long as it is open, and tabs about
several live side by side. Whoever answers finds the name in ``chosen_cluster``.
"""

from collections.abc import Collection
from contextvars import ContextVar
from html import escape
from typing import Any, Final
from urllib.parse import parse_qs, quote

from control.model.watched_cluster import WatchedCluster
from control.views.paths import PathError, parse_path
from dashboard.server.document import LeanDash
from dashboard.server.origin_check import DATA, App, Message, Receive, Scope, Send

QUERY: Final = "cluster"
_MARK: Final = "/@"
_HTML: Final = '<html lang="en">'

chosen_cluster: ContextVar[str] = ContextVar("chosen_cluster", default="")


class ClusterRouting:
    """ASGI middleware: takes the name from path or query. ``names``: all, the usual one first."""

    def __init__(self, app: App, names: Collection[str]) -> None:
        self._app = app
        self._names = tuple(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"}:
            name, path = name_and_path(scope)
            if name and name not in self._names:
                await _refuse(scope, receive, send, name, self._names)
                return
            chosen_cluster.set(name or next(iter(self._names), ""))
            # Not quoted anew from the path: %2F in the name of a group is no border of segments.
            _, raw_path = _split(scope["raw_path"].decode("latin-1"))
            scope = {**scope, "path": path, "raw_path": raw_path.encode("latin-1")}
        await self._app(scope, receive, _with_status(send, scope))


def name_and_path(scope: Scope) -> tuple[str, str]:
    """The name that a request carries (empty: none), and its path without."""
    name, path = _split(scope["path"])
    if not name:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        name = query.get(QUERY, [""])[0]
    return name, path


def _split(path: str) -> tuple[str, str]:
    """The name before a path, if it has one, and what follows."""
    if not path.startswith(_MARK):
        return "", path
    name, _, rest = path.removeprefix(_MARK).partition("/")
    return name, f"/{rest}"


class ClusterDash(LeanDash):
    """Tells every page which cluster it is about, by the name in ``chosen_cluster``."""

    def __init__(self, *args: Any, clusters: Collection[WatchedCluster], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._clusters = tuple(clusters)

    def _config(self) -> Any:
        """Where the page's script asks."""
        config: Any = super()._config()  # type: ignore[no-untyped-call]
        if name := chosen_cluster.get():
            config["requests_pathname_prefix"] = prefix = f"{_MARK}{quote(name, safe='')}/"
            socket = config["websocket"]
            # A worker of its own: browsers share one among all pages that name the same script.
            for key in ("url", "worker_url"):
                socket[key] = prefix + socket[key].removeprefix("/")
        return config

    def interpolate_index(self, *args: Any, **parts: Any) -> Any:
        """The page around everything, with the cluster's name and colour on its root."""
        page: str = super().interpolate_index(*args, **parts)
        name = chosen_cluster.get()
        cluster = next((each for each in self._clusters if each.name == name), self._clusters[0])
        attributes = f' data-cluster="{escape(name)}"' if name else ""
        if cluster.hex_color:
            attributes += f' style="--cluster-color: {cluster.hex_color}"'
        return page.replace(_HTML, f"{_HTML[:-1]}{attributes}>", 1)


def _with_status(send: Send, scope: Scope) -> Send:
    """A page that says that there is no such view has status 404, as scripts and crawlers ask."""
    if scope["type"] != "http" or DATA.match(scope["path"]):
        return send
    if _is_view(scope["raw_path"].decode("latin-1")):
        return send

    async def send_with_status(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            headers = dict(message.get("headers", ()))
            if headers.get(b"content-type", b"").startswith(b"text/html"):
                message["status"] = 404
        await send(message)

    return send_with_status


def _is_view(path: str) -> bool:
    try:
        parse_path(path)
    except PathError:
        return False
    return True


async def _refuse(
    scope: Scope, receive: Receive, send: Send, name: str, known: Collection[str]
) -> None:
    there = f"known: {', '.join(known)}" if known else "the only one has no name: leave it out"
    words = f"404: there is no cluster {name!r} here; {there}\n"
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": words[:120]})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode()})
