"""README's first minutes: ``up`` is ready, a record comes through to the page, the end."""

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, expect

from control.views.tour import STEPS
from partiscope.layout import OTHERS
from tests.support.browser import open_page
from tests.support.installation import Installation
from tests.support.listening import LOOPBACK, listening_ports
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.timeout(420),
]

TOPIC: Final = "deliveries"
BROKERS: Final = 3
PARTITIONS: Final = 4
RECORDS: Final = 2_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``partiscope up``, ready, with one topic of four partitions beside the demo load."""
    with Installation(tmp_path_factory.mktemp("up")) as installation:
        installation.wait_ready()
        admin = AdminClient({"bootstrap.servers": installation.bootstrap, "log_level": 0})
        new = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([new])[TOPIC].result(WAIT_S)
        yield installation


def _produce(bootstrap: str, count: int) -> dict[int, int]:
    """Acknowledged records per partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    landed = dict.fromkeys(range(PARTITIONS), 0)

    def keep(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        landed[message.partition() or 0] += 1

    for number in range(count):
        producer.produce(TOPIC, key=str(number), value=f"record {number}", on_delivery=keep)
    assert producer.flush(WAIT_S) == 0
    return landed


def _high_watermarks(installation: Installation) -> dict[int, int]:
    aggregates = installation.aggregates()
    if aggregates is None:
        return {}
    rows = aggregates.tables["partitions"].to_pylist()
    return {row["partition"]: row["high_watermark"] for row in rows if row["topic"] == TOPIC}


def test_what_is_produced_is_seen_in_the_store_and_on_the_page(
    running: Installation, browser: Browser
) -> None:
    before = _high_watermarks(running)
    landed = _produce(running.bootstrap, RECORDS)
    wanted = {number: before.get(number, 0) + count for number, count in landed.items()}
    what = f"{wanted} in the store"
    wait_until(lambda: _high_watermarks(running) == wanted, what, story=running.story)
    errors: list[str] = []
    page = open_page(browser, running.page, errors)
    expect(page.locator("#tour")).to_contain_text(f"1 of {len(STEPS)}: {STEPS[0].title}")
    page.goto(f"{running.page}/topics/{TOPIC}")
    total = page.get_by_text(f"{wanted[0]:,}", exact=True).first
    expect(total).to_be_visible()
    more = _produce(running.bootstrap, 4_000)
    grown = page.get_by_text(f"{wanted[0] + more[0]:,}", exact=True).first
    expect(grown).to_be_visible()  # pushed: nobody reloads
    page.context.close()
    assert errors == []
    _assert_every_broker_is_told(running)


def _assert_every_broker_is_told(running: Installation) -> None:
    """By samples of its own, all of them understood."""
    found = running.aggregates()
    assert found is not None
    assert found.tables["health"].to_pylist()[0]["bad_records_total"] == 0
    ages_ms = [it["read_ms"] - it["sampled_ms"] for it in found.tables["brokers"].to_pylist()]
    assert len(ages_ms) == BROKERS
    assert max(ages_ms) < 60_000


def test_its_files_and_ports_are_for_its_own_user_alone(running: Installation) -> None:
    """Those of Spark and of Hadoop too, which set modes of their own; a port that listens on more
    than loopback, or a secret on a command line, is everybody's."""
    opened = {}
    for path in running.data.rglob("*"):
        with suppress(FileNotFoundError):  # a snapshot that went meanwhile
            mode = path.lstat().st_mode
            if mode & OTHERS and not stat.S_ISLNK(mode):
                opened[str(path.relative_to(running.data))] = oct(mode)
    assert opened == {}
    children = running.children()
    ports = listening_ports(children)
    assert len(ports) >= 2 * BROKERS + len(("page", "driver", "callbacks", "gateway"))
    assert set(ports.values()) <= LOOPBACK
    works_in = Path(f"/proc/{running.pid_of('spark_metrics')}/cwd")
    assert not works_in.stat().st_mode & OTHERS, works_in.readlink()
    assert [it for it in children.values() if "secret" in it or "password" in it] == []


def test_it_ends_within_five_seconds_and_leaves_nothing(running: Installation) -> None:
    """The last of the story."""
    assert running.stop() < patience_s(5.0)
