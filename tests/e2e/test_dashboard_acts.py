"""The page acts on a real cluster of ours: it shows a key's partition, produces, and reassigns."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from playwright.sync_api import Browser, Page, expect

from dashboard.ids import MOVE_ACTIONS, move_button
from planner.reassignment_json import parse_reassignment
from tests.contract.operations_site import Site
from tests.e2e.conftest import SitePage
from tests.support.browser import DESKTOP, dialog_of
from tests.support.cluster import LocalCluster
from tests.support.fitting import WIDTHS, lasting_faults
from tests.support.ledger import log_end
from tests.support.node_cluster import CLUSTER_ID
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

TOPIC: Final = "user-activity"
PARTITIONS: Final = 3
FROM_TOP: Final = "row => Math.round(row.getBoundingClientRect().top + window.scrollY)"


@pytest.fixture(scope="module")
def cluster(shared_cluster: LocalCluster) -> LocalCluster:
    admin = AdminClient({"bootstrap.servers": shared_cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 2)])[TOPIC].result(WAIT_S)
    return shared_cluster


@pytest.fixture(scope="module")
def store(site_page: SitePage) -> StoreBuilder:
    return site_page.store


@pytest.fixture(scope="module")
def server(site_page: SitePage, cluster: LocalCluster) -> PageServer:
    return site_page.show(store_rows(cluster))


@pytest.fixture(scope="module")
def watching(site_page: SitePage, site: Site) -> Iterator[PageServer]:
    """A page of the same that may only read."""
    where = ("--bootstrap", site.cluster.bootstrap, "--bus", site.cli.bus)
    view = f"produce/{TOPIC}"
    with PageServer(site_page.store.folder, view, *where, "--read-only") as watching:
        assert f"ready {watching.url}/{view}" in watching.log.read_text()
        yield watching


def store_rows(cluster: LocalCluster) -> dict[str, list[dict[str, Any]]]:
    """What the metrics job would have written of this cluster."""
    now_ms = time.time_ns() // 1_000_000
    shared = {"cluster": CLUSTER_ID, "read_ms": now_ms}
    topic = cluster.wait_for_topic(cluster.ids[0], TOPIC)
    return {
        "brokers": [
            {**shared, "broker": broker, "rack": f"rack-{broker}", "is_fenced": False,
             "interval_ms": 120_000, "sampled_ms": now_ms}
            for broker in cluster.ids
        ],
        "partitions": [
            {**shared, "topic": TOPIC, "partition": int(found.partition_index),
             "leader": int(found.leader_id), "replicas": [int(n) for n in found.replica_nodes],
             "isr": [int(n) for n in found.isr_nodes], "adding_replicas": [],
             "removing_replicas": [], "min_isr": 1}
            for found in topic.partitions
        ],
    }  # fmt: skip


def replicas_of(cluster: LocalCluster, partition: int) -> list[int]:
    topic = cluster.wait_for_topic(cluster.ids[0], TOPIC)
    (found,) = (item for item in topic.partitions if item.partition_index == partition)
    return [int(node) for node in found.replica_nodes]


def record_at(cluster: LocalCluster, partition: int, offset: int) -> tuple[bytes, bytes]:
    """Key and value, as confluent-kafka reads them."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition(TOPIC, partition, offset)])
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            consumer.close()
            return message.key() or b"", message.value() or b""
    raise AssertionError("no record came")


@pytest.mark.parametrize(
    ("key", "murmur2", "crc32"), [("User123", 1, 0), ("User456", 0, 2), ("User789", 0, 2)]
)
def test_a_keys_partition_is_shown_before_and_found_after(
    page: Page, server: PageServer, cluster: LocalCluster, key: str, murmur2: int, crc32: int
) -> None:
    page.goto(f"{server.url}/produce/{TOPIC}")
    page.get_by_label("Key", exact=True).fill(key)
    preview = page.locator("#produce-preview")
    expect(preview).to_contain_text(f"murmur2 → {murmur2} (leader ")
    expect(preview).to_contain_text(f"crc32 → {crc32}")

    page.get_by_label("Value", exact=True).fill(f"from the page with {key}")
    page.locator("#produce-send").click()

    result = page.locator("#produce-result")
    expect(result).to_contain_text(f"{TOPIC}-{murmur2} @ ")
    words = result.inner_text()
    offset = int(words.split(" @ ")[1].split(",")[0])
    read = record_at(cluster, murmur2, offset)
    assert read == (key.encode(), f"from the page with {key}".encode())


TYPED_AND_CLICKED: Final = """(typed) => {
    for (const [label, value] of typed) {
        const field = [...document.querySelectorAll("main label")]
            .find((it) => it.firstChild.textContent === label).control;
        const kind = field instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
        Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(field, value);
        field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
    document.getElementById("produce-send").click();
}"""
"""Types into fields and clicks in one turn of the browser, as a busy one may take them."""


def test_a_click_takes_the_last_letters_that_were_typed(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    page.goto(f"{server.url}/produce/{TOPIC}?key=early&value=early&partition=0")
    expect(page.locator("#produce-preview")).to_contain_text("explicit partition")
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
    end = log_end(reader, TopicPartition(TOPIC, 2))
    reader.close()

    late = {"Key": "late key", "Value": "late value", "Partition": "2"}
    page.evaluate(TYPED_AND_CLICKED, [*late.items()])

    expect(page.locator("#produce-result")).to_contain_text(f"{TOPIC}-2 @ {end}")
    assert record_at(cluster, 2, end) == (b"late key", b"late value")


def test_a_message_is_found_by_its_offset_and_by_what_it_holds(
    page: Page, server: PageServer
) -> None:
    page.goto(f"{server.url}/browse/{TOPIC}?partition=1&offset=0")
    first = page.locator(".message").first
    expect(first).to_contain_text("1 @ 0")
    expect(first).to_contain_text("from the page with User123")
    first.locator("summary").click()
    expect(first).to_contain_text("CRC valid")
    page.get_by_label("Partition").fill("")
    page.get_by_role("textbox", name="Start").click()
    page.get_by_role("option", name="from the start of the log").click()
    page.get_by_label("Contains").fill("with user456")
    page.get_by_label("Contains").press("Enter")

    expect(page.locator(".message")).to_have_count(1)
    expect(page.locator(".message")).to_contain_text("0 @ ")


def test_a_topic_is_made_and_deleted_with_what_it_means_shown_before(
    page: Page, server: PageServer, cluster: LocalCluster, store: StoreBuilder
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    page.goto(f"{server.url}/topics")
    expect(page.locator("h1")).to_have_text("Topics")
    page.keyboard.press("n")
    dialog = dialog_of(page)
    dialog.get_by_label("Name").fill("made-here")
    dialog.get_by_label("Partitions").fill("3")
    dialog.get_by_label("Replication factor").fill("1")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator(".lines li", has_text="leading")).to_have_count(3)
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_text("open →")).to_be_visible()
    expect(dialog).to_contain_text("made-here is created")
    assert len(admin.list_topics(timeout=WAIT_S).topics["made-here"].partitions) == 3
    dialog.get_by_text("open →").click()
    expect(page.locator("h1")).to_have_text("made-here")
    expect(page.locator("#missing")).to_contain_text("made-here")
    rows = store_rows(cluster)
    made = {**rows["partitions"][0], "topic": "made-here", "partition": 0}
    store.write({**rows, "partitions": [*rows["partitions"], made]})

    page.get_by_role("button", name="Add partitions (a)").click()
    expect(dialog.get_by_role("textbox", name="Topic")).to_have_value("made-here")
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Delete a topic (D)").click()
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("3 partitions")
    dialog.get_by_label("Type made-here to confirm").fill("made-here")
    dialog.get_by_role("button", name="Delete a topic").click()
    expect(dialog).to_contain_text("made-here is deleted")
    store.write(rows)
    expect(page.locator("#missing")).to_contain_text("no topic made-here")
    page.goto(f"{server.url}/journal")
    expect(page.locator("#journal-table")).to_contain_text("delete topic made-here")
    expect(page.locator("#journal-table")).to_contain_text("create topic made-here")


def records_in(cluster: LocalCluster) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
    ends = [
        consumer.get_watermark_offsets(TopicPartition(TOPIC, number), timeout=WAIT_S)[1]
        for number in range(PARTITIONS)
    ]
    consumer.close()
    return sum(ends)


def test_many_records_show_progress_and_stop_at_once(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    before = records_in(cluster)
    page.goto(f"{server.url}/produce/{TOPIC}")
    page.locator("summary").click()
    page.get_by_label("Count", exact=True).fill("100000")
    page.get_by_label("Per second").fill("200")
    page.locator("#produce-send").click()
    result = page.locator("#produce-result")
    expect(result).to_contain_text("of 100,000 acknowledged")
    expect(result).to_contain_text("p95")

    page.locator("#produce-stop").click()

    expect(page.locator("#produce-send")).to_be_enabled()
    acknowledged = int(result.inner_text().split(" of ")[0].split()[-1].replace(",", ""))
    assert acknowledged == records_in(cluster) - before


def test_a_send_goes_on_when_its_page_is_left_and_any_page_stops_it(
    page: Page, browser: Browser, server: PageServer, cluster: LocalCluster
) -> None:
    before = records_in(cluster)
    page.goto(f"{server.url}/produce/{TOPIC}?count=100000&rate=200")
    result = page.locator("#produce-result")
    expect(result).to_contain_text("Nothing sent yet")
    page.locator("#produce-send").click()
    expect(result).to_contain_text("of 100,000 acknowledged")
    page.locator("a.brand").click()
    page.wait_for_url("**/overview")
    page.go_back()
    expect(result).to_contain_text("sending:")
    page.reload()
    expect(result).to_contain_text("sending:")
    expect(page.locator("#produce-send")).to_be_disabled()
    other = browser.new_page()
    other.goto(f"{server.url}/produce/{TOPIC}")
    expect(other.locator("#produce-result")).to_contain_text("sending:")

    other.locator("#produce-stop").click()

    for each in (page, other):
        shown = each.locator("#produce-result")
        expect(shown).to_contain_text("stopped:")
        expect(shown).not_to_contain_text("✔")
        expect(each.locator("#produce-send")).to_be_enabled()
        acknowledged = int(shown.inner_text().split(" of ")[0].split()[-1].replace(",", ""))
        assert acknowledged == records_in(cluster) - before
    other.context.close()
    page.reload()
    expect(page.locator("#produce-others")).to_contain_text("stopped:")


def test_a_partition_is_moved_with_now_and_planned_side_by_side(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    before = replicas_of(cluster, 2)
    target = [broker for broker in cluster.ids if broker not in before] + before[:1]
    page.goto(f"{server.url}/plan?topics={TOPIC}&partition=2")
    page.get_by_label("To brokers").fill(", ".join(map(str, target)))
    page.locator("#plan-button").click()

    expect(page.locator("#plan-now .barlayer")).to_be_visible()
    expect(page.locator("#plan-after .barlayer")).to_be_visible()
    for width, height in ((390, 844), (1440, 900)):
        page.set_viewport_size({"width": width, "height": height})
        for place in ("0", "document.body.scrollHeight"):
            page.evaluate(f"window.scrollTo(0, {place})")
            expect(page.locator("#plan-confirm")).to_be_in_viewport()
    review = page.locator("#plan-review")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert lasting_faults(page, names=cluster.bootstrap) == [], width
    page.set_viewport_size(DESKTOP)
    expect(review).to_contain_text(f"{TOPIC}-2")
    for words, replicas in (("Plan as Kafka's JSON", target), ("Rollback ↓", before)):
        with page.expect_download() as found:
            review.get_by_text(words).click()
        targets = parse_reassignment(Path(found.value.path()).read_text())
        assert [list(ids) for ids in targets.values()] == [replicas]
    assert replicas_of(cluster, 2) == before, "a preview changes nothing"
    for label, value in (("Spread", "20s"), ("Throttle", "20MiB"), ("Reason", "a test")):
        page.get_by_label(label, exact=True).fill(value)
    expect(review).to_contain_text("20.0 MiB/s")
    page.locator("#plan-confirm").click()
    question, step = page.locator("#plan-question"), page.locator("#plan-step [aria-current=step]")
    expect(question).to_contain_text("at most 20.0 MiB/s")
    expect(step).to_have_text("Confirm")
    page.locator("#plan-leave").click()
    expect(question).to_be_empty()
    expect(step).to_have_text("Review and pre-flight")
    page.locator("#plan-confirm").click()
    page.locator("#plan-yes").click()

    page.wait_for_url("**/moves/mv-*")
    expect(page.locator("#move-body")).to_contain_text("✔ done")
    expect(page.locator("#move-body")).to_contain_text("reason: a test")
    assert replicas_of(cluster, 2) == target
    page.get_by_role("link", name="Report: estimate, waves, lag").click()
    page.wait_for_url("**/moves/mv-*/report")
    report = page.url
    for words in ("Estimate and truth", "wave 1 of 1: 1 partition", "Lag of groups", "a test"):
        expect(page.locator("#report-body")).to_contain_text(words)
    with page.expect_download() as found:
        page.get_by_text("Save as HTML").click()
    assert "<h2>Estimate and truth</h2>" in Path(found.value.path()).read_text()
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.locator("#journal-table tbody tr", has_text="a test").locator("a").first.click()
    page.wait_for_url(report)
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.locator("#moves-table tbody tr").first).to_contain_text("✔ done")


def test_a_move_is_rolled_back_from_its_page(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    after = replicas_of(cluster, 2)
    page.goto(f"{server.url}/moves")
    page.locator("#moves-table tbody a").first.click()
    expect(page.locator("#move-rollback")).to_be_enabled()

    moved = page.url
    page.keyboard.press("u")

    expect(page.locator("#move-confirm")).to_be_focused()
    question = page.locator("#move-question")
    expect(question).to_contain_text(re.compile("1 partition .* 1 replica"))
    assert replicas_of(cluster, 2) == after, "a question changes nothing"
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/moves/mv-" in url and url != moved)
    wait_until(lambda: replicas_of(cluster, 2) != after, "it is rolled back")


def test_without_the_right_the_controls_of_a_move_are_greyed_with_the_reason(
    page: Page, server: PageServer, watching: PageServer
) -> None:
    page.goto(f"{server.url}/moves")
    page.locator("#moves-table tbody a").first.click()
    expect(page.locator("#move-rollback")).to_be_enabled()
    path = page.url.removeprefix(server.url)

    page.goto(f"{watching.url}{path}")
    expect(page.locator("#move-body .lacking")).to_contain_text("read-only")
    for action in MOVE_ACTIONS:
        expect(page.locator(f"#{move_button(action)}")).to_be_disabled()
    page.keyboard.press("u")
    page.keyboard.press("?")
    expect(dialog_of(page)).to_be_visible()
    expect(page.locator("#move-question")).to_be_empty()


def test_who_has_gone_elsewhere_is_not_fetched_to_the_move_that_begins(
    page: Page, server: PageServer, site: Site
) -> None:
    page.goto(f"{server.url}/moves")
    page.locator("#moves-table tbody a").first.click()
    expect(page.locator("#move-rollback")).to_be_enabled()
    page.keyboard.press("u")
    expect(page.locator("#move-confirm")).to_be_focused()
    before = len(site.cli.moves())

    page.evaluate("document.getElementById('move-confirm').click()")
    page.keyboard.press("g")
    page.keyboard.press("o")

    overview = f"{server.url}/overview"
    expect(page).to_have_url(overview)
    wait_until(
        lambda: len(site.cli.moves()) > before and site.cli.moves()[0]["outcome"] == "done",
        "it began, and is done",
    )
    page.keyboard.press("?")
    expect(dialog_of(page)).to_be_visible()
    expect(page).to_have_url(overview)


def test_a_question_that_comes_late_gets_the_keys_and_no_other_does(
    page: Page, server: PageServer
) -> None:
    """One about a cancel stands there already, and the late one of another move; on a production
    cluster a word is to be typed."""
    page.goto(f"{server.url}/moves")
    page.locator("#moves-table tbody a").first.click()
    expect(page.locator("#move-rollback")).to_be_visible()
    page.evaluate(
        """() => {
          document.getElementById("move-rollback").remove();
          const room = document.getElementById("move-question");
          const name = window.location.pathname.split("/")[2];
          const asks = (action, move) => `<div data-asks="move-${action}" data-move="${move}">`;
          const yes = '<button id="move-confirm">Yes</button></div>';
          room.innerHTML = asks("cancel", name) + yes + asks("rollback", "mv-other") + yes;
          window.askLate = () => {
            room.innerHTML = asks("rollback", name) + '<input id="move-typed">' + yes;
          };
        }"""
    )
    page.keyboard.press("u")
    page.evaluate("() => new Promise((done) => window.requestAnimationFrame(done))")
    for button in page.locator("#move-confirm").all():
        expect(button).not_to_be_focused()
    page.evaluate("window.askLate()")
    expect(page.locator("#move-typed")).to_be_focused()
    page.keyboard.type("xx")
    expect(page.locator("#move-typed")).to_have_value("xx")


def test_a_wrong_target_is_refused_before_anything_is_sent(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    before = replicas_of(cluster, 0)
    page.goto(f"{server.url}/plan?topics={TOPIC}&partition=0")
    page.get_by_label("To brokers").fill("101, 999")
    page.locator("#plan-button").click()

    expect(page.locator("#plan-result")).to_contain_text("broker 999 does not exist")
    expect(page.locator("#plan-confirm")).to_be_hidden()
    assert replicas_of(cluster, 0) == before


def test_a_plan_is_edited_on_the_page_and_judged_at_once(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    turned = [
        f"{TOPIC}-{partition}: {','.join(map(str, replicas_of(cluster, partition)[::-1]))}"
        for partition in (0, 1)
    ]
    page.goto(f"{server.url}/plan?task=by_hand")
    page.get_by_role("textbox", name="By hand", exact=True).fill("\n".join(turned))
    page.locator("#plan-button").click()
    review, edit = page.locator("#plan-review"), page.locator("#plan-entries")
    expect(review).to_contain_text(f"{TOPIC}-1")
    expect(review).to_contain_text("leads")

    edit.fill(f"{TOPIC}-1: 101,999")
    expect(page.locator("#plan-edit")).to_contain_text("broker 999 does not exist")
    page.locator("#plan-confirm").click()
    expect(page.locator("#plan-outcome")).to_contain_text("not checked yet")
    edit.fill(f"{TOPIC}-1: now")

    expect(page.locator("#plan-confirm")).to_have_text("Move 1 partition")
    expect(review).not_to_contain_text(f"{TOPIC}-1")
    expect(review).to_contain_text(f"{TOPIC}-0")

    edit.fill(f"{TOPIC}-0: now")
    expect(review).not_to_contain_text(f"{TOPIC}-0")
    expect(review).to_contain_text(f"{TOPIC}-1")
    edit.fill("")
    expect(page.locator("#plan-confirm")).to_have_text("Move 2 partitions")


def test_a_plan_is_there_after_escape_back_forward_and_reload(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    first, second = replicas_of(cluster, 0)
    other = next(broker for broker in cluster.ids if broker not in (first, second))
    page.goto(f"{server.url}/plan?task=by_hand")
    page.get_by_role("textbox", name="By hand", exact=True).fill(f"{TOPIC}-0: {second},{first}")
    page.locator("#plan-button").click()
    entries, review = page.locator("#plan-entries"), page.locator("#plan-review")
    row = page.locator(f".replica-board tr[data-partition='{TOPIC}-0']")
    expect(row).to_have_attribute("data-replicas", f"{second},{first}")
    edit = f"{TOPIC}-0: {second},{other}"
    entries.fill(edit)
    expect(row).to_have_attribute("data-replicas", f"{second},{other}")
    for label, value in (("Throttle", "20MiB"), ("Reason", "kept for later")):
        page.get_by_label(label, exact=True).fill(value)
    expect(review).to_contain_text("20.0 MiB/s")

    def is_all_there() -> None:
        expect(row).to_have_attribute("data-replicas", f"{second},{other}")
        expect(review).to_contain_text("20.0 MiB/s")
        expect(entries).to_have_value(edit)
        expect(page.get_by_label("Reason", exact=True)).to_have_value("kept for later")
        expect(page.get_by_role("textbox", name="By hand")).to_have_value(
            f"{TOPIC}-0: {second},{first}"
        )
        expect(page.locator("#plan-confirm")).to_have_text("Move 1 partition")

    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    is_all_there()
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Topics")
    page.go_back()
    is_all_there()
    page.go_back()
    page.go_forward()
    is_all_there()
    page.reload()
    is_all_there()
    page.locator("#plan-entries").fill("")
    expect(row).to_have_attribute("data-replicas", f"{second},{first}")
    page.reload()
    expect(row).to_have_attribute("data-replicas", f"{second},{first}")
    expect(entries).to_have_value("")
    assert replicas_of(cluster, 0) == [first, second]


def test_a_plan_that_is_no_longer_kept_is_planned_again_with_its_fields(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    turned = replicas_of(cluster, 1)[::-1]
    fields = f"topics={TOPIC}&partition=1&replicas={','.join(map(str, turned))}"
    page.goto(f"{server.url}/plan?{fields}&made=0123456789ab")
    expect(page.locator("#plan-result")).to_contain_text("this plan is gone")
    page.get_by_role("button", name="Plan again").click()
    expect(page.locator("#plan-review")).to_contain_text(f"{TOPIC}-1")
    expect(page.get_by_label("Partition", exact=True)).to_have_value("1")
    expect(page).not_to_have_url(re.compile("made=0123456789ab"))


def test_a_wrong_throttle_is_told_where_it_can_be_corrected(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/plan?throttle=fast")
    page.locator("#plan-button").click()

    expect(page.locator("#plan-result")).to_contain_text("throttle: auto")
    expect(page.get_by_label("Throttle", exact=True)).to_be_visible()


def test_a_plan_is_not_run_with_what_was_not_reviewed(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    """The click may be on its way while the throttle changes."""
    first, second = replicas_of(cluster, 0)
    other = next(broker for broker in cluster.ids if broker not in (first, second))
    page.goto(f"{server.url}/plan?topics={TOPIC}&partition=0&replicas={other},{first}")
    page.locator("#plan-button").click()
    expect(page.locator("#plan-review")).to_contain_text("Pre-flight")
    expect(page.locator("#plan-last")).to_have_class("actions")
    page.evaluate(
        """() => {
            const id = { name: "throttle", place: "plan", type: "field" };
            window.dash_clientside.set_props(id, { value: "1MiB" });
            document.getElementById("plan-confirm").click();
        }"""
    )
    expect(page.locator("#plan-review")).to_contain_text("1.0 MiB/s")
    expect(page.locator("#plan-last")).to_have_class("actions")
    outcome = page.locator("#plan-outcome")
    expect(outcome).to_contain_text("then confirm")
    expect(page, "nobody has reviewed this throttle").to_have_url(re.compile("/plan"))


def test_a_replica_is_dragged_and_the_plan_looked_at_on_the_map(
    page: Page, server: PageServer, cluster: LocalCluster
) -> None:
    first, second = replicas_of(cluster, 0)
    other = next(broker for broker in cluster.ids if broker not in (first, second))
    page.goto(f"{server.url}/plan?task=by_hand")
    page.get_by_role("textbox", name="By hand", exact=True).fill(f"{TOPIC}-0: {second},{first}")
    page.locator("#plan-button").click()
    row = page.locator(f".replica-board tr[data-partition='{TOPIC}-0']")
    expect(row).to_have_attribute("data-replicas", f"{second},{first}")
    place = row.evaluate(FROM_TOP)
    expect(page.locator("#plan-now .main-svg").first).to_be_visible()
    assert row.evaluate(FROM_TOP) == place, "what is pointed at must not move as charts come"

    row.locator(f"[data-broker='{first}'] .replica-chip").drag_to(
        row.locator(f"td[data-broker='{other}']")
    )

    expect(page.locator("#plan-entries")).to_have_value(f"{TOPIC}-0: {second},{other}")
    expect(row).to_have_attribute("data-replicas", f"{second},{other}")
    page.get_by_text("Show on the map").click()
    page.wait_for_url("**/map?plan=*")
    page.get_by_role("link", name="replicas", exact=True).click()
    expect(page.locator("#plan-map-planned .heat-sign.grows").first).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert lasting_faults(page, names=cluster.bootstrap) == [], width
    page.set_viewport_size(DESKTOP)

    page.locator("#plan-map-back").click()
    expect(row).to_have_attribute("data-replicas", f"{second},{other}")
    expect(page.locator("#plan-confirm")).to_have_text("Move 1 partition")
    assert replicas_of(cluster, 0) == [first, second]


def test_a_read_only_page_refuses_to_change(page: Page, watching: PageServer) -> None:
    page.goto(f"{watching.url}/produce/{TOPIC}")

    expect(page.locator("#produce-send")).to_be_disabled()
    expect(page.locator("#lacking-produce")).to_contain_text("read-only here")
