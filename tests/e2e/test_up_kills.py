"""Parts of the running product are killed: clients go on, nothing acknowledged is lost, they come
back; and a move from the terminal before that."""

import asyncio
import os
import signal
import threading
import time
from functools import partial
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.feed import SnapshotFeed
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.installation import Installation
from tests.support.patience import WAIT_S
from tests.support.settle import settle, wait_until
from tui.app import PartiscopeApp
from tui.screens.reassignments.moves import MoveScreen
from tui.terminal_session import Services
from tui.widgets.form import FormPanel

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.timeout(420),
]

TOPIC: Final = "parcels"
PARTITIONS: Final = 4


@pytest.fixture(scope="module")
def running(up: Installation) -> Installation:
    """With one topic of four partitions."""
    admin = AdminClient({"bootstrap.servers": up.bootstrap, "log_level": 0})
    new = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([new])[TOPIC].result(WAIT_S)
    return up


def _replicas(installation: Installation, partition: int) -> list[int]:
    admin = AdminClient({"bootstrap.servers": installation.bootstrap, "log_level": 0})
    found = admin.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions[partition].replicas
    return list(found)


def _services(installation: Installation) -> Services:
    reader = AggregatesReader(installation.store)
    return Services(
        feed=SnapshotFeed(reader),
        history=reader,
        watched=WatchedCluster(bootstrap=installation.bootstrap),
        bus=installation.bootstrap,
    )


async def test_a_partition_is_moved_from_the_terminal(running: Installation) -> None:
    before = await asyncio.to_thread(_replicas, running, 0)
    after = [before[1], before[2], before[0]]
    app = PartiscopeApp(_services(running), path=f"plan?topics={TOPIC}&task=by_hand")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(FormPanel)), "the next step")
        fields = {"partition": "0", "replicas": ",".join(map(str, after)), "reason": "a test"}
        for name, value in fields.items():
            app.screen.query_one(f"#field-{name}").value = value  # type: ignore[attr-defined]
        app.screen.query_one(FormPanel).action_submit()
        await settle(pilot, lambda: "by hand" in _text(app, "#alternatives"), "the next step")
        await settle(pilot, lambda: "planned" in _text(app, "#review"), "the next step")
        await pilot.press("c")
        await pilot.pause()
        await pilot.press("y")
        await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the next step")
        await settle(pilot, lambda: "done" in _text(app, "#move-head"), "the next step")
    app.session.services.feed.stop()
    assert await asyncio.to_thread(_replicas, running, 0) == after


def _text(app: PartiscopeApp, selector: str) -> str:
    found = app.screen.query(selector)
    if not found:
        return ""
    strips = found.first().render_lines(found.first().region.reset_offset)
    return "\n".join(strip.text for strip in strips)


def test_a_leader_is_killed_and_nothing_acknowledged_is_lost(running: Installation) -> None:
    acknowledged: dict[str, tuple[int, int]] = {}
    stop = threading.Event()
    thread = threading.Thread(
        target=_produce_until, args=(running.bootstrap, stop, acknowledged), daemon=True
    )
    thread.start()
    wait_until(lambda: len(acknowledged) > 200, "a running producer", story=running.story)
    admin = AdminClient({"bootstrap.servers": running.bootstrap, "log_level": 0})
    leader = admin.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions[0].leader
    os.kill(running.pid_of(f"broker-{leader}.properties"), signal.SIGKILL)
    at_kill = len(acknowledged)
    what = "acknowledgements after the kill"
    wait_until(lambda: len(acknowledged) > at_kill + 500, what, story=running.story)
    running.wait_for_line(f"broker {leader} is back")
    stop.set()
    thread.join(WAIT_S)
    assert _missing(running.bootstrap, acknowledged) == {}


@pytest.mark.soak
@pytest.mark.parametrize("broker", [101, 102, 103])
def test_a_broker_that_hangs_is_told_by_the_others(running: Installation, broker: int) -> None:
    """It still takes connections, and answers nobody: the figures of all others go on, once each
    client of the job has found that out for itself."""
    pid = running.pid_of(f"broker-{broker}.properties")
    os.kill(pid, signal.SIGSTOP)
    try:
        what = f"{broker} told as down by figures of a few seconds"
        is_told = partial(_is_told_as_down, running, broker)
        wait_until(is_told, what, timeout_s=150.0, story=running.story)
    finally:
        os.kill(pid, signal.SIGCONT)
    is_back = partial(_is_told_as_down, running, None)
    wait_until(is_back, "all brokers told as alive", story=running.story)


def _is_told_as_down(installation: Installation, broker: int | None) -> bool:
    found = installation.aggregates()
    assert found is not None
    now_ms = time.time() * 1000
    brokers = found.tables["brokers"].to_pylist()
    down = {row["broker"] for row in brokers if row["is_fenced"]}
    fresh = [row for row in brokers if now_ms - row["sampled_ms"] < 8_000]
    others = installation.brokers - (broker is not None)
    return down == ({broker} - {None}) and len(fresh) >= others


def _produce_until(
    bootstrap: str, stop: threading.Event, acknowledged: dict[str, tuple[int, int]]
) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    )

    def keep(error: KafkaError | None, message: Message) -> None:
        if error is None:
            key, place = message.key(), (message.partition() or 0, message.offset() or 0)
            acknowledged[bytes(key or b"").decode()] = place

    number = 0
    while not stop.is_set():
        producer.produce(TOPIC, key=f"kill-{number}", value="x" * 100, on_delivery=keep)
        producer.poll(0)
        number += 1
        stop.wait(0.0005)
    producer.flush(WAIT_S)


def _missing(bootstrap: str, acknowledged: dict[str, tuple[int, int]]) -> dict[str, object]:
    """Acknowledged records that are not where the acknowledgement said."""
    wanted = {place: key for key, place in acknowledged.items()}
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "auditor",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    last_s = time.monotonic()
    while wanted and time.monotonic() - last_s < 30:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        last_s = time.monotonic()
        place = (message.partition() or 0, message.offset() or 0)
        if wanted.get(place) == bytes(message.key() or b"").decode():
            del wanted[place]
    consumer.close()
    return {key: place for place, key in wanted.items()}


@pytest.mark.parametrize(
    "words", ["-m spark_metrics", "partiscope dashboard", "partiscope executor"]
)
def test_a_killed_part_comes_back(running: Installation, words: str) -> None:
    pid = running.pid_of(words)
    os.kill(pid, signal.SIGKILL)
    name = {"-m spark_metrics": "metrics"}.get(words, words.split()[-1])
    running.wait_for_line(f"^{name} is back")
    assert running.pid_of(words) != pid
