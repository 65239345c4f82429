"""Pages of what a search found: next and previous, on the page and in a terminal of 80 columns."""

from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, expect

from tests.e2e.both_faces import shown
from tests.e2e.conftest import SitePage
from tests.support.kafka_oracle import ready_admin
from tests.support.node_cluster import CLUSTER_ID
from tests.support.patience import WAIT_S

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

TOPIC: Final = "parcels"
COUNT: Final = 500
"""Half of them are found."""


def fill(bootstrap: str) -> None:
    admin = ready_admin(**{"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(COUNT):
        producer.produce(TOPIC, f"{'even' if number % 2 == 0 else 'odd'} {number}")
    assert producer.flush(WAIT_S) == 0


def test_a_search_is_paged_to_and_fro_and_says_which_results_are_shown(
    browser: Browser, site_page: SitePage
) -> None:
    fill(site_page.bootstrap)
    rows = [{"cluster": CLUSTER_ID, "read_ms": 1, "leader": 1, "replicas": [1], "isr": [1],
             "min_isr": 1, "topic": TOPIC, "partition": 0}]  # fmt: skip
    site_page.show({"partitions": rows})
    path = f"browse/{TOPIC}?since=earliest&q=even"
    with shown(browser, site_page, path, "1–200 shown") as faces:
        page, terminal = faces.page, faces.terminal
        result, back = page.locator("#browse-result"), page.locator("#browse-back")
        onward = page.locator("#browse-more")
        expect(result).to_contain_text("1–100 shown")
        expect(back).to_be_hidden()
        terminal.wait("m next")
        assert "m next, b previous" not in terminal.words()
        for numbers, first in (("101–200", "even 200"), ("201–250", "even 400")):
            onward.click()
            expect(result).to_contain_text(f"{numbers} shown")
            expect(result.locator(".message").first).to_contain_text(first)
        expect(onward).to_be_hidden()
        terminal.press("m")
        terminal.wait("201–250 shown", "b previous", "even 400")
        faces.take("results")
        back.click()
        expect(result).to_contain_text("101–200 shown")
        expect(result.locator(".message").first).to_contain_text("even 200")
        expect(onward).to_be_visible()
        terminal.press("b")
        terminal.wait("1–200 shown", "even 2")
        terminal.press("b")
        terminal.wait("no page before")
