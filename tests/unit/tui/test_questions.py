"""Operators' questions in the terminal: the keys, and that the answer is on the screen then."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.feed import SnapshotFeed
from spark_metrics.window.aggregates import AggregatesReader
from tests.snapshots.canned import CannedSession
from tests.support.picture import picture
from tests.support.question_store import write_story
from tests.support.questions import QUESTIONS, STEPS_MAX, Question
from tests.support.settle import settle
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.terminal_session import Services

SIZE: Final = (140, 44)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("questions")
    write_story(path, at_ms=NOW_MS)
    return path


@pytest.fixture
def services(story: Path) -> Iterator[Services]:
    reader = AggregatesReader(str(story))
    feed = SnapshotFeed(reader, now_ms=lambda: NOW_MS)
    watched = WatchedCluster(bootstrap="127.0.0.1:1")
    yield Services(feed=feed, history=reader, watched=watched, bus="", now_ms=lambda: NOW_MS)
    feed.stop()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.ask)
async def test_three_keys_lead_to_the_answer(question: Question, services: Services) -> None:
    assert len(question.keys) <= STEPS_MAX
    app = PartiscopeApp(services, path=question.start)
    app.session._operations = CannedSession()  # type: ignore[assignment]
    wanted = question.seen if question.seen_in_terminal is None else question.seen_in_terminal
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for key in question.keys:
            await pilot.press(key)
            await pilot.pause()
        try:
            await settle(pilot, lambda: all(word in picture(app) for word in wanted), question.ask)
        except AssertionError as error:
            lacking = [word for word in wanted if word not in picture(app)]
            raise AssertionError(f"{lacking} not in\n{picture(app)}") from error
