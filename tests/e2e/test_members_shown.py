"""Live members of a group on both faces: who joins and leaves is seen at the next refresh, with the
rack that each tells; a member that lives refuses a reset before it is confirmed."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, expect

from tests.e2e.both_faces import Shown, shown
from tests.e2e.conftest import SitePage, page_of
from tests.support.browser import dialog_of
from tests.support.kafka_oracle import KAFKA_TODAY, KafkaCluster, ready_admin
from tests.support.node_cluster import CLUSTER_ID
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

PARTITIONS: Final = 4
GROUP: Final = "billing"
TOPIC: Final = "invoices"
KINDS: Final = [
    pytest.param(("ours", "classic"), id="ours"),
    pytest.param(
        ("kafka", "consumer"), id="kafka", marks=(pytest.mark.kafka_oracle, pytest.mark.soak)
    ),
]


@pytest.fixture(params=KINDS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param[1])


@pytest.fixture
def site_of_kind(
    request: pytest.FixtureRequest, protocol: str, tmp_path: Path
) -> Iterator[SitePage]:
    if protocol == "classic":
        page: SitePage = request.getfixturevalue("site_page")
        fill(page.bootstrap)
        yield page
        return
    store = StoreBuilder(tmp_path / "store")
    with KafkaCluster(tmp_path / "cluster", brokers=1, version=KAFKA_TODAY) as made:
        fill(made.bootstrap)
        with page_of(made.bootstrap, store) as page:
            yield page


def fill(bootstrap: str) -> None:
    where: dict[str, str | int] = {"bootstrap.servers": bootstrap}
    admin = ready_admin(**where)
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(WAIT_S)
    producer = Producer(where)
    for number in range(10 * PARTITIONS):
        producer.produce(TOPIC, str(number), partition=number % PARTITIONS)
    producer.flush(WAIT_S)


def rows() -> dict[str, list[dict[str, Any]]]:
    """What the metrics job would have written: each partition has a lag of 6."""
    now_ms = time.time_ns() // 1_000_000
    shared = {"cluster": CLUSTER_ID, "read_ms": now_ms}
    broker = 101
    partitions = [{**shared, "topic": TOPIC, "partition": it} for it in range(PARTITIONS)]
    return {
        "brokers": [{**shared, "broker": broker, "is_fenced": False, "interval_ms": 120_000,
                     "sampled_ms": now_ms}],
        "partitions": [
            {**it, "leader": broker, "replicas": [broker], "isr": [broker], "adding_replicas": [],
             "removing_replicas": [], "min_isr": 1, "log_start_offset": 0, "high_watermark": 10}
            for it in partitions
        ],
        "commits": [
            {**it, "group_id": GROUP, "committed_offset": 4, "end_offset": 10, "lag": 6,
             "commit_ms": now_ms, "consumed_records_per_s": 0.0, "lag_records_per_s": 0.0,
             "end_read_ms": now_ms, "status": "OK"}
            for it in partitions
        ],
        "groups": [{**shared, "group_id": GROUP, "state": "Stable", "protocol": "range",
                    "members": 1, "status": "OK", "lag_sum": 6 * PARTITIONS}],
    }  # fmt: skip


@contextmanager
def member(bootstrap: str, protocol: str, name: str) -> Iterator[Callable[[], int]]:
    """A member in a rack of its own; answers how many partitions it has."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap, "group.id": GROUP, "client.id": name, "log_level": 0,
        "client.rack": f"rack-{name}", "group.protocol": protocol, "auto.offset.reset": "earliest",
    }  # fmt: skip
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 300
    consumer, is_over = Consumer(settings), threading.Event()
    consumer.subscribe([TOPIC])
    counts = deque([0], maxlen=1)

    def poll() -> None:
        while not is_over.is_set():
            consumer.poll(0.1)
            counts.append(len(consumer.assignment()))  # In this thread: it may wait for poll().
        consumer.close()

    polling = threading.Thread(target=poll, daemon=True)
    polling.start()
    try:
        yield lambda: counts[-1]
    finally:
        is_over.set()
        polling.join(WAIT_S)


def test_members_that_join_and_leave_are_seen_at_the_next_refresh(
    browser: Browser, site_of_kind: SitePage, protocol: str
) -> None:
    site = site_of_kind
    site.show(rows())
    at = site.bootstrap
    with member(at, protocol, "first") as first:
        wait_until(lambda: first() == PARTITIONS, "it reads all")
        with shown(browser, site, f"groups/{GROUP}", "first on") as faces:
            check(faces, [("first", f"{TOPIC} 0-3", "24")])
            with member(at, protocol, "second") as second:
                wait_until(lambda: (first(), second()) == (2, 2), "they share", timeout_s=90)
                site.show(rows())
                halves = described(at)
                check(faces, [(name, halves[name], "12") for name in ("first", "second")])
                faces.take(f"members-{protocol}")
            wait_until(lambda: first() == PARTITIONS, "it reads all again", timeout_s=90)
            site.show(rows())
            check(faces, [("first", f"{TOPIC} 0-3", "24")])
            expect(faces.page.locator("#group-facts")).not_to_contain_text("rack-second")
            assert "rack-second" not in faces.terminal.words()
            refuses(faces)


def described(bootstrap: str) -> dict[str, str]:
    """Assignments by client, as Kafka's own library reads them."""
    admin = ready_admin(**{"bootstrap.servers": bootstrap})
    found = admin.describe_consumer_groups([GROUP])[GROUP].result(WAIT_S)
    numbers = {
        it.client_id: sorted(at.partition for at in it.assignment.topic_partitions)
        for it in found.members
    }
    return {
        name: f"{TOPIC} {a}-{b}" if b == a + 1 else f"{TOPIC} {a}, {b}"
        for name, (a, b) in numbers.items()
    }


def check(faces: Shown, members: list[tuple[str, str, str]]) -> None:
    """Both show these members, with racks and lags, within one refresh: within seconds."""
    lines = faces.page.locator("#group-facts tbody tr")
    expect(lines).to_have_count(len(members))
    for name, assigned, lag in members:
        line = lines.filter(has_text=name)
        for words in (f"rack-{name}", assigned, lag):
            expect(line.get_by_text(words, exact=True).first).to_be_visible(timeout=5_000)
        faces.terminal.wait(
            f"{name} on 127.0.0.1, rack rack-{name}: {assigned}; lag {lag}", seconds=5.0
        )


def refuses(faces: Shown) -> None:
    """A live member refuses a reset before anybody may confirm it."""
    page, terminal = faces.page, faces.terminal
    page.keyboard.press("Shift+O")
    dialog = dialog_of(page)
    dialog.get_by_role("textbox", name="Topic").fill(TOPIC)
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("1 member: first")
    expect(dialog.get_by_role("button", name="Reset a group's offsets")).to_have_count(0)
    terminal.press("O")
    terminal.wait("Reset a group's offsets")
    terminal.press("Enter")
    terminal.wait("1 member: first")
    assert "confirms" not in terminal.words()
    faces.take("refused")
    terminal.press("Escape")
