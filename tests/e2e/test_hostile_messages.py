"""Fifty messages of a hostile producer in a real Chromium: the page shows each, says what it is,
and goes on."""

import time
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.hostile_messages import SCHEMAS, hostile, write_hostile
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import PageServer
from tests.support.registry_of_texts import RegistryOfTexts
from tests.support.store_builder import StoreBuilder

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

TOPIC: Final = "hostile"


@pytest.fixture(scope="module")
def server(
    shared_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PageServer]:
    address = shared_cluster.bootstrap
    write_hostile(address, TOPIC)
    store = StoreBuilder(tmp_path_factory.mktemp("hostile") / "store")
    partition = {"cluster": CLUSTER_ID, "read_ms": time.time_ns() // 1_000_000, "leader": 1,
                 "replicas": [1], "isr": [1], "min_isr": 1}  # fmt: skip
    store.write({"partitions": [{**partition, "topic": TOPIC, "partition": 0}]})
    with RegistryOfTexts(SCHEMAS) as registry, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARTISCOPE_SCHEMA_REGISTRY__URL", registry.url)
        with PageServer(store.folder, "--bootstrap", address, "--bus", address) as server:
            yield server


def test_the_page_shows_each_says_what_it_is_and_goes_on(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/browse/{TOPIC}?since=earliest")
    rows = page.locator(".message")
    expect(rows).to_have_count(50)
    texts = rows.evaluate_all("rows => rows.map(row => row.textContent)")
    for number, (text, (value, told)) in enumerate(zip(texts, hostile(), strict=True)):
        with case(number, (value or b"")[:40]):
            assert told in text
    for number in range(50):
        rows.nth(number).locator("summary").first.click()
        expect(rows.nth(number)).to_have_attribute("open", "")
    page.goto(f"{server.url}/browse/{TOPIC}?since=earliest&q=evil")
    expect(rows).to_have_count(3)
