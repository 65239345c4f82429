"""Sharing of Dash's answers: a question of many pages at a version of the store is answered once.

With each version a page asks for its live blocks over its WebSocket. What Dash does for such a
question (contexts, threads, turning components into text several times) costs far more than the
figures themselves, and pages that show the same ask the same. So an answer is kept as text under
all that it depends on, and the next page that asks is given that text; who asks while it is being
made waits for it. Only questions that a new version has caused are shared: what answers them
depends on the snapshot, on what is asked, on the login, and on nothing else of the page that asks.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from control.access.login import acting_name
from dashboard import ids
from dashboard.server.answer_cache import AnswerCache
from dashboard.server.cluster_routing import chosen_cluster
from dashboard.server.origin_check import App, Message, Receive, Scope, Send

ANSWERS_BYTES_MAX: Final = 4 << 20
"""Of some 20 kB each; those of the last versions, for all views that are open."""
INBOX_MAX: Final = 256
INBOX_CHARACTERS_MAX: Final = 32 << 20
"""Messages of one page that Dash has not taken yet; the page's socket waits then. A character takes
1 to 4 bytes of memory."""
SHARED_CHARACTERS_MAX: Final = 64 << 10
"""A longer question is never shared: what waits for an answer is not in the inbox."""

CALLBACKS: Final = "/_dash-ws-callback"
"""Path of the WebSocket over which Dash is asked."""
NOT_UNDERSTOOD: Final = 1007
"""Status of a WebSocket's end, as RFC 6455 names it."""

_TICKS: Final = (ids.TICK, ids.CHART_TICK)

Question = Mapping[str, Any]

_log: Final = logging.getLogger(__name__)


class CallbackSharing:
    """ASGI middleware around Dash's WebSocket. ``version`` tells what else answers depend on."""

    def __init__(
        self, app: App, version: Callable[[], Hashable], bytes_max: int = ANSWERS_BYTES_MAX
    ) -> None:
        self._app = app
        self._version = version
        self.answers = AnswerCache(bytes_max)
        """As texts. What has none to share answers None."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket" or not scope["path"].endswith(CALLBACKS):
            await self._app(scope, receive, send)
            return
        page = _Page(self, send)
        listening = asyncio.create_task(page.listen(receive))
        try:
            await self._app(scope, page.next_message, page.send)
        except Exception as error:  # noqa: BLE001 (a page that asks what Dash does not know)
            _log.warning("a page's WebSocket is closed: %s: %s", type(error).__name__, error)
            with suppress(Exception):  # it may be closed already
                await send(_close())
        finally:
            listening.cancel()
            page.close()

    def key_of(self, question: Question) -> Hashable | None:
        """Under what the answer is kept; None: this page's alone."""
        payload = question.get("payload")
        asked: Mapping[str, Any] = payload if isinstance(payload, dict) else {}
        inputs = asked.get("inputs")
        if question.get("type") != "callback_request" or not isinstance(inputs, list):
            return None
        known = [item for item in inputs if isinstance(item, dict)]
        ticks = [item.get("value") for item in known if item.get("id") in _TICKS]
        if not ticks or not isinstance(ticks[0], dict) or "version" not in ticks[0]:
            return None
        parts = (asked.get("output"), inputs, asked.get("state"))
        asked_by = acting_name()  # what is greyed depends on the role
        return chosen_cluster.get(), asked_by, self._version(), json.dumps(parts, sort_keys=True)


class _Inbox:
    """Messages that Dash has not taken yet, bounded in number and in length."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[Message] = asyncio.Queue(INBOX_MAX)
        self._characters = 0
        self._has_room = asyncio.Event()

    async def put(self, message: Message) -> None:
        """Waits until there is room."""
        while self._characters >= INBOX_CHARACTERS_MAX:
            self._has_room.clear()
            await self._has_room.wait()
        self._characters += _size(message)
        await self._messages.put(message)

    async def get(self) -> Message:
        """Waits until there is a message."""
        message = await self._messages.get()
        self._characters -= _size(message)
        self._has_room.set()
        return message


def _size(message: Message) -> int:
    return len(message.get("text") or "")


class _Page:
    """One WebSocket: what it asks, and what of that it asks for all."""

    def __init__(self, shared: CallbackSharing, send: Send) -> None:
        self._shared = shared
        self._send = send
        self._inbox = _Inbox()
        self._asked: dict[str, Hashable] = {}
        self._waiting: set[asyncio.Task[None]] = set()

    async def listen(self, receive: Receive) -> None:
        """Take the page's messages; those that Dash must see go on to it."""
        while True:
            message = await receive()
            if not _is_understood(message):
                _log.warning("a page's WebSocket is closed: what it said is no message of a page")
                await self._send(_close())
                message = {"type": "websocket.disconnect", "code": NOT_UNDERSTOOD}
            question = _read(message)
            key = self._shared.key_of(question) if question else None
            if question is None or key is None or len(self._waiting) >= INBOX_MAX:
                await self._inbox.put(message)
            else:
                await self._share(question, key, message)
            if message["type"] == "websocket.disconnect":
                return

    async def _share(self, question: Question, key: Hashable, message: Message) -> None:
        answer, is_new = self._shared.answers.expect(key)
        if is_new:
            self._asked[_name(question)] = key
            await self._inbox.put(message)
            return
        waiting = asyncio.create_task(self._give(question, answer, message))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)

    async def next_message(self) -> Message:
        """The next message to Dash."""
        return await self._inbox.get()

    async def send(self, message: Message) -> None:
        """Sends Dash's message; keeps answers to shared questions on the way."""
        if self._asked and message.get("text"):
            found = json.loads(message["text"])
            for answer in found if isinstance(found, list) else [found]:
                self._keep(answer)
        await self._send(message)

    def close(self) -> None:
        """Releases those who wait for this page's question: each asks by itself."""
        for waiting in self._waiting:
            waiting.cancel()
        for key in self._asked.values():
            self._shared.answers.forget(key)

    def _keep(self, answer: Mapping[str, Any]) -> None:
        key = self._asked.pop(_name(answer), None)
        if key is None:
            return
        payload = answer.get("payload") or {}
        if payload.get("status") == "ok":
            self._shared.answers.settle(key, json.dumps(payload, separators=(",", ":")))
        else:
            self._shared.answers.forget(key)

    async def _give(self, question: Question, answer: Future[str | None], message: Message) -> None:
        text = await asyncio.shield(asyncio.wrap_future(answer))
        if text is None:
            await self._inbox.put(message)
            return
        head = json.dumps({"type": "callback_response", **_names(question)})
        words = f'{head[:-1]}, "payload": {text}}}'
        await self._send({"type": "websocket.send", "text": words})


def _names(message: Mapping[str, Any]) -> dict[str, Any]:
    """Tabs of one browser share a socket."""
    return {name: message.get(name, "") for name in ("rendererId", "requestId")}


def _name(message: Mapping[str, Any]) -> str:
    """Both names as one text, whatever a page has put there."""
    return json.dumps(_names(message))


def _close() -> Message:
    return {"type": "websocket.close", "code": NOT_UNDERSTOOD, "reason": "not understood"}


def _is_understood(message: Message) -> bool:
    """Whether Dash can read it: pages speak in JSON objects."""
    if message["type"] != "websocket.receive":
        return True
    try:
        return isinstance(json.loads(message.get("text") or ""), dict)
    except (ValueError, RecursionError):
        return False


def _read(message: Message) -> Question | None:
    text = message.get("text")
    if not text or len(text) > SHARED_CHARACTERS_MAX or '"callback_request"' not in text:
        return None
    found = json.loads(text)
    return found if "requestId" in found else None
