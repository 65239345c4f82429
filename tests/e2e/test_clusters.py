"""One page for several clusters: a tab is about one of them, its addresses say which."""

import re
import time
from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, Page, expect

from partiscope.installation import Installation, Watched
from tests.support.browser import open_page
from tests.support.cluster import LocalCluster
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(180)]

TOPIC: Final = "topic-1"
IDS: Final = {"prod": CLUSTER_ID, "test": "T"}
SETTINGS: Final = """
[clusters.prod]
bootstrap = "{bootstrap}"
production = true
[clusters.test]
bootstrap = "127.0.0.1:2"
color = "teal"
read_only = true
"""


@pytest.fixture(scope="module")
def prod(shared_cluster: LocalCluster) -> LocalCluster:
    admin = AdminClient({"bootstrap.servers": shared_cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
    return shared_cluster


@pytest.fixture(scope="module")
def server(prod: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """Figures of two clusters in one store; only the production cluster can be reached."""
    folder = tmp_path_factory.mktemp("clusters")
    at_ms = time.time_ns() // 1_000_000
    now: dict[str, list[dict[str, object]]] = {}
    for name, topics in ((IDS["prod"], 3), (IDS["test"], 5)):
        sizes = SyntheticSizes(topics=topics, partitions=2, groups=1)
        for table, rows in synthetic_rows(sizes, at_ms=at_ms).items():
            now.setdefault(table, []).extend({**row, "cluster": name} for row in rows)
    now["health"] = now["health"][:1]
    StoreBuilder(folder / "store").write(now)
    watched = tuple(
        Watched(bootstrap=name, cluster_id=cluster_id) for name, cluster_id in IDS.items()
    )
    Installation(bus=prod.bootstrap, watched=watched).save(folder / "data")
    (folder / "partiscope.toml").write_text(SETTINGS.format(bootstrap=prod.bootstrap))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PARTISCOPE_CONFIG", str(folder / "partiscope.toml"))
        with PageServer(folder / "store", "--data", str(folder / "data")) as started:
            yield started


def _shows(page: Page, cluster: str, topics: int) -> None:
    rows = page.locator("#grid-topics .ag-center-cols-container .ag-row")
    expect(rows).to_have_count(topics)
    expect(page.locator("#head-cluster")).to_have_text(cluster)
    expect(page.locator("#head-cluster span")).to_have_attribute("title", f"cluster {IDS[cluster]}")


def test_a_tab_is_about_one_cluster_and_switches(browser: Browser, server: PageServer) -> None:
    errors: list[str] = []
    page = open_page(browser, f"{server.url}/topics", errors)
    _shows(page, "prod", 3)
    expect(page, "of the first one").to_have_url(re.compile(r"/topics\?cluster=prod$"))
    band = page.locator(".cluster-band")
    expect(band).to_have_text("PRODUCTION prod")
    assert band.evaluate("it => getComputedStyle(it).backgroundColor") == "rgb(224, 49, 49)"
    page.locator("#nav-brokers").click()
    expect(page.locator("h1")).to_have_text("Brokers")
    expect(page, "links carry it on").to_have_url(re.compile(r"/brokers\?cluster=prod$"))
    page.go_back()
    _shows(page, "prod", 3)

    other = open_page(browser, f"{server.url}/topics?cluster=test", errors)
    _shows(other, "test", 5)
    expect(other.locator(".cluster-band")).to_have_text("")
    expect(other.get_by_text("read-only", exact=True)).to_be_visible()
    _shows(page, "prod", 3)

    page.keyboard.press("c")
    page.keyboard.press("Enter")
    page.wait_for_url("**/topics?cluster=test")
    _shows(page, "test", 5)
    page.keyboard.press("g")
    page.keyboard.press("c")
    rows = page.locator("#all-clusters tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("PRODUCTION")
    expect(page.locator('[data-key="test"] td').nth(6)).to_have_text("5")
    page.get_by_role("link", name="prod", exact=True).click()
    page.wait_for_url("**/overview?cluster=prod")
    expect(page.locator("#head-cluster")).to_have_text("prod")
    page.goto(f"{server.url}/topics?cluster=test")
    assert page.request.get(f"{server.url}/overview?cluster=nowhere").status == 404
    exported = page.request.get(f"{server.url}/export/topics.csv?cluster=prod").text()
    assert len(exported.strip().splitlines()) == 1 + 3
    other.context.close()
    page.context.close()
    assert errors == []


def test_production_is_changed_by_its_name_alone(
    browser: Browser, server: PageServer, prod: LocalCluster
) -> None:
    errors: list[str] = []
    page = open_page(browser, f"{server.url}/topics?cluster=prod", errors)
    _shows(page, "prod", 3)
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("fresh")
    dialog.get_by_role("button", name="Preview").click()
    page.locator("#operation-confirm").click()
    expect(dialog).to_contain_text("type prod to confirm")
    topics = AdminClient({"bootstrap.servers": prod.bootstrap}).list_topics(timeout=WAIT_S).topics
    assert "fresh" not in topics

    page.goto(f"{server.url}/produce/{TOPIC}?cluster=prod")
    result = page.locator("#produce-done")
    page.locator("#produce-send").click()
    expect(result).to_contain_text("type prod to confirm")
    assert _end_of(prod) == 0
    page.get_by_label("Type prod to send there").fill("prod")
    page.locator("#produce-send").click()
    expect(page.locator("#produce-result")).to_contain_text(f"{TOPIC}-0 @ 0")
    assert _end_of(prod) == 1
    page.context.close()
    assert errors == []


def test_a_word_that_is_typed_stays_while_its_plan_is_reviewed_anew(
    browser: Browser, server: PageServer
) -> None:
    errors: list[str] = []
    fields = f"topics={TOPIC}&partition=0&replicas=103,102&throttle=1MiB"
    page = open_page(browser, f"{server.url}/plan?{fields}&cluster=prod", errors)
    page.locator("#plan-button").click()
    word = page.locator("#plan-typed")
    expect(word).to_be_visible()
    expect(page.locator("#plan-last")).to_have_class("actions")
    word.evaluate(
        """it => {
            const last = document.getElementById("plan-last");
            window.typedInto = it;
            new MutationObserver(() => { window.waited = true; }).observe(
                last, { attributes: true, attributeFilter: ["class"] });
        }"""
    )
    word.fill("pr")
    throttle = {"name": "throttle", "place": "plan", "type": "field"}
    page.evaluate("id => window.dash_clientside.set_props(id, { value: '1024KiB' })", throttle)
    word.press("o")
    page.wait_for_function("window.waited")
    expect(page.locator("#plan-last")).to_have_class("actions")
    assert page.evaluate("window.typedInto.isConnected"), "it was replaced while somebody typed"
    expect(word).to_have_value("pro")
    page.context.close()
    assert errors == []


def _end_of(cluster: LocalCluster) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "nobody"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=WAIT_S)[1])
    finally:
        consumer.close()
