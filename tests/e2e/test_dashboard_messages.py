"""One page follows a topic while another sends it the lines of a file; on brokers of ours."""

import json
import re
import time
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, FilePayload, Page, expect

from tests.e2e.conftest import SitePage
from tests.support.browser import open_page
from tests.support.cluster import LocalCluster
from tests.support.filled_topic import fill
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

TOPIC: Final = "notes"
LONG: Final = "long"
"""Holds more records than a page shows at once."""
SLOW: Final = "slow"
"""Takes a search with an expression some seconds."""
ODD: Final = "odd"
ODD_VALUES: Final = (
    "\U0001f468\u200d\U0001f469 \u0645\u06cc\u200c\u062e \u0915\u094d\u200d\u0937 \x1b[2J\t\u202e",
    '{"name":"Ann \\u00e9", "price":1.10}',
    '{"text": "' + "x" * 158_000 + '", "last": 1}',
    "\ufeffa\nb",
)
"""Their display is another text, or not all of them."""


@pytest.fixture(scope="module")
def server(site_page: SitePage, shared_cluster: LocalCluster) -> PageServer:
    admin = AdminClient({"bootstrap.servers": shared_cluster.bootstrap})
    for created in admin.create_topics(
        [NewTopic(TOPIC, 2, 2), NewTopic(LONG, 1, 2), NewTopic(ODD, 1, 2)]
    ).values():
        created.result(WAIT_S)
    producer = Producer({"bootstrap.servers": shared_cluster.bootstrap})
    for number in range(250):
        producer.produce(LONG, f"record {number}".encode(), partition=0)
    for value in ODD_VALUES:
        producer.produce(ODD, value.encode(), partition=0)
    assert producer.flush(WAIT_S) == 0
    fill(shared_cluster.bootstrap, SLOW, count=150_000, partitions=1)
    now_ms = time.time_ns() // 1_000_000
    partition = {"cluster": CLUSTER_ID, "read_ms": now_ms, "leader": 1,
                 "replicas": [1], "isr": [1], "min_isr": 1}  # fmt: skip
    places = ((TOPIC, 0), (TOPIC, 1), (LONG, 0), (SLOW, 0), (ODD, 0))
    rows = [{**partition, "topic": topic, "partition": number} for topic, number in places]
    return site_page.show({"partitions": rows})


def choose(page: Page, name: str, data: bytes) -> None:
    """A file, as a person picks one."""
    file: FilePayload = {"name": name, "mimeType": "text/plain", "buffer": data}
    page.locator("#produce-file input[type=file]").set_input_files(file)


def test_lines_of_a_file_arrive_on_the_page_that_follows(
    page: Page, browser: Browser, server: PageServer
) -> None:
    errors: list[str] = []
    reader = page
    reader.goto(f"{server.url}/browse/{TOPIC}")
    expect(reader.locator("#browse-result")).to_contain_text("No record there")
    reader.locator("#browse-follow").click()
    expect(reader.locator("#browse-result")).to_contain_text("Following")

    writer = open_page(browser, f"{server.url}/produce/{TOPIC}", errors)
    said = writer.locator("#produce-file-words")
    choose(writer, "huge.txt", b"x" * (3 << 20))
    expect(said).to_contain_text("at most 1,024")
    choose(writer, "notes.txt", b"a\tfirst\nb\tsecond\nwithout a key\n")
    expect(said).to_contain_text("notes.txt")
    writer.locator("#produce-send").click()
    expect(writer.locator("#produce-result")).to_contain_text("3 of 3 acknowledged")

    expect(reader.locator("#browse-result .message")).to_have_count(3)
    expect(reader.locator("#browse-result")).to_contain_text("without a key")
    reader.locator(".message", has_text="second").locator("summary").click()
    choose(writer, "more.txt", b"c\tfourth\nd\tfifth\n")
    expect(said).to_contain_text("more.txt")
    writer.locator("#produce-send").click()
    expect(reader.locator("#browse-result .message")).to_have_count(5)
    expect(reader.locator(".message[open]")).to_have_count(1)
    expect(reader.locator(".message[open]")).to_contain_text("second")
    assert "follow=yes" in reader.url
    reader.locator("#browse-follow").click()
    expect(reader.locator("#browse-follow")).to_have_text("Follow")
    reader.goto(f"{server.url}/browse/{TOPIC}?follow=yes")
    expect(reader.locator("#browse-result")).to_contain_text("Following: 0 records")
    writer.context.close()
    assert errors == []


def test_reading_on_shows_the_records_before(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/browse/{LONG}")
    result, more = page.locator("#browse-result"), page.locator("#browse-more")
    back = page.locator("#browse-back")
    parts = ((100, 249, "1–100"), (100, 149, "101–200"), (50, 49, "201–250"))
    for count, newest, numbers in parts:
        expect(result).to_contain_text(f"{numbers} shown")
        expect(result.locator(".message").first).to_contain_text(f"record {newest}")
        expect(result.locator(".message")).to_have_count(count)
        is_last = numbers == "201–250"
        assert ("older ones not read yet" in result.inner_text()) is not is_last
        if is_last:
            expect(more).to_be_hidden()
        else:
            more.click()
    for _, newest, numbers in reversed(parts[:2]):
        back.click()
        expect(result).to_contain_text(f"{numbers} shown")
        expect(result.locator(".message").first).to_contain_text(f"record {newest}")
    expect(back).to_be_hidden()
    more.click()
    expect(result).to_contain_text("101–200 shown")


def test_a_search_says_how_far_it_looked_and_is_in_the_address(
    page: Page, server: PageServer
) -> None:
    page.goto(f"{server.url}/browse/{LONG}?limit=100&regex=%5Erecord+1.%24")
    result, more = page.locator("#browse-result"), page.locator("#browse-more")
    expect(result).to_contain_text("0 match; 100 records scanned, 100 of 250 offsets (40 %)")
    expect(result).to_contain_text("older ones not scanned yet")
    assert "No record" not in result.inner_text()
    for part in ("200 of 250 offsets (80 %)", "10 match; 250 records scanned"):
        more.click()
        expect(result).to_contain_text(part)
    expect(more).to_be_hidden()
    expect(result.locator(".message")).to_have_count(10)

    page.locator("#browse-regex").fill("a(b")
    page.locator("#browse-read").click()
    expect(result).to_contain_text("regex: 'a(b'")
    page.locator("#browse-regex").fill("")
    page.locator("#browse-cel").fill("value == 'record 7' && offset == 7")
    page.locator("#browse-limit").fill("1000")
    page.locator("#browse-read").click()
    expect(result.locator(".message")).to_have_count(1)
    page.goto(page.url)
    expect(result.locator(".message")).to_have_count(1)
    expect(page.locator("#browse-cel")).to_be_visible()


def test_a_search_that_is_stopped_says_how_far_it_came(page: Page, server: PageServer) -> None:
    search = "since=earliest&limit=1000000&cel=value.n+%3D%3D+-1"
    page.goto(f"{server.url}/browse/{SLOW}?{search}")
    result = page.locator("#browse-result")
    page.locator("#browse-stop").click()
    expect(result).to_contain_text("stopped by hand")
    words = result.inner_text()
    assert "0 match; " in words
    assert "later ones not scanned yet" in words
    assert "No record" not in words
    expect(page.locator("#browse-stop")).to_be_hidden()
    page.locator("#browse-more").click()
    expect(result).to_contain_text("150,000 records scanned")


def test_a_message_is_decoded_kept_as_a_file_and_sent_again(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/browse/{SLOW}?partition=0&offset=7&limit=1")
    first = page.locator(".message").first
    expect(first).to_contain_text('{"n": 7}')
    first.locator("summary").first.click()
    expect(first).to_contain_text("CreateTime")
    expect(first.locator("pre.message-whole").first).to_contain_text('"n": 7')
    with page.expect_download() as kept:
        first.get_by_text("download as JSON").click()
    document = json.loads(Path(kept.value.path()).read_text())
    assert document["decoded"]["value"] == {"format": "json", "document": {"n": 7}}
    with page.expect_download() as lines:
        page.get_by_text("JSON lines").click()
    assert json.loads(Path(lines.value.path()).read_text().splitlines()[0])["offset"] == 7
    page.locator("#browse-value-format").click()
    page.get_by_role("option", name="hex", exact=True).click()
    page.locator("#browse-read").click()
    expect(first).to_contain_text("0x7b226e223a20377d")
    expect(page).to_have_url(re.compile("vf=hex"))
    page.goto(f"{server.url}/browse/{SLOW}?partition=0&offset=7&limit=1")
    expect(first).to_contain_text("0x7b226e223a20377d")
    first.locator("summary").first.click()
    first.get_by_text("send again, with edits").click()
    expect(page.locator("#produce-value, [id*=value]").first).to_be_visible()
    expect(page).to_have_url(re.compile(f"/produce/{SLOW}"))


def _is_copied(page: Page, value: str) -> bool:
    return bool(page.evaluate("navigator.clipboard.readText()") == value)


def test_what_is_copied_is_the_value_and_not_its_display(page: Page, server: PageServer) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for offset, value in enumerate(ODD_VALUES):
        page.goto(f"{server.url}/browse/{ODD}?partition=0&offset={offset}&limit=1")
        first = page.locator(".message").first
        first.locator("summary").first.click()
        page.evaluate("navigator.clipboard.writeText('nothing yet')")
        first.get_by_role("button", name="Copy the value").click()
        wait_until(partial(_is_copied, page, value), f"{value!r:.40} is copied")


def test_large_json_is_laid_out_where_it_is_opened(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/browse/{ODD}?partition=0&offset=2&limit=1")
    first = page.locator(".message").first
    first.locator("summary").first.click()
    fold = first.locator("details.message-raw")
    expect(fold).to_contain_text("laid out")
    expect(fold.locator("pre")).to_have_text("")
    fold.locator("summary").click()
    expect(fold.locator("pre")).to_contain_text('"last": 1\n}')
    assert fold.locator("pre").inner_text().startswith('{\n  "text": "xxx')
