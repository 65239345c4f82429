"""Everyday tasks of operators, done in Chromium and in a real terminal on a real cluster.

One ``partiscope up``, one page and one terminal; a task that changes something has its own topic.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.support.installation import Installation
from tests.support.tasks import TASKS
from tests.support.tasks.cluster import task_cluster
from tests.support.tasks.faces import Face, page_face, terminal_face
from tests.support.tasks.proofs import prove
from tests.support.tasks.task import STEPS_MAX, Task

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(240)]
expect.set_options(timeout=30_000)
BROKERS = 4


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    data, flags = tmp_path_factory.mktemp("tasks"), ("--no-demo", "--brokers", str(BROKERS))
    with Installation(data, flags=flags, brokers=BROKERS) as installation:
        installation.wait_ready()
        with task_cluster(installation):
            yield installation


@pytest.fixture(scope="module")
def page(running: Installation) -> Iterator[Face]:
    with page_face(running) as face:
        yield face


@pytest.fixture(scope="module")
def terminal(running: Installation) -> Iterator[Face]:
    with terminal_face(running) as face:
        yield face


def test_no_task_takes_more_steps_than_four() -> None:
    assert len({task.asks for task in TASKS}) == len(TASKS)
    for task in TASKS:
        assert max(len(task.page), len(task.terminal)) <= STEPS_MAX, task.asks


@pytest.mark.browser
@pytest.mark.soak
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.asks)
def test_a_task_is_done_on_the_page(running: Installation, page: Face, task: Task) -> None:
    page.do(task)
    prove(running.bootstrap, task.asks, page.name)


@pytest.mark.soak
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.asks)
def test_a_task_is_done_in_the_terminal(running: Installation, terminal: Face, task: Task) -> None:
    terminal.do(task)
    prove(running.bootstrap, task.asks, terminal.name)
