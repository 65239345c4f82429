"""Everyday tasks of operators, declared once: for Chromium, the terminal and the document."""

from typing import Final

from tests.support.tasks.changing import CHANGING
from tests.support.tasks.finding import FINDING
from tests.support.tasks.reading import READING
from tests.support.tasks.task import Task

TASKS: Final[tuple[Task, ...]] = (*READING, *FINDING, *CHANGING)
