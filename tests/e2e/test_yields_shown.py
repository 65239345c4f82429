"""A move that yields to a consumer group says so on its page and in a terminal of 80 columns."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pytest
from confluent_kafka import Consumer
from playwright.sync_api import Browser, expect

from partiscope.cli.shared.exits import Exit
from tests.contract.operations_rig import unique
from tests.contract.operations_site import Site
from tests.e2e.both_faces import shown
from tests.e2e.conftest import SitePage
from tests.e2e.test_moves_by_faces import store_rows
from tests.support.paced_producer import PacedProducer
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

FROM: Final = (101, 102)
TO: Final = (103, 102)
PARTITIONS: Final = range(3)


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A group that reads a topic, unless it is told to stand still."""

    group: str
    may_read: threading.Event
    has_read: threading.Event


@contextmanager
def reader_of(bootstrap: str, topic: str) -> Iterator[Reader]:
    """Commits what it reads ten times a second; while it stands still it stays a member."""
    reader = Reader(group=unique("billing"), may_read=threading.Event(), has_read=threading.Event())
    is_over = threading.Event()

    def read() -> None:
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": reader.group,
             "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0}
        )  # fmt: skip
        consumer.subscribe([topic])
        while not is_over.is_set():
            if not reader.may_read.wait(0.1):
                continue
            if any(not message.error() for message in consumer.consume(500, 0.1)):
                consumer.commit(asynchronous=False)
            elif consumer.assignment():
                reader.has_read.set()
        consumer.close()

    reading = threading.Thread(target=read, daemon=True)
    reader.may_read.set()
    reading.start()
    try:
        yield reader
    finally:
        is_over.set()
        reading.join(WAIT_S)


@pytest.mark.parametrize("mode", ["pause", pytest.param("slow", marks=pytest.mark.soak)])
def test_both_faces_say_why_a_move_yields_and_that_it_goes_on_by_itself(
    browser: Browser, site: Site, site_page: SitePage, mode: str
) -> None:
    placed = dict.fromkeys(PARTITIONS, FROM)
    topic = site.topic("orders", placed, partition_bytes=2 << 20)
    plan = site.plan_by_hand(topic, dict.fromkeys(PARTITIONS, TO))
    site_page.show(store_rows(site, topic))
    moved = len(site.cli.moves())
    bootstrap = site.cluster.bootstrap
    with (
        PacedProducer(bootstrap, topic, partitions=3, per_s=50),
        reader_of(bootstrap, topic) as reader,
    ):
        wait_until(reader.has_read.is_set, "the group has caught up")
        command = site.cli.start(
            *("reassign", plan, "--yes", "--throttle", "100KiB", "--partitions-per-wave", "1"),
            *("--spread", "none", "--yield-to-consumers", mode, "--yield-after", "2s"),
        )
        wait_until(lambda: len(site.cli.moves()) > moved, "it is submitted")
        move = site.cli.moves()[0]["id"]
        with shown(browser, site_page, f"moves/{move}", "throttle") as faces:
            faces.wait("running")
            reader.may_read.clear()
            faces.wait(f"yields to group {reader.group}")
            expect(faces.page.locator(".tiles")).to_contain_text("yields")
            faces.terminal.wait("yields done")
            faces.take(f"yield-{mode}")
            reader.may_read.set()
            faces.wait(f"goes on: group {reader.group}")
            faces.take(f"goes-on-{mode}")
        site.cli.run("moves", "cancel", move)
        site.cli.end_of(command, status=Exit.FAILED)
