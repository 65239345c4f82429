"""A plan of any tool is pasted or uploaded on the page, and pasted in a terminal of 80 columns."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.contract.operations_site import Site
from tests.e2e.both_faces import Shown, shown
from tests.e2e.conftest import SitePage
from tests.e2e.test_moves_by_faces import store_rows
from tests.support.settle import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(240)]

PLACED: Final = {0: (101, 102), 1: (101, 102), 2: (103, 101)}
WANTED: Final = {0: (103, 102), 1: (102, 101), 2: (103, 101)}


@pytest.fixture(scope="module")
def topic(site: Site) -> str:
    return site.topic("orders", PLACED, partition_bytes=1 << 20)


@pytest.fixture(scope="module")
def faces(browser: Browser, site: Site, site_page: SitePage, topic: str) -> Iterator[Shown]:
    site_page.show(store_rows(site, topic))
    with shown(browser, site_page, "check", "CHECK A PLAN") as faces:
        expect(faces.page.locator("#check-button")).to_be_visible()
        faces.terminal.wait("^s check it")
        yield faces


def plan_of(topic: str) -> str:
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(replicas), "log_dirs": ["any"] * 2}
        for number, replicas in WANTED.items()
    ]
    return json.dumps({"version": 1, "partitions": partitions}, indent=2)


def result_of(faces: Shown) -> Locator:
    return faces.page.locator("#check-result")


def check_on_page(faces: Shown, plan: str) -> None:
    faces.page.get_by_label("Plan").fill(plan)
    faces.page.get_by_role("button", name="Check", exact=True).click()


def check_in_terminal(faces: Shown, plan: str) -> None:
    faces.terminal.press("F7", "BSpace")
    # Textual runs a key's action after it went through every parent; a paste goes straight in.
    wait_until(lambda: '"' not in faces.terminal.words(), "the field is empty")
    faces.terminal.paste(plan)
    faces.terminal.press("C-s")


def test_bad_json_is_told_with_its_place(faces: Shown) -> None:
    bad = '{"version": 1, "partitions": [{"topic": '
    check_on_page(faces, bad)
    check_in_terminal(faces, bad)
    faces.wait("not JSON", "→ correct it")
    faces.take("check-bad")


def test_a_pasted_plan_is_judged(faces: Shown, topic: str) -> None:
    plan = plan_of(topic)
    check_on_page(faces, plan)
    check_in_terminal(faces, plan)
    faces.wait("The plan passes", "replicas moved")
    faces.take("check-fine")
    faces.terminal.press("Tab", "End")
    faces.terminal.wait("✔ waste: ")
    faces.terminal.press("BTab")


def test_an_uploaded_plan_fills_the_field_and_is_judged(
    faces: Shown, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    faces.page.reload()

    def upload(encoding: str) -> None:
        file.write_text(plan_of(topic), encoding=encoding)
        with faces.page.expect_file_chooser() as chooser:
            faces.page.get_by_text("upload a file").click()
        chooser.value.set_files(file)

    upload("utf-16")
    expect(result_of(faces)).to_contain_text("'plan.json': byte 1 is not UTF-8")
    upload("utf-8")
    expect(faces.page.get_by_label("Plan")).to_have_value(plan_of(topic))
    expect(result_of(faces)).to_be_empty()
    faces.page.get_by_role("button", name="Check", exact=True).click()
    expect(result_of(faces)).to_contain_text("The plan passes")
    faces.page.get_by_role("button", name="Review it").click()
    expect(faces.page.locator("#plan-review")).to_contain_text("orders-")
    expect(faces.page.locator("#plan-confirm")).to_be_enabled()
