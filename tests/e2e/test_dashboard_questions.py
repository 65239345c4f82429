"""What operators ask, answered by the page in three clicks at most."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import open_page
from tests.support.page_server import PageServer
from tests.support.question_store import write_story
from tests.support.questions import QUESTIONS, STEPS_MAX, Question

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(180)]

QUESTIONS_MIN = 20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions") / "store"


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[PageServer]:
    write_story(store, at_ms=time.time_ns() // 1_000_000)
    with PageServer(store) as server:  # the answers are in the store
        yield server


@pytest.fixture(scope="module")
def page(browser: Browser, server: PageServer) -> Iterator[Page]:
    page = open_page(browser, f"{server.url}/overview", [])
    yield page
    page.context.close()


def test_the_table_is_long_enough_and_no_way_too_long() -> None:
    assert len(QUESTIONS) >= QUESTIONS_MIN
    assert len({question.ask for question in QUESTIONS}) == len(QUESTIONS)
    assert max(len(question.clicks) for question in QUESTIONS) <= STEPS_MAX


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.ask)
def test_a_question_is_answered(
    page: Page, server: PageServer, store: Path, question: Question
) -> None:
    write_story(store, at_ms=time.time_ns() // 1_000_000)  # else it would have grown stale
    page.goto(f"{server.url}/{question.start}")
    expect(page.locator("main > *").first).to_be_visible()
    for click in question.clicks:
        page.locator(click).first.click()
    for words in question.seen:
        told = page.get_by_text(words).or_(page.locator(f'input[value="{words}"]'))
        expect(told.filter(visible=True).first).to_be_visible()
