"""Operations in the page's dialog: on groups of any name, once however often confirmed."""

import re
import time
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Page, expect

from tests.e2e.conftest import SitePage
from tests.support.browser import dialog_of
from tests.support.cluster import LocalCluster
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

GROUPS: Final = ("team/app", "a[/b]c?x#y")
COMMITTED: Final = 4
END: Final = 10


@pytest.fixture(scope="module")
def cluster(shared_cluster: LocalCluster) -> LocalCluster:
    where: dict[str, str | int | float | bool] = {"bootstrap.servers": shared_cluster.bootstrap}
    admin = AdminClient(where)
    admin.create_topics([NewTopic("sales", 1, 1)])["sales"].result(WAIT_S)
    producer = Producer(where)
    for number in range(END):
        producer.produce("sales", str(number), partition=0)
    producer.flush(WAIT_S)
    for group in GROUPS:
        consumer = Consumer({**where, "group.id": group})
        at = TopicPartition("sales", 0, COMMITTED)
        consumer.commit(offsets=[at], asynchronous=False)
        consumer.close()
    return shared_cluster


@pytest.fixture(scope="module")
def server(site_page: SitePage, cluster: LocalCluster) -> PageServer:
    return site_page.show(rows(cluster))


def rows(cluster: LocalCluster) -> dict[str, list[dict[str, Any]]]:
    """What the metrics job would have written."""
    now_ms = time.time_ns() // 1_000_000
    shared = {"cluster": CLUSTER_ID, "read_ms": now_ms}
    broker = cluster.ids[0]
    partition = {**shared, "topic": "sales", "partition": 0}
    stuck_ms = now_ms - 900_000
    return {
        "brokers": [{**shared, "broker": broker, "is_fenced": False, "interval_ms": 120_000,
                     "sampled_ms": now_ms}],
        "partitions": [{**partition, "leader": broker, "replicas": [broker], "isr": [broker],
                        "adding_replicas": [], "removing_replicas": [], "min_isr": 1,
                        "log_start_offset": 0, "high_watermark": END}],
        "commits": [
            {**partition, "topic": topic, "group_id": group,
             "committed_offset": at, "end_offset": END,
             "lag": END - at, "commit_ms": stuck_ms, "consumed_records_per_s": 0.0,
             "lag_records_per_s": 0.0, "stuck_since_ms": stuck_ms, "end_read_ms": now_ms,
             "status": "STOP"}
            for group, topic, at in (*((it, "sales", COMMITTED) for it in GROUPS),
                                     (GROUPS[0], "payments", COMMITTED + 1))
        ],
        "groups": [
            {**shared, "group_id": group, "state": "Empty", "protocol": "", "members": 0,
             "status": "STOP", "lag_sum": END - COMMITTED}
            for group in GROUPS
        ],
    }  # fmt: skip


def committed(cluster: LocalCluster, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition("sales", 0)], timeout=WAIT_S)
    consumer.close()
    return int(found.offset)


def configure(page: Page, server: PageServer, configs: str) -> None:
    """Up to the button that confirms."""
    page.goto(f"{server.url}/topics/sales")
    page.get_by_role("button", name="Configure a topic (C)").click()
    dialog = dialog_of(page)
    expect(dialog.get_by_label("Configs")).to_be_focused()
    dialog.get_by_label("Configs").fill(configs)
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_role("button", name="Change")).to_be_visible()


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_any_name_is_opened_reset_once_and_opened_again(
    page: Page, server: PageServer, cluster: LocalCluster, group: str
) -> None:
    page.goto(f"{server.url}/groups")
    page.locator(".ag-row", has_text=group).first.click()
    expect(page.locator("h1")).to_have_text(group)
    page.keyboard.press("Shift+O")
    dialog = dialog_of(page)
    expect(dialog.get_by_role("textbox", name="Group")).to_have_value(group)
    dialog.get_by_role("textbox", name="Topic").click()
    page.get_by_role("option", name="sales").click()
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("sales-0: 4 → 10")
    word = dialog.get_by_label(f"Type {group} to confirm")
    expect(word).to_be_focused()
    page.keyboard.type("another")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("not typed")
    expect(word).to_have_value("another")
    expect(word).to_be_focused()
    word.fill(group)
    dialog.get_by_role("button", name="Reset a group's offsets").dblclick()
    expect(dialog).to_contain_text(f"{group} is reset on 1 partition")
    dialog.get_by_text("open →").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("h1")).to_have_text(group)
    assert committed(cluster, group) == END
    page.goto(f"{server.url}/journal")
    line = page.locator("#journal-table tbody tr", has_text=f"reset {group} on sales to latest")
    expect(line).to_have_count(1)
    expect(line).to_contain_text("sales-0: 4 → 10")


@pytest.mark.parametrize("key", ["N", "Y", "B", "W"])
def test_a_key_on_the_page_of_a_broker_opens_its_form_with_that_broker(
    page: Page, server: PageServer, cluster: LocalCluster, key: str
) -> None:
    broker = cluster.ids[0]
    page.goto(f"{server.url}/brokers/{broker}")
    expect(page.locator("h1")).to_contain_text(str(broker))
    page.keyboard.press(f"Shift+{key}")
    field = dialog_of(page).get_by_label(re.compile(r"^Broker( \*)?$")).filter(visible=True)
    expect(field.first).to_have_value(re.compile(rf"^{broker}\b"))


def test_a_group_shows_who_reads_and_what_is_to_blame(
    page: Page, site_page: SitePage, cluster: LocalCluster
) -> None:
    server = site_page.show(rows(cluster))  # those of the first test may be too old by now
    group = GROUPS[0]
    member = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group,
                       "client.id": "reader", "client.rack": "b"})  # fmt: skip
    try:
        member.subscribe(["sales"])
        wait_until(lambda: member.poll(0.1) is not None or bool(member.assignment()), "assigned")
        page.goto(f"{server.url}/groups/team%2Fapp")
        blame = page.locator("#group-tiles .finding")
        expect(blame).to_contain_text("sales-0 is to blame: STOP, lag 6")
        row = page.locator("#group-facts tbody tr")
        for words in ("reader", "127.0.0.1", "b", "sales 0", "6", "sales-0"):
            expect(row.get_by_text(words, exact=True).first).to_be_visible()
        page.keyboard.press("Shift+O")
        dialog = dialog_of(page)
        dialog.get_by_role("textbox", name="Topic").fill("sales")
        dialog.get_by_label(re.compile(r"^To\b")).fill("10m")
        dialog.get_by_role("button", name="Preview").click()
        expect(dialog).to_contain_text("1 member")
        expect(dialog.get_by_role("button", name="Reset a group's offsets")).to_have_count(0)
    finally:
        member.close()


def test_keys_and_buttons_of_a_group_are_about_the_topic_of_its_selected_row(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    page.goto(f"{server.url}/groups/team%2Fapp")
    row = page.locator(".ag-center-cols-container .ag-row-selected")
    expect(row).to_have_attribute("row-id", re.compile("sales-0$"))
    topic = dialog_of(page).get_by_role("textbox", name="Topic")
    page.keyboard.press("Shift+O")
    expect(topic).to_have_value("sales")
    page.keyboard.press("Escape")
    expect(dialog_of(page)).to_be_hidden()

    page.locator('.ag-center-cols-container .ag-row[row-id$="payments-0"]').click()
    page.get_by_role("button", name="(O)").click()

    expect(topic).to_have_value("payments")
    page.keyboard.press("Escape")
    expect(dialog_of(page)).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page.locator("#count-partitions")).to_contain_text("row")
    page.keyboard.press("Shift+D")
    expect(topic).to_have_value("")


def test_a_topic_that_is_created_by_a_double_click_is_not_refused(
    page: Page, server: PageServer
) -> None:
    page.goto(f"{server.url}/topics")
    expect(page.locator("h1")).to_have_text("Topics")
    page.keyboard.press("n")
    dialog = dialog_of(page)
    expect(dialog.get_by_label("Name")).to_be_focused()
    dialog.get_by_label("Name").fill("twice")
    dialog.get_by_label("Partitions").fill("0")
    dialog.get_by_role("button", name="Preview").dblclick()
    expect(dialog).to_contain_text("Check this field: Partitions")
    dialog.get_by_label("Partitions").fill("1")
    dialog.get_by_role("button", name="Preview").dblclick()
    dialog.get_by_role("button", name="Create").dblclick()
    expect(dialog).to_contain_text("twice is created: 1 partition")
    page.goto(f"{server.url}/journal")
    line = page.locator("#journal-table tbody tr", has_text="create topic twice")
    expect(line).to_have_count(1)


def test_a_preview_that_another_client_makes_stale_is_refused(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    configure(page, server, "retention.ms=3600000")
    other = ConfigEntry("retention.ms", "7", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "sales", incremental_configs=[other])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    dialog = dialog_of(page)
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_contain_text("changed since its preview")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("7 (7.0 ms) → 3600000 (1 h)")


def test_back_and_a_reload_leave_nothing_to_confirm(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/topics")
    configure(page, server, "retention.ms=60000")
    page.reload()
    expect(page.locator("h1")).to_have_text("sales")
    expect(dialog_of(page)).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Topics")
    page.keyboard.press("n")
    expect(dialog_of(page)).to_be_visible()
    page.go_back()
    expect(page.locator("h1")).to_have_text("sales")
    expect(dialog_of(page)).to_be_hidden()


def test_marked_groups_are_deleted_by_one_confirmation(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    """Runs last: the groups are gone then. One was deleted meanwhile: the other is told all the
    same."""
    page.goto(f"{server.url}/groups")
    page.get_by_label(f"mark {GROUPS[0]}").check()
    expect(page.locator(".marks-count")).to_have_text("1 marked")
    page.get_by_role("button", name="mark all").click()
    expect(page.locator(".marks-count")).to_have_text(f"{len(GROUPS)} marked")
    expect(page.get_by_label(f"mark {GROUPS[1]}")).to_be_checked()
    page.keyboard.press("Shift+G")
    dialog = dialog_of(page)
    expect(dialog).to_contain_text("2 groups: ")
    dialog.get_by_role("button", name="Preview").click()
    for group in GROUPS:
        expect(dialog.locator(".lines")).to_contain_text(group)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_consumer_groups([GROUPS[0]])[GROUPS[0]].result(WAIT_S)
    dialog.get_by_label("Type 2 groups to confirm").fill("2 groups")
    dialog.get_by_role("button", name="Delete a group").click()
    expect(dialog).to_contain_text("1 of 2 groups done")
    expect(dialog).to_contain_text(f"{GROUPS[0]}: ✖ not done")
    expect(dialog).to_contain_text(f"{GROUPS[1]}: {GROUPS[1]} is deleted")
    expect(page.locator(".marks-count")).to_have_text("")
    left = {it.group_id for it in admin.list_consumer_groups().result(WAIT_S).valid}
    assert not left.intersection(GROUPS)
