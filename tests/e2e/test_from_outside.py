"""What a stranger can give an operator: a link to press, a file to upload. The real page in a real
browser, beside a real cluster."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Browser, Page, expect

from tests.contract.operations_site import Site
from tests.e2e.conftest import SitePage
from tests.e2e.test_moves_by_faces import store_rows
from tests.support.browser import open_page
from tests.support.cases import case
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.tmux import START_S, terminal

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

PLACED: Final = {0: (101, 102), 1: (102, 103)}
MIB: Final = 1 << 20
REFUSED: Final = ("goes on as before", "no proof")


@pytest.fixture(scope="module")
def topic(site: Site) -> str:
    return site.topic("linked", PLACED, partition_bytes=1 << 16)


@pytest.fixture(scope="module")
def server(site: Site, site_page: SitePage, topic: str) -> PageServer:
    return site_page.show(store_rows(site, topic))


def everything(bootstrap: str) -> dict[str, dict[int, int]]:
    """The ends of all logs: of topics, and of those in which operations and journal stand."""
    config = {"bootstrap.servers": bootstrap, "group.id": "eyes", "enable.auto.commit": False}
    consumer = Consumer(config)
    try:
        listed = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=WAIT_S).topics
        return {
            name: {
                number: consumer.get_watermark_offsets(TopicPartition(name, number), WAIT_S)[1]
                for number in found.partitions
            }
            for name, found in listed.items()
            if "metrics" not in name
        }
    finally:
        consumer.close()


@pytest.fixture
def stranger() -> Iterator[socket.socket]:
    """Listens where a link says that a cluster is."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.0)
        yield listener


def test_a_link_does_nothing_and_shows_what_it_filled_in(
    page: Page, server: PageServer, site: Site, topic: str, stranger: socket.socket
) -> None:
    before = everything(site.cluster.bootstrap)
    act = "yes=1&confirm=1&n_clicks=1&submit=1&action=cancel&do=delete_topic&form=delete_topic"
    plan = quote(json.dumps({"partitions": [{"topic": topic, "partition": 0, "replicas": [103]}]}))
    links = (
        f"produce/{topic}?value=forged&count=1000&acks=0&{act}&typed={topic}",
        f"topics/{topic}?{act}&topic={topic}&typed={topic}",
        f"topics?{act}&topic={topic}#delete_topic",
        f"topics/{topic}/configs?{act}&name=retention.ms&value=1",
        f"groups/eyes?{act}&form=reset_offsets&to=earliest&topic={topic}",
        f"brokers/101?{act}&form=unregister_broker&broker=101",
        f"plan?task=by_hand&entries={topic}-0:103&throttle=none&choice=0&made=x&{act}",
        f"plan?goal=balance&remove_brokers=101&throttle=none&{act}",
        f"check?plan={plan}&{act}",
        f"moves/mv-1?{act}",
        f"browse/{topic}?follow=yes&{act}",
    )
    for link in links:
        with case(link):
            page.goto(f"{server.url}/{link}")
            expect(page.locator("#content")).not_to_be_empty()
            expect(page.locator("[role=dialog]:visible")).to_have_count(0)
    host = f"127.0.0.1:{stranger.getsockname()[1]}"
    for address in (
        f"topics?cluster={host}",
        f"@{host}/topics",
        f"topics?bootstrap={host}&bus={host}",
    ):
        answer = page.request.get(f"{server.url}/{address}")
        assert answer.status in {200, 404}
    with pytest.raises(BlockingIOError):
        stranger.accept()
    assert everything(site.cluster.bootstrap) == before
    page.goto(f"{server.url}/{links[0]}")
    for label, value in {"Value": "forged", "Count": "1000"}.items():
        expect(page.get_by_label(label, exact=True)).to_be_visible()
        expect(page.get_by_label(label, exact=True)).to_have_value(value)


def test_a_plan_that_is_too_large_is_told(page: Page, server: PageServer, tmp_path: Path) -> None:
    """A page's WebSocket takes no more in one message."""
    file = tmp_path / "plan.json"
    file.write_bytes(b"[" * 20 * MIB)
    page.goto(f"{server.url}/check")
    with page.expect_file_chooser() as chooser:
        page.get_by_text("upload a file").click()
    chooser.value.set_files(file)
    told = page.locator("#note")
    expect(told).to_contain_text("27 MiB")
    page.get_by_label("Plan").evaluate(
        """field => {
            const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
            set.call(field, "[".repeat(18 << 20));
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    page.get_by_role("button", name="Check", exact=True).click()
    expect(told).to_contain_text("19 MiB")
    expect(told).to_contain_text("nothing was sent")
    page.get_by_label("Plan").fill("[")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#check-result")).to_contain_text("not JSON")


def test_who_acts_on_a_move_is_told_at_once_that_the_executor_refuses(
    browser: Browser,
    site: Site,
    site_page: SitePage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Page and terminal of another installation, whose key the executor does not know."""
    topic = site.topic("guarded", {0: (101,)}, partition_bytes=16 * MIB)
    site_page.show(store_rows(site, topic))
    plan = site.plan_by_hand(topic, {0: (102,)})
    why = ("--throttle", "100KiB", "--reason", "guarded")
    moving = site.cli.start("reassign", plan, "--yes", *why)
    move = site.cli.wait_until_moving(reason="guarded")
    store = site_page.store.folder
    where = (
        "--store",
        str(store),
        "--bootstrap",
        site_page.bootstrap,
        "--bus",
        site_page.bootstrap,
    )
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("PARTISCOPE_PROOF__KEY_FILE", str(tmp_path / "other.key"))
        with PageServer(store, *where[2:]) as server:
            errors: list[str] = []
            page = open_page(browser, f"{server.url}/moves/{move}", errors)
            buttons = {
                "pause": ["#move-pause"],
                "throttle": ["#move-throttle"],
                "cancel": ["#move-cancel", "#move-confirm"],
            }
            for act, pressed in buttons.items():
                if act == "throttle":
                    page.locator("#move-rate").fill("200KiB")
                for button in pressed:
                    page.locator(button).click()
                for words in (f"{act} is refused", *REFUSED):
                    expect(page.locator("#move-said")).to_contain_text(words)
                page.reload()
            page.context.close()
            assert errors == []
        with terminal(f"moves/{move}", *where, data=store.parent / "data") as shown:
            shown.wait("guarded", seconds=START_S)
            acts = {"pause": ["Space"], "throttle": ["t", *"200KiB", "Enter"], "cancel": ["x", "y"]}
            for act, keys in acts.items():
                shown.press(*keys)
                shown.wait(f"{act} is refused", *REFUSED)
    assert [it["phase"] for it in site.cli.moves() if it["id"] == move] == ["running"]
    site.cli.run("moves", "cancel", move)
    assert "1 went back" in "".join(moving.communicate(timeout=WAIT_S))
