"""What the page says before it acts is what it then does; what cannot be is said before."""

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic
from playwright.sync_api import Page, expect

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model import ids
from tests.e2e.conftest import SitePage
from tests.support.browser import dialog_of
from tests.support.cluster import LocalCluster
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

TOPICS: Final = {"test-logs": 8, "refunds": 2}


@pytest.fixture(scope="module")
def cluster(shared_cluster: LocalCluster) -> LocalCluster:
    admin = AdminClient({"bootstrap.servers": shared_cluster.bootstrap})
    made = [NewTopic(name, count, 1, config={"max.message.bytes": "20000"})
            for name, count in TOPICS.items()]  # fmt: skip
    for future in admin.create_topics(made).values():
        future.result(WAIT_S)
    return shared_cluster


@pytest.fixture(scope="module")
def server(site_page: SitePage, cluster: LocalCluster) -> PageServer:
    return site_page.show(rows(cluster, TOPICS))


@pytest.fixture
def logs(page: Page, server: PageServer) -> Page:
    """On the view of a topic."""
    page.goto(f"{server.url}/topics/test-logs")
    expect(page.locator("h1")).to_have_text("test-logs")
    return page


def rows(cluster: LocalCluster, topics: dict[str, int]) -> dict[str, list[dict[str, Any]]]:
    """What the metrics job would have written."""
    now_ms = time.time_ns() // 1_000_000
    shared = {"cluster": CLUSTER_ID, "read_ms": now_ms}
    broker = cluster.ids[0]
    at_home = {"leader": broker, "replicas": [broker], "isr": [broker], "min_isr": 1}
    return {
        "brokers": [{**shared, "broker": broker, "is_fenced": False, "interval_ms": 120_000,
                     "sampled_ms": now_ms}],
        "partitions": [
            {**shared, **at_home, "topic": topic, "partition": number,
             "adding_replicas": [], "removing_replicas": []}
            for topic, count in topics.items() for number in range(count)
        ],
    }  # fmt: skip


def retention_of(cluster: LocalCluster, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(WAIT_S)
    return str(found["retention.ms"].value)


@pytest.mark.usefixtures("logs")
def test_a_preview_is_withdrawn_when_a_field_changes_and_given_again_with_it(
    page: Page, cluster: LocalCluster
) -> None:
    page.get_by_role("button", name="Configure a topic (C)").click()
    dialog = dialog_of(page)
    confirm = dialog.get_by_role("button", name="Change")
    dialog.get_by_label("Configs").fill("retention.ms=3600000")
    dialog.get_by_role("button", name="Preview").click()
    expect(confirm).to_be_visible()

    dialog.get_by_label("Configs").fill("retention.ms=60000")
    expect(confirm).to_be_hidden()
    expect(dialog).to_contain_text("changed since")
    dialog.get_by_label("Configs").fill("retention.ms=3600000")
    expect(confirm).to_be_visible()

    dialog.get_by_role("textbox", name="Topic").click()
    page.get_by_role("option", name="refunds").click()
    expect(confirm).to_be_hidden()
    dialog.get_by_role("button", name="Preview").click()
    confirm.click()
    expect(dialog).to_contain_text("refunds is configured")
    assert retention_of(cluster, "refunds") == "3600000"
    assert retention_of(cluster, "test-logs") != "3600000"


@pytest.mark.usefixtures("logs")
def test_a_topic_that_no_figures_tell_of_is_typed(page: Page, cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("brand-new", 1, 1)])["brand-new"].result(WAIT_S)
    page.get_by_role("button", name="Configure a topic (C)").click()
    dialog = dialog_of(page)
    dialog.get_by_role("textbox", name="Topic").fill("brand-new")
    dialog.get_by_label("Configs").fill("retention.ms=3600000")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_contain_text("brand-new is configured")
    assert retention_of(cluster, "brand-new") == "3600000"


def test_a_config_is_found_explained_compared_changed_and_reset(
    page: Page, server: PageServer
) -> None:
    page.goto(f"{server.url}/topics/refunds")
    page.get_by_role("link", name="Configs (V)").click()
    line = page.locator('[data-config="segment.ms"]')
    line.get_by_text("segment.ms", exact=True).click()
    expect(line).to_contain_text("force the log to roll")
    line.get_by_role("button", name="Change").click()
    dialog = dialog_of(page)
    dialog.get_by_label("Configs").fill("segment.ms=7200000")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_contain_text("refunds is configured")
    page.keyboard.press("Escape")
    expect(line).to_contain_text("7200000 (2 h)")
    page.get_by_label("Compare with").fill("test-logs")
    expect(page.locator("table.configs tbody tr").first).to_contain_text("604800000 (7 d)")
    page.locator("main h1").click()
    page.keyboard.press("/")
    page.keyboard.type("force the log to roll")
    expect(page.locator("table.configs tbody tr")).to_have_count(1)
    at = "/topics/refunds/configs?with=test-logs&q=force+the+log+to+roll"
    expect(page).to_have_url(re.compile(f"{re.escape(at)}$"))
    line.get_by_role("button", name="Reset").click()
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_contain_text("refunds is configured")
    page.keyboard.press("Escape")
    expect(line.get_by_role("button", name="Reset")).to_have_count(0)


@pytest.mark.usefixtures("logs")
def test_a_confirmation_does_what_was_previewed_whatever_the_fields_say(
    page: Page, cluster: LocalCluster
) -> None:
    """The click may be on its way while a field changes: as if the browser had been too slow."""
    page.get_by_role("button", name="Configure a topic (C)").click()
    dialog = dialog_of(page)
    dialog.get_by_label("Configs").fill("retention.ms=7200000")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_role("button", name="Change")).to_be_visible()
    field = '{"name":"configs","place":"dialog","type":"field"}'
    page.evaluate(
        """([id, value]) => {
            const button = document.getElementById("operation-confirm");
            window.dash_clientside.set_props(JSON.parse(id), { value });
            button.click();
        }""",
        [field, "retention.ms=60000"],
    )
    expect(dialog).to_contain_text("test-logs is configured")
    assert retention_of(cluster, "test-logs") == "7200000"


def produce(page: Page, server: PageServer, given: str) -> None:
    page.goto(f"{server.url}/produce/test-logs?{given}")
    expect(page.locator("#produce-send")).to_be_enabled()


def end_of(cluster: LocalCluster) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends"})
    ends = [
        consumer.get_watermark_offsets(TopicPartition("test-logs", number), timeout=WAIT_S)[1]
        for number in range(TOPICS["test-logs"])
    ]
    consumer.close()
    return sum(ends)


def test_a_partition_that_is_not_there_is_told_before_anything_is_sent(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    before = end_of(cluster)
    produce(page, server, "partition=77")
    expect(page.locator("#produce-preview")).to_have_text("✖ test-logs has no partition 77 (0–7)")
    page.locator("#produce-send").click()
    expect(page.locator("#produce-result")).to_contain_text("no partition 77")
    assert end_of(cluster) == before


def test_a_record_that_is_too_large_is_told_before_it_is_sent(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    before = end_of(cluster)
    produce(page, server, "partition=1")
    page.get_by_label("Value", exact=True).fill("x" * 20_000)
    limits = page.locator("#produce-limits")
    expect(limits).to_contain_text(re.compile("not sent.*20,000"))
    page.locator("#produce-send").click()
    result = page.locator("#produce-result")
    expect(result).to_contain_text(re.compile("not sent.*20,000"))
    assert end_of(cluster) == before

    page.get_by_label("Value", exact=True).fill("x" * 19_900)
    expect(limits).to_contain_text(re.compile("8 partitions.*20,000"))
    expect(limits).not_to_contain_text("not sent")
    page.locator("#produce-send").click()
    expect(result).to_contain_text("test-logs-1 @ ")
    assert end_of(cluster) == before + 1
    expect(page.locator("#produce-followed tbody tr")).to_have_count(1)

    partition = page.get_by_label("Partition", exact=True)
    partition.fill("77")
    page.locator("#produce-send").click()
    expect(result).to_contain_text("has no partition 77")
    expect(page.locator("#produce-followed")).to_be_empty()


def test_keys_that_move_are_shown_before_partitions_are_added(
    page: Page, server: PageServer
) -> None:
    produce(page, server, "key=user-{n}&then=12")
    spread = page.locator("#produce-spread")
    expect(spread.locator("tbody tr")).to_have_count(12)
    expect(spread).to_contain_text("of 10,000 keys move")
    page.get_by_label("If partitions are added").fill("none")
    expect(spread).to_contain_text("whole number")
    page.get_by_label("If partitions are added").fill("")
    expect(spread.locator("tbody tr")).to_have_count(8)


@pytest.mark.usefixtures("logs")
def test_a_typed_word_is_kept_as_long_as_its_preview_says_the_same(
    page: Page, cluster: LocalCluster
) -> None:
    page.keyboard.press("D")
    dialog = dialog_of(page)
    preview, typed = dialog.get_by_role("button", name="Preview"), page.locator("#operation-typed")
    preview.click()
    typed.fill("test-lo")
    preview.click()
    expect(preview).to_be_enabled()
    expect(typed).to_have_value("test-lo")
    typed.press("Enter")
    expect(dialog).to_contain_text("not typed")
    expect(typed).to_have_value("test-lo")
    preview.click()
    expect(dialog).not_to_contain_text("not typed")
    expect(typed).to_have_value("test-lo")

    typed.fill("test-logs")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_partitions([NewPartitions("test-logs", 9)])["test-logs"].result(WAIT_S)
    typed.press("Enter")
    expect(dialog).to_contain_text("changed since its preview")
    preview.click()
    expect(dialog).to_contain_text("preview has changed")
    expect(typed).to_have_value("")
    expect(dialog).to_contain_text("9 partitions")


def test_rows_stay_marked_until_what_is_asked_of_them_is_done(
    page: Page, server: PageServer
) -> None:
    page.goto(f"{server.url}/topics")
    page.get_by_role("button", name="mark all").click()
    marks = page.locator(".marks-count")
    expect(marks).to_have_text("2 marked")
    page.keyboard.press("D")
    dialog = dialog_of(page)
    dialog.get_by_role("button", name="Preview").click()
    page.locator("#operation-typed").fill("3 topics")
    page.locator("#operation-typed").press("Enter")
    expect(dialog).to_contain_text("not typed")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(marks).to_have_text("2 marked")

    page.keyboard.press("C")
    dialog.get_by_label("Configs").fill("segment.ms=7300000")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_contain_text("2 of 2 topics done")
    expect(marks).to_be_hidden()


async def _commit(bootstrap: str, *groups: str) -> None:
    async with KafkaAdmin.to(bootstrap) as admin:
        for group in groups:
            await admin.groups.commit_offsets(group, {ids.TopicPartition("refunds", 0): 0})


@pytest.mark.usefixtures("logs")
def test_a_group_with_blanks_around_its_name_is_deleted(page: Page, cluster: LocalCluster) -> None:
    with ThreadPoolExecutor() as beside:  # Playwright has a loop in this thread
        beside.submit(asyncio.run, _commit(cluster.bootstrap, " odd ", "odd")).result()
    page.keyboard.press("G")
    dialog = dialog_of(page)
    dialog.get_by_role("textbox", name="Group").fill(" odd ")
    dialog.get_by_role("button", name="Preview").click()
    for other, is_withdrawn in (("odd", True), (" odd ", False)):
        dialog.get_by_role("textbox", name="Group").fill(other)
        expect(page.locator("#operation-typed")).to_be_visible(visible=not is_withdrawn)
    page.locator("#operation-typed").fill(" odd ")
    page.locator("#operation-typed").press("Enter")
    expect(dialog).to_contain_text("is deleted")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    left = {it.group_id for it in admin.list_consumer_groups().result(WAIT_S).valid}
    assert " odd " not in left
    assert "odd" in left
