"""A viewer and an admin in two browsers: who may not, sees why; the journal tells who did."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Browser, Page, expect

from control.access.roles import BUILT_IN, EVERYWHERE
from partiscope.access.users_file import User, UsersFile, hashed
from tests.contract.operations_rig import unique
from tests.support.axe import serious_findings
from tests.support.browser import dialog_of, open_page
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S, patience_s
from tests.support.store_builder import StoreBuilder, SyntheticSizes

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(400)]

SECRET: Final = "correct horse battery"
LINGER_S: Final = 0.7
VIEWS: Final = (
    "overview", "topics", "topics/topic-0", "browse/topic-0", "partitions", "map", "brokers",
    "groups", "plan", "moves", "journal", "what-if", "alerts", "produce", "job",
)  # fmt: skip
ROLES: Final = {"alice": "admin", "victor": "viewer"}


@pytest.fixture(scope="module")
def server(
    shared_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PageServer]:
    folder = tmp_path_factory.mktemp("logins")
    store = StoreBuilder(folder / "store")
    store.write_synthetic(SyntheticSizes(topics=2, partitions=2, groups=1), history_s=5)
    secret = hashed(SECRET)
    with UsersFile(folder / "data" / "users.json", BUILT_IN).changing() as users:
        for name, role in ROLES.items():
            users[name] = User(name=name, password=secret, roles={EVERYWHERE: role})
    at = shared_cluster.bootstrap
    with PageServer(store.folder, "--bootstrap", at, "--bus", at) as page:
        yield page


@contextmanager
def logged_in(browser: Browser, server: PageServer, name: str, path: str = "") -> Iterator[Page]:
    """A browser of its own, by keys alone; its console has no error, a broken policy included."""
    errors: list[str] = []
    page = open_page(browser, f"{server.url}/{path}", errors)
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type(SECRET)
    page.keyboard.press("Enter")
    expect(page.locator(".account")).to_contain_text(f"{name} · {ROLES[name]}")
    linger(page)
    yield page
    page.context.close()
    assert errors == []


def linger(page: Page) -> None:
    """As a person does before the next view: scripts that it cuts off are errors on the console."""
    page.wait_for_timeout(1_000 * patience_s(LINGER_S))


def ask_for_topic(page: Page, name: str) -> None:
    """The form of a new topic, filled in."""
    page.evaluate("dash_clientside.set_props('operation', {data: {form: 'create_topic'}})")
    dialog_of(page).get_by_label("Name").fill(name)


def test_the_page_that_asks_is_for_everybody(browser: Browser, server: PageServer) -> None:
    errors: list[str] = []
    page = open_page(browser, f"{server.url}/topics", errors)
    for scheme in ("light", "dark"):
        for width in (390, 1440):
            with case(scheme, width):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 700})
                assert serious_findings(page) == []
                wide = "document.documentElement.scrollWidth > window.innerWidth"
                assert not page.evaluate(wide)
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("wrong password")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Name or password is wrong.")
    expect(page.get_by_label("Name")).to_have_value("alice")
    page.context.close()
    assert [it for it in errors if "401" not in it and "axe" not in it.lower()] == []


def test_every_view_works_under_the_policy(browser: Browser, server: PageServer) -> None:
    with logged_in(browser, server, "victor", "topics?q=lag>0") as page:
        expect(page).to_have_url(f"{server.url}/topics?q=lag%3E0")
        for view in VIEWS:
            with case(view):
                page.goto(f"{server.url}/{view}")
                expect(page.locator("#content h1, #content h2").first).to_be_visible()
                linger(page)


def test_who_may_not_sees_why_and_who_may_is_in_the_journal(
    browser: Browser, server: PageServer, shared_cluster: LocalCluster
) -> None:
    name = unique("made")
    with (
        logged_in(browser, server, "victor", "topics") as viewer,
        logged_in(browser, server, "alice", "topics") as admin,
    ):
        ask_for_topic(viewer, name)
        dialog = dialog_of(viewer)
        expect(dialog.locator(".lacking")).to_contain_text("victor has the role viewer")
        submit = dialog.locator("#operation-submit")
        expect(submit).to_be_disabled()
        # What a browser's own console can do: the button is pressed all the same.
        viewer.evaluate("dash_clientside.set_props('operation-submit', {disabled: false})")
        submit.click()
        expect(dialog.locator("#operation-outcome")).to_contain_text("this takes the role admin")

        ask_for_topic(admin, name)
        dialog = dialog_of(admin)
        dialog.locator("#operation-submit").click()
        dialog.locator("#operation-confirm").click()
        expect(dialog.locator("#operation-outcome")).to_contain_text(f"{name} is created")
        viewer.goto(f"{server.url}/journal?q={name}")
        expect(viewer.locator("#content")).to_contain_text("alice (page, 127.0.0.1)")
    there = AdminClient({"bootstrap.servers": shared_cluster.bootstrap}).list_topics(timeout=WAIT_S)
    assert name in there.topics


def test_who_logs_out_is_out(browser: Browser, server: PageServer) -> None:
    with logged_in(browser, server, "victor") as page:
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Password")).to_be_visible()
        page.goto(f"{server.url}/topics")
        expect(page.get_by_label("Password")).to_be_visible()
