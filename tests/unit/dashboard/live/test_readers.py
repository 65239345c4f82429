"""A tab that reads or follows a topic over a real WebSocket, from brokers that answer by script."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.testclient import TestClient

from control.kafka.connection import apis, retry
from control.kafka.records import following
from control.messages.result_pages import ResultPages
from dashboard.live import message_reading
from dashboard.live.message_reading import (
    BACK,
    FOLLOW,
    MORE,
    READ,
    STOP,
    Drawing,
    Readers,
    Tail,
    asked_of,
)
from tests.support.patience import WAIT_S
from tests.unit.control.kafka.records.scripted_logs import TOPIC, Log, ScriptedLogs
from tests.unit.control.kafka.scripted_cluster import Closed, Silence
from tests.unit.dashboard.page_context import context_on

PAGE: Final = 4
ROUNDS_MAX: Final = 200


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BACKOFF_S", 0.0)
    monkeypatch.setattr(following, "REFRESH_S", 0.05)
    monkeypatch.setattr(following, "_RETRY_S", 0.05)
    monkeypatch.setattr(message_reading, "SHOWN_MAX", PAGE)
    monkeypatch.setattr(message_reading, "PACE_S", 0.02)
    monkeypatch.setattr(message_reading, "WAIT_MS", 20)
    monkeypatch.setattr(message_reading, "STOPPING_S", 0.1)


@pytest.fixture
def logs() -> Iterator[ScriptedLogs]:
    """One partition with ten records, v0 to v9."""
    with ScriptedLogs(1, ids=(1,)) as cluster:
        for n in range(10):
            cluster.logs[0].append(b"v%d" % n, timestamp=n)
        yield cluster


def drawn_page(pages: ResultPages, _: Any) -> dict[str, Any]:
    shown = pages.shown
    assert shown is not None
    return {
        "values": [(it.value or b"").decode() for it in shown.records],
        "first": pages.first,
        "unread": [each.partition.partition for each in shown.skipped.unread],
    }


def drawn_tail(tail: Tail, _: Any) -> dict[str, Any]:
    return {
        "values": [(it.value or b"").decode() for it in tail.newest],
        "seen": tail.seen,
        "notices": [notice.text for notice in tail.notices],
    }


DRAWING: Final = Drawing(
    followed=drawn_tail, scanning=lambda scan, _: {"scanned": scan.record_count}, found=drawn_page
)


@dataclass
class Tab:
    """What a browser's tab sends, and what it is told."""

    socket: Any

    def send(self, do: str, **query: str) -> None:
        self.socket.send_text(json.dumps({"do": do, "query": query}))

    def told(self, is_it: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The next message that is not about a scan under way."""
        for _ in range(ROUNDS_MAX):
            found: dict[str, Any] = json.loads(self.socket.receive_text())
            if not found.get("is_running") and is_it(found):
                return found
        raise AssertionError("it was never told")

    def values(self) -> list[str]:
        shown: list[str] = self.told()["children"]["values"]
        return shown


Open = Callable[..., AbstractContextManager[Tab]]


@pytest.fixture
def tabs(logs: ScriptedLogs, tmp_path: Path) -> Iterator[Open]:
    """Opens tabs; two readers at most run at a time."""
    context = context_on(tmp_path, sizes=None, bootstrap=logs.bootstrap)
    readers = Readers(context, DRAWING, most=2)
    server = FastAPI()

    @server.websocket("/follow/{topic}")
    async def follow(socket: WebSocket, topic: str) -> None:
        try:
            await readers.serve(socket, topic)
        finally:
            ended.release()

    ended = threading.Semaphore(0)
    with TestClient(server) as client:

        @contextmanager
        def opened(topic: str = TOPIC) -> Iterator[Tab]:
            with client.websocket_connect(f"/follow/{topic}") as socket:
                yield Tab(socket)
                socket.close()
                # The client of the tests cancels what still serves a connection at its end.
                assert ended.acquire(timeout=WAIT_S)

        yield opened


def test_pages_follow_one_another_and_those_that_were_read_are_not_read_again(
    logs: ScriptedLogs, tabs: Open
) -> None:
    with tabs() as tab:
        tab.send(READ, offset="0")
        first = tab.told()
        assert first["children"]["values"] == ["v0", "v1", "v2", "v3"]
        assert (first["has_more"], first["has_previous"]) == (True, False)
        tab.send(MORE, offset="0")
        second = tab.told()
        assert second["children"] == {"values": ["v4", "v5", "v6", "v7"], "first": 5, "unread": []}
        assert second["has_previous"]
        tab.send(MORE, offset="0")
        last = tab.told()
        assert last["children"]["values"] == ["v8", "v9"]
        assert not last["has_more"]
        fetches = len(logs.requests(apis.FETCH))
        for wanted in ("v4", "v0", "v0"):
            tab.send(BACK)
            assert tab.values()[0] == wanted
        tab.send(MORE)
        assert tab.values() == ["v4", "v5", "v6", "v7"]
        assert len(logs.requests(apis.FETCH)) == fetches


def test_each_press_of_back_counts_while_a_page_is_drawn(
    tabs: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, draws, may_draw = threading.Semaphore(0), threading.Event(), threading.Event()
    may_draw.set()

    def counted(*words: str) -> Any:
        asked = asked_of(*words)
        heard.release()
        return asked

    def first(_: ResultPages) -> int:
        draws.set()
        assert may_draw.wait(WAIT_S)
        return 1

    monkeypatch.setattr(message_reading, "SHOWN_MAX", 2)
    monkeypatch.setattr(message_reading, "asked_of", counted)
    monkeypatch.setattr(ResultPages, "first", property(first))
    with tabs() as tab:
        for do in (READ, *[MORE] * 4):
            tab.send(do, offset="0")
            last = tab.values()
            assert heard.acquire(timeout=WAIT_S)
        assert last == ["v8", "v9"]
        may_draw.clear()
        draws.clear()
        tab.send(BACK)
        assert draws.wait(WAIT_S)
        for _ in range(2):
            tab.send(BACK)
        for _ in range(3):
            assert heard.acquire(timeout=WAIT_S)
        may_draw.set()
        assert [tab.values() for _ in range(2)] == [["v6", "v7"], ["v2", "v3"]]


def test_another_search_forgets_the_pages_of_the_one_before(tabs: Open) -> None:
    with tabs() as tab:
        tab.send(READ, offset="0")
        assert tab.values() == ["v0", "v1", "v2", "v3"]
        tab.send(READ, offset="0", q="v7")
        found = tab.told()
        assert found["children"] == {"values": ["v7"], "first": 1, "unread": []}
        assert (found["has_more"], found["has_previous"]) == (False, False)


def test_a_tab_that_follows_is_told_of_what_comes_alone(logs: ScriptedLogs, tabs: Open) -> None:
    with tabs() as tab:
        tab.send(FOLLOW)
        assert tab.values() == []
        logs.logs[0].append(b"new")
        assert tab.told(lambda it: it["children"]["values"])["children"]["values"] == ["new"]
        tab.send(FOLLOW, q="wanted")
        assert tab.told(lambda it: not it["children"]["values"])["children"]["values"] == []
        logs.logs[0].append(b"other", b"wanted")
        shown = tab.told(lambda it: it["children"]["values"])["children"]
        assert (shown["values"], shown["seen"]) == (["wanted"], 2)
        tab.send(READ, offset="11")
        assert tab.values() == ["other", "wanted"]


def test_a_connection_that_came_back_says_that_it_was_away(tabs: Open) -> None:
    with tabs() as tab:
        tab.socket.send_text(json.dumps({"do": FOLLOW, "again": True}))
        (told,) = tab.told()["children"]["notices"]
        assert told == message_reading.LOST


@pytest.mark.parametrize(
    ("query", "quoted"),
    [
        ({"offset": "9" * 5_000}, "9999"),
        ({"since": "yesterday-ish"}, "yesterday-ish"),
        ({"partition": "7"}, "7"),
        ({"partition": "²"}, "²"),
        ({"partition": "-1"}, "-1"),
        ({"limit": "²"}, "²"),
        ({"limit": "-5"}, "-5"),
        ({"regex": "("}, "("),
        ({"cel": "nonsense("}, "nonsense"),
        ({"cel": "missing == 1"}, "missing"),
        ({"key": "\ud800"}, "key"),
        ({"vf": "latin-77"}, "latin-77"),
    ],
)
def test_what_cannot_be_meant_is_told_and_the_tab_goes_on(
    tabs: Open, query: dict[str, str], quoted: str
) -> None:
    with tabs() as tab:
        tab.send(READ, **query)
        assert quoted in json.dumps(tab.told()["children"], ensure_ascii=False)
        tab.send(READ, offset="8")
        assert tab.values() == ["v8", "v9"]


@pytest.mark.parametrize("words", ["", "{", "[]", '{"do": "dance"}', '{"query": []}', "[" * 9_000])
def test_what_is_no_question_of_a_tab_ends_its_connection_and_no_other(
    tabs: Open, words: str
) -> None:
    with tabs() as other, tabs() as tab:
        tab.socket.send_text(words)
        with pytest.raises(WebSocketDisconnect):
            tab.socket.receive_text()
        other.send(READ, offset="9")
        assert other.values() == ["v9"]


@pytest.mark.parametrize("do", [READ, FOLLOW])
def test_a_topic_that_there_is_not_is_named(tabs: Open, do: str) -> None:
    with tabs("nowhere") as tab:
        tab.send(do)
        assert "nowhere" in json.dumps(tab.told())


def test_one_partition_offline_is_named_and_the_others_are_shown(
    logs: ScriptedLogs, tabs: Open
) -> None:
    logs.logs[1] = Log()
    logs.lead(1, 0)
    with tabs() as tab:
        tab.send(READ, offset="8")
        assert tab.told()["children"] == {"values": ["v8", "v9"], "first": 1, "unread": [1]}


def test_more_readers_than_may_run_are_told_and_one_that_ends_makes_room(
    logs: ScriptedLogs, tabs: Open
) -> None:
    with tabs() as first:
        first.send(FOLLOW)
        first.told()
        with tabs() as second:
            second.send(FOLLOW)
            second.told()
            with tabs() as third:
                third.send(READ, offset="0")
                assert third.told()["is_over"]
        with tabs() as fourth:
            for _ in range(ROUNDS_MAX):
                fourth.send(READ, offset="9")
                if not (found := fourth.told()).get("is_over"):
                    break
            assert found["children"]["values"] == ["v9"]
        logs.logs[0].append(b"new")
        assert first.told(lambda it: it["children"]["values"])["children"]["values"] == ["new"]


def test_a_scan_that_is_stopped_before_the_cluster_answers_is_told_so(
    logs: ScriptedLogs, tabs: Open
) -> None:
    with tabs() as tab:
        tab.send(READ, offset="8")
        assert tab.values() == ["v8", "v9"]
        logs.on(apis.LIST_OFFSETS, Silence)
        tab.send(READ, offset="0")
        assert json.loads(tab.socket.receive_text())["is_running"]
        tab.send(STOP)
        found = tab.told()
        assert "values" not in json.dumps(found)
        logs.on(apis.LIST_OFFSETS, logs.list_offsets)
        tab.send(READ, offset="9")
        assert tab.values() == ["v9"]


def test_another_question_ends_the_one_that_hangs(logs: ScriptedLogs, tabs: Open) -> None:
    with tabs() as tab:
        logs.on(apis.FETCH, Silence)
        tab.send(READ, offset="0")
        assert json.loads(tab.socket.receive_text())["is_running"]
        logs.on(apis.FETCH, logs.fetched)
        tab.send(READ, offset="9")
        tab.told(lambda it: it["children"].get("values") == ["v9"])


def test_a_cluster_that_answers_nothing_is_told_and_followed_again_when_it_does(
    logs: ScriptedLogs, tabs: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_reading, "RETRY_S", 0.02)
    monkeypatch.setattr("control.kafka.connection.wire.KafkaWire._back_off", _at_once)
    logs.on(apis.METADATA, Closed)
    with tabs() as tab:
        tab.send(FOLLOW)
        assert logs.address(1) in json.dumps(tab.told())
        logs.on(apis.METADATA, logs.metadata)
        tab.told(lambda it: isinstance(it["children"], dict) and "seen" in it["children"])
        logs.logs[0].append(b"new")
        tab.told(lambda it: it["children"].get("values") == ["new"])


async def _at_once(*_: object) -> None:
    return None


def test_what_a_tab_asks_is_read_as_it_is_typed() -> None:
    asked = asked_of(json.dumps({"do": READ, "query": {"offset": "1,000", "q": " a  b "}}), TOPIC)
    assert (asked.search.start, asked.search.texts.text, asked.is_again) == ("1000", "a  b", False)
    assert asked_of('{"query": {"q": null, "unheard-of": 3}}', TOPIC).do == FOLLOW
    for words in ('{"do": null}', '{"do": ["read"]}', '{"do": {}}'):
        with pytest.raises(ValueError, match="asks for"):
            asked_of(words, TOPIC)
