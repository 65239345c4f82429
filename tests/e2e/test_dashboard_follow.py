"""Tabs follow a topic while numbers arrive: all are seen, once, and readers go with their tabs."""

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Self

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, Page, expect

from dashboard.live.message_reading import READERS_MAX
from tests.support.browser import open_page
from tests.support.cluster import LocalCluster
from tests.support.connections import connections_to
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import NOWHERE, PageServer
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

OWN_CONNECTIONS: Final = 2
"""By which the page looks for open transactions: one to the address, one to the broker."""
TOPICS: Final = ("steady", "typed", "tabs", "slow", "full")
EACH_S: Final = 0.02
WATCHED_S: Final = 4.0
WATCH: Final = """() => {
    const seen = window.seen = new Set();
    window.twice = [];
    new MutationObserver(() => {
        const shown = Array.from(document.querySelectorAll("#browse-result .message-value"));
        const words = shown.map((it) => it.textContent);
        words.forEach((it) => seen.add(it));
        if (new Set(words).size !== words.length) window.twice.push(words);
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""
"""Collects every record that the view ever shows."""


@dataclass
class Numbers:
    """Sends ``number 0``, ``number 1``, … at a steady rate for as long as the context lasts."""

    bootstrap: str
    topic: str
    sent: int = 0
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._send)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        assert self._thread is not None
        self._thread.join()

    def _send(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        while not self._is_over.wait(EACH_S):
            producer.produce(self.topic, f"number {self.sent}".encode(), partition=self.sent % 2)
            producer.poll(0)
            self.sent += 1
        assert producer.flush(WAIT_S) == 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("follow"), brokers=1) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for made in admin.create_topics([NewTopic(name, 2, 1) for name in TOPICS]).values():
            made.result(WAIT_S)
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    folder = tmp_path_factory.mktemp("follow-store")
    now_ms = time.time_ns() // 1_000_000
    (broker,) = cluster.ids
    shared = {"cluster": CLUSTER_ID, "read_ms": now_ms, "leader": broker,
              "replicas": [broker], "isr": [broker], "min_isr": 1}  # fmt: skip
    rows = [{**shared, "topic": name, "partition": n} for name in TOPICS for n in range(2)]
    StoreBuilder(folder / "store").write({"partitions": rows})
    # With a bus elsewhere all other connections to the cluster are readers'.
    where = ("--bootstrap", cluster.bootstrap, "--bus", NOWHERE)
    with PageServer(folder / "store", *where) as server:
        yield server


@contextmanager
def following(browser: Browser, server: PageServer, topic: str) -> Iterator[Page]:
    """A tab that follows from its opening on."""
    errors: list[str] = []
    page = open_page(browser, f"{server.url}/browse/{topic}?follow=yes", errors)
    expect(page.locator("#browse-result")).to_contain_text("Following: 0 records")
    page.evaluate(WATCH)
    try:
        yield page
    finally:
        page.close()
    assert errors == []


def readers(server: PageServer, cluster: LocalCluster) -> int:
    """Connections of readers to the broker; fewer than none before the page has its own."""
    return connections_to(server.pid, cluster.ports.values()) - OWN_CONNECTIONS


def settled(server: PageServer, cluster: LocalCluster, count: int) -> None:
    wait_until(
        lambda: readers(server, cluster) == count,
        f"{count} connections",
        story=lambda: f"there are {readers(server, cluster)}",
        timeout_s=20,
    )


def expect_all(page: Page, count: int) -> None:
    """Every number was shown, none twice at one time."""
    page.wait_for_function("last => window.seen.has(last)", arg=f"number {count - 1}")
    seen = set(page.evaluate("() => [...window.seen]"))
    assert seen == {f"number {n}" for n in range(count)}
    assert page.evaluate("() => window.twice") == []


def test_every_number_is_shown_once(
    browser: Browser, server: PageServer, cluster: LocalCluster
) -> None:
    with following(browser, server, "steady") as page:
        with Numbers(cluster.bootstrap, "steady") as numbers:
            page.wait_for_function("() => window.seen.size >= 300")
        expect_all(page, numbers.sent)
        words = f"{numbers.sent} of {numbers.sent} records that arrived"
        expect(page.locator("#browse-result")).to_contain_text(words)


def test_a_filter_that_is_typed_fast_loses_nothing_and_keeps_one_reader(
    browser: Browser, server: PageServer, cluster: LocalCluster
) -> None:
    settled(server, cluster, 0)
    with following(browser, server, "typed") as page:
        with Numbers(cluster.bootstrap, "typed") as numbers:
            page.wait_for_function("() => window.seen.size > 2")
            of_one = readers(server, cluster)
            assert of_one > 0
            wanted = page.locator("#browse-wanted")
            for _ in range(5):
                wanted.press_sequentially("number", delay=15)
                wanted.fill("")
            wanted.press_sequentially("umb", delay=15)
            shown = page.evaluate("() => window.seen.size")
            page.wait_for_function("n => window.seen.size >= n + 50", arg=shown)
        expect_all(page, numbers.sent)
        assert readers(server, cluster) == of_one
        expect(page).to_have_url(re.compile("q=umb"))

        wanted.fill("number 7")
        page.wait_for_function(
            """() => Array.from(document.querySelectorAll("#browse-result .message-value"))
                .every((it) => it.textContent.includes("number 7"))"""
        )
        page.locator("#browse-partition").fill("1")
        with Numbers(cluster.bootstrap, "typed", numbers.sent):
            # What was found before the other partition was asked for may still come.
            page.wait_for_function(
                """() => { const places = Array.from(
                    document.querySelectorAll("#browse-result .message-place"));
                    return places.length && places.every((it) => it.textContent.startsWith("1 @ "));
                }"""
            )
    settled(server, cluster, 0)


def test_readers_end_with_their_tab_or_view(
    browser: Browser, server: PageServer, cluster: LocalCluster
) -> None:
    settled(server, cluster, 0)
    context = browser.new_context()
    tabs = [context.new_page() for _ in range(3)]
    for tab in tabs:
        tab.goto(f"{server.url}/browse/tabs?follow=yes")
        expect(tab.locator("#browse-result")).to_contain_text("Following: 0 records")
    with Numbers(cluster.bootstrap, "tabs"):
        for tab in tabs:
            expect(tab.locator("#browse-result .message").nth(3)).to_be_visible()
    of_one, rest = divmod(readers(server, cluster), 3)
    assert of_one > 0
    assert rest == 0
    tabs[0].close()
    settled(server, cluster, 2 * of_one)
    tabs[1].get_by_role("link", name="Groups").click()
    settled(server, cluster, of_one)
    tabs[1].go_back()
    with Numbers(cluster.bootstrap, "tabs"):
        expect(tabs[1].locator("#browse-result .message").nth(3)).to_be_visible()
    settled(server, cluster, 2 * of_one)
    tabs[1].locator("#browse-follow").click()
    settled(server, cluster, of_one)
    context.close()
    settled(server, cluster, 0)


def test_a_reader_that_starts_slowly_is_started_once(
    browser: Browser, server: PageServer, cluster: LocalCluster
) -> None:
    settled(server, cluster, 0)
    page = open_page(browser, f"{server.url}/browse/slow", [])
    expect(page.locator("#browse-result")).to_contain_text("No record there")
    settled(server, cluster, 0)
    (broker,) = cluster.processes.values()
    broker.send_signal(signal.SIGSTOP)
    try:
        page.locator("#browse-follow").click()
        wait_until(lambda: readers(server, cluster) > 0, "a reader", timeout_s=20)
        end_s, most = time.monotonic() + WATCHED_S, 0
        while time.monotonic() < end_s:
            most = max(most, readers(server, cluster))
            page.wait_for_timeout(50)
    finally:
        broker.send_signal(signal.SIGCONT)
    assert most == 1
    expect(page.locator("#browse-result")).to_contain_text("Following: 0 records")
    page.close()
    settled(server, cluster, 0)


def test_too_many_are_told_and_one_that_goes_makes_room(
    browser: Browser, server: PageServer, cluster: LocalCluster
) -> None:
    settled(server, cluster, 0)
    page = open_page(browser, f"{server.url}/overview", [])
    opened = """async ([topic, count]) => {
        const address = `ws://${window.location.host}/follow/${topic}`;
        window.sockets = Array.from({ length: count }, () => new WebSocket(address));
        await Promise.all(window.sockets.map((socket) => new Promise((done) => {
            socket.onopen = () => socket.send(JSON.stringify({ partition: "", q: "" }));
            socket.onmessage = done;
        })));
    }"""
    page.evaluate(opened, ["full", READERS_MAX])
    with browser.new_context() as context:
        tab = context.new_page()
        tab.goto(f"{server.url}/browse/full?follow=yes")
        words = f"{READERS_MAX} tabs follow topics already"
        expect(tab.locator("#browse-result")).to_contain_text(words)
        expect(tab.locator("#browse-follow")).to_have_text("Follow")
        held = readers(server, cluster)
        page.evaluate("() => window.sockets.pop().close()")
        wait_until(lambda: readers(server, cluster) < held, "a reader ends", timeout_s=20)
        with Numbers(cluster.bootstrap, "full"):
            tab.locator("#browse-follow").click()
            expect(tab.locator("#browse-result .message").first).to_be_visible()
    page.close()
    settled(server, cluster, 0)
