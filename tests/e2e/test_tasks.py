"""Everyday tasks of operators, done in Chromium and in a real terminal on a real cluster.

One ``partiscope up``, one page and one terminal, task by task: what tasks change comes last. A task
that changes something has its own topic, group or broker on each face.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext

import pytest

from tests.support.installation import Installation
from tests.support.tasks import TASKS
from tests.support.tasks.cluster import task_cluster
from tests.support.tasks.faces import Face, page_face, terminal_face
from tests.support.tasks.facts import Facts, facts_for, facts_of
from tests.support.tasks.prepared import AROUND, FACES
from tests.support.tasks.proofs import PROOFS, prove
from tests.support.tasks.task import STEPS_MAX, Task

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(240)]
BROKERS = 4


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    data, flags = tmp_path_factory.mktemp("tasks"), ("--no-demo", "--brokers", str(BROKERS))
    with Installation(data, flags=flags, brokers=BROKERS) as installation:
        installation.wait_ready()
        with task_cluster(installation):
            yield installation


@pytest.fixture(scope="module")
def facts(running: Installation) -> Facts:
    return facts_of(running)


@pytest.fixture(scope="module")
def faces(running: Installation) -> Iterator[Mapping[str, Face]]:
    with page_face(running) as page, terminal_face(running) as terminal:
        yield {face.name: face for face in (page, terminal)}


def test_no_task_takes_more_steps_than_four() -> None:
    assert len({task.asks for task in TASKS}) == len(TASKS)
    assert {*PROOFS, *AROUND} <= {task.asks for task in TASKS}
    for task in TASKS:
        assert max(len(task.page), len(task.terminal)) <= STEPS_MAX, task.asks


@pytest.mark.browser
@pytest.mark.soak
@pytest.mark.parametrize("name", FACES)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.asks)
def test_a_task_is_done(
    running: Installation, faces: Mapping[str, Face], facts: Facts, task: Task, name: str
) -> None:
    around = AROUND.get(task.asks)
    with around(running, name) if around else nullcontext():
        faces[name].do(task, facts_for(name, running, facts, task.start))
        prove(running, task.asks, name)
