"""Questions that many pages ask at a new version reach Dash once."""

import asyncio
import json
from typing import Any

import pytest

from dashboard import ids
from dashboard.server.callback_sharing import (
    CALLBACKS,
    INBOX_CHARACTERS_MAX,
    INBOX_MAX,
    SHARED_CHARACTERS_MAX,
    CallbackSharing,
)
from dashboard.server.origin_check import Message, Receive, Scope, Send
from tests.support.patience import WAIT_S

SCOPE: Message = {"type": "websocket", "path": CALLBACKS}
GONE: Message = {"type": "websocket.disconnect", "code": 1000}


def question(name: str, *, version: int | None = 7, output: str = "tiles.children") -> Message:
    """As the browser's worker sends it."""
    inputs = [{"id": ids.TIME, "property": "data", "value": {}}]
    if version is not None:
        tick = {"version": version, "built_ms": 1}
        inputs.append({"id": ids.TICK, "property": "data", "value": tick})
    payload = {"output": output, "inputs": inputs}
    asked = {"type": "callback_request", "rendererId": "tab", "requestId": name, "payload": payload}
    return {"type": "websocket.receive", "text": json.dumps(asked)}


class Dash:
    """Answers what it is asked once it may; remembers by which names it was asked."""

    def __init__(self, status: str = "ok") -> None:
        self.asked: list[str] = []
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        self.may_answer = asyncio.Event()
        self._status = status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "websocket.disconnect":
            asked = json.loads(message["text"])
            self.asked.append(asked["requestId"])
            self.heard.put_nowait(asked["requestId"])
            await self.may_answer.wait()
            answer = {
                "type": "callback_response",
                "rendererId": asked["rendererId"],
                "requestId": asked["requestId"],
                "payload": {"status": self._status, "data": {"of": len(self.asked)}},
            }
            text = json.dumps([{"type": "set_props"}, answer])
            await send({"type": "websocket.send", "text": text})


class Page:
    """One socket of a browser."""

    def __init__(self, app: CallbackSharing) -> None:
        self._out: asyncio.Queue[Message] = asyncio.Queue()
        self._in: asyncio.Queue[Message] = asyncio.Queue()
        self._task = asyncio.ensure_future(app(SCOPE, self._out.get, self._in.put))

    def ask(self, message: Message) -> None:
        self._out.put_nowait(message)

    async def answer(self) -> dict[str, Any]:
        found = json.loads((await asyncio.wait_for(self._in.get(), WAIT_S))["text"])
        last: dict[str, Any] = found[-1] if isinstance(found, list) else found
        return last

    def leave(self) -> None:
        self._task.cancel()

    async def end(self) -> None:
        self.ask(GONE)
        await asyncio.gather(self._task, return_exceptions=True)


async def test_pages_that_ask_the_same_get_one_answer_under_their_own_names() -> None:
    dash = Dash()
    app = CallbackSharing(dash, lambda: 0)
    pages = [Page(app) for _ in range(10)]
    for number, page in enumerate(pages):
        page.ask(question(f"q{number}"))
    await asyncio.wait_for(dash.heard.get(), WAIT_S)
    dash.may_answer.set()
    answers = [await page.answer() for page in pages]
    assert [each["requestId"] for each in answers] == [f"q{number}" for number in range(10)]
    assert {json.dumps(each["payload"]) for each in answers} == {
        '{"status": "ok", "data": {"of": 1}}'
    }
    pages[3].ask(question("again"))
    assert (await pages[3].answer())["requestId"] == "again"
    assert len(dash.asked) == 1
    pages[3].ask(question("later", version=8))
    assert (await pages[3].answer())["payload"]["data"] == {"of": 2}
    for page in pages:
        await page.end()


async def test_who_waited_for_a_page_that_left_asks_by_itself() -> None:
    dash = Dash()
    app = CallbackSharing(dash, lambda: 0)
    first, second = Page(app), Page(app)
    first.ask(question("first"))
    await asyncio.wait_for(dash.heard.get(), WAIT_S)
    second.ask(question("second"))
    await asyncio.sleep(0)
    first.leave()
    assert await asyncio.wait_for(dash.heard.get(), WAIT_S) == "second"
    dash.may_answer.set()
    assert (await second.answer())["requestId"] == "second"
    await second.end()


@pytest.mark.parametrize("status", ["error", "prevent_update"])
async def test_what_is_no_answer_is_not_kept(status: str) -> None:
    dash = Dash(status)
    dash.may_answer.set()
    page = Page(CallbackSharing(dash, lambda: 0))
    for name in ("one", "two"):
        page.ask(question(name))
        assert (await page.answer())["requestId"] == name
    assert dash.asked == ["one", "two"]
    await page.end()


async def test_what_no_version_has_caused_is_each_pages_own() -> None:
    dash = Dash()
    dash.may_answer.set()
    page = Page(CallbackSharing(dash, lambda: 0))
    for name in ("one", "two"):
        page.ask(question(name, version=None))
        assert (await page.answer())["requestId"] == name
    assert dash.asked == ["one", "two"]
    await page.end()


async def test_answers_are_bounded_and_follow_the_moves() -> None:
    dash, moves = Dash(), [0]
    dash.may_answer.set()
    app = CallbackSharing(dash, lambda: moves[0], bytes_max=9_000)
    page = Page(app)
    page.ask(question("one"))
    await page.answer()
    moves[0] = 1
    page.ask(question("moved"))
    await page.answer()
    for version in range(100, 120):
        page.ask(question(f"v{version}", version=version))
        await page.answer()
    page.ask(question("dropped"))
    await page.answer()
    assert len(dash.asked) == 23
    assert app.answers.size_bytes <= 9_000
    page.ask(question("kept", version=119))
    await page.answer()
    assert len(dash.asked) == 23
    await page.end()


@pytest.mark.parametrize(
    "message",
    [
        {"text": "{"},
        {"text": '"callback_request"'},
        {"text": "[" * 100_000},
        {"bytes": b"\x00"},
    ],
)
async def test_what_no_page_says_ends_the_socket_with_a_line_in_the_log(
    message: Message, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Message] = []
    dash = Dash()

    async def receive() -> Message:
        return {"type": "websocket.receive", **message} if not told else await asyncio.Future()

    async def send(given: Message) -> None:
        told.append(given)

    await asyncio.wait_for(CallbackSharing(dash, lambda: 0)(SCOPE, receive, send), WAIT_S)
    assert [(each["type"], each["code"]) for each in told] == [("websocket.close", 1007)]
    assert dash.asked == []
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


@pytest.mark.parametrize("payload", [None, [], {"inputs": 7}, {"inputs": [[], {"id": []}]}])
async def test_what_dash_does_not_know_ends_the_socket_with_a_line_in_the_log(
    payload: object, caplog: pytest.LogCaptureFixture
) -> None:
    asked = {"type": "callback_request", "requestId": "q", "payload": payload}
    told: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.receive", "text": json.dumps(asked)}

    async def send(given: Message) -> None:
        told.append(given)

    async def dash(scope: Scope, receive: Receive, send: Send) -> None:
        raise KeyError((await receive())["text"])

    await asyncio.wait_for(CallbackSharing(dash, lambda: 0)(SCOPE, receive, send), WAIT_S)
    assert [each["type"] for each in told] == ["websocket.close"]
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


@pytest.mark.parametrize("name", [[], {}, [[]], {"a": 1}, None, 5])
async def test_a_question_with_a_name_that_is_no_text_costs_its_page_nothing_else(
    name: object,
) -> None:
    dash = Dash()
    dash.may_answer.set()
    page = Page(CallbackSharing(dash, lambda: 0))
    page.ask(question(name))  # type: ignore[arg-type]  # it may be anything
    page.ask(question("sound"))
    answers = [await page.answer() for _ in range(2)]
    assert [it["requestId"] for it in answers] == [name, "sound"]
    await page.end()


async def test_a_page_that_asks_the_same_without_end_waits_itself() -> None:
    """Beyond a bound its messages stay in its own socket."""
    dash = Dash()
    app = CallbackSharing(dash, lambda: 0)
    first, flood = Page(app), Page(app)
    first.ask(question("first"))
    await asyncio.wait_for(dash.heard.get(), WAIT_S)
    before = len(asyncio.all_tasks())
    for number in range(5_000):
        flood.ask(question(f"q{number}"))
    for _ in range(20_000):
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) - before <= INBOX_MAX + 10
    dash.may_answer.set()
    assert (await first.answer())["requestId"] == "first"
    flood.leave()
    await first.end()


async def test_a_page_that_says_much_at_once_waits_before_it_fills_the_memory() -> None:
    """Each message is as long as one may be; Dash takes none of them meanwhile."""
    taken = 0

    async def receive() -> Message:
        nonlocal taken
        taken += 1
        return {"type": "websocket.receive", "text": json.dumps({"x": "y" * (16 << 20)})}

    async def send(_: Message) -> None:
        pass

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    task = asyncio.ensure_future(CallbackSharing(never, lambda: 0)(SCOPE, receive, send))
    for _ in range(100):
        await asyncio.sleep(0)
    assert taken <= INBOX_CHARACTERS_MAX // (16 << 20) + 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_long_question_is_not_kept_for_others() -> None:
    dash = Dash()
    app = CallbackSharing(dash, lambda: 0)
    page = Page(app)
    page.ask(question("a", output="x" * SHARED_CHARACTERS_MAX))
    page.ask(question("b", output="x" * SHARED_CHARACTERS_MAX))
    dash.may_answer.set()
    assert [(await page.answer())["requestId"] for _ in range(2)] == ["a", "b"]
    assert dash.asked == ["a", "b"]
    await page.end()
