"""Keeps history small while it grows: points of a minute, of an hour, and few files of each.

What is due is read off the files that the manifest names (``due_tasks``, pure). It is done in a
thread of its own, so that no batch waits for it, and counts when a later manifest names the
outcome: a job that is killed meanwhile does it again, from the same files. Files that were merged
into the next coarser span are marked in that same manifest, so each reading is in it once.

Files of a span are a small merge tree: ``MERGE_FILES`` files of a level become one of the next,
by key and time, so a query opens a few dozen files and skips most of each.
"""

import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

import pyarrow as pa

from spark_metrics.history.point_merge import in_order, merged_points
from spark_metrics.history.sorted_merge import open_run, slices
from spark_metrics.store.damage import GONE, damage
from spark_metrics.store.files import Order, StoreFiles
from spark_metrics.store.layout import HistoryFile, history_path
from spark_metrics.store.table_files import unique
from spark_metrics.window.history_points import COARSER, SHAPES, SPANS_MS, Shape

MERGE_FILES: Final = 16
LEVEL_MAX: Final = 2
"""Files of one batch a second hold 16 s, then 4 minutes; those of minutes 16, then 4 hours."""
MERGE_ROWS_MAX: Final = 32_000_000
"""Files that would have more rows together are left alone."""
LATE_MS: Final = 15_000
"""A minute is merged so long after its end; what comes later still is merged by itself."""
NICENESS: Final = 10
"""Niceness of the thread that merges, where the system knows such a thing: it takes what batches
leave of the machine. Not more, for it holds Python's lock now and then, and batches wait for
that."""
INPUTS_MAX: Final = 128
"""Files that are open at once; what is left of a long pause is merged by the next lot."""

History = Mapping[str, Sequence[HistoryFile]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Make one file of several of one table, span and level."""

    table: str
    inputs: tuple[HistoryFile, ...]
    span: str
    level: int

    @property
    def is_rollup(self) -> bool:
        return self.span != self.inputs[0].span


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The outcome of a task: a file, or why there is none."""

    task: Task
    output: HistoryFile | None = None
    problem: str = ""
    damaged: Mapping[str, str] = field(default_factory=dict)
    """Inputs that are proven to be no tables any more, and why."""


def due_tasks(history: History, now_ms: int, late_ms: int = LATE_MS) -> list[Task]:
    """All that can be done at once: no file is in two tasks."""
    tasks: list[Task] = []
    for table, files in history.items():
        if table not in SHAPES:  # of another version of the job
            continue
        tasks += _rollups(table, files, now_ms - late_ms)
        taken = {file.path for task in tasks for file in task.inputs}
        tasks += _merges(table, [file for file in files if file.path not in taken])
    return tasks


def _rollups(table: str, files: Sequence[HistoryFile], closed_ms: int) -> Iterable[Task]:
    waiting_ms = closed_ms
    for span, coarser in COARSER.items():
        open_files = [file for file in files if file.span == span and not file.is_rolled]
        # An hour waits until its last minute was merged.
        over_ms = min(closed_ms - 2 * SPANS_MS[span], waiting_ms)
        begin_ms = over_ms - over_ms % SPANS_MS[coarser]
        due = [file for file in open_files if file.until_ms < begin_ms]
        if due:
            yield Task(table=table, inputs=_oldest(due, coarser), span=coarser, level=0)
        waiting_ms = min((file.from_ms for file in open_files), default=closed_ms)


def _oldest(due: Sequence[HistoryFile], coarser: str) -> tuple[HistoryFile, ...]:
    """As many files as may be open at once; a point of the coarser span is not cut in two."""
    files = sorted(due, key=lambda file: file.until_ms)
    some = files[:INPUTS_MAX]
    if len(files) > len(some):
        next_ms = files[INPUTS_MAX].until_ms
        begin_ms = next_ms - next_ms % SPANS_MS[coarser]
        some = [file for file in some if file.until_ms < begin_ms] or some
    return tuple(some)


def _merges(table: str, files: Sequence[HistoryFile]) -> Iterable[Task]:
    for (span, level, _, _), alike in groupby(sorted(files, key=_alike), key=_alike):
        full = sorted(alike, key=lambda file: file.from_ms)[:MERGE_FILES]
        is_small = sum(file.rows for file in full) <= MERGE_ROWS_MAX
        if len(full) == MERGE_FILES and level < LEVEL_MAX and is_small:
            yield Task(table=table, inputs=tuple(full), span=span, level=level + 1)


def _alike(file: HistoryFile) -> tuple[str, int, bool, int]:
    """Files with the same may be merged: those that are not rolled up yet, within its span."""
    coarser = COARSER.get(file.span)
    is_waiting = coarser is not None and not file.is_rolled
    period = file.until_ms // SPANS_MS[coarser] if is_waiting and coarser else -1
    return file.span, file.level, file.is_rolled, period


def adopted(history: History, done: Iterable[Done]) -> dict[str, tuple[HistoryFile, ...]]:
    """History with what was done; an outcome whose inputs are gone counts for nothing."""
    tables = {table: list(files) for table, files in history.items()}
    for it in done:
        files = tables.get(it.task.table, [])
        inputs = {file.path for file in it.task.inputs}
        kept = [file for file in files if file.path not in it.damaged]
        if it.output is not None and any(file.path in inputs for file in files):
            if it.task.is_rollup:
                kept = [
                    replace(file, is_rolled=True) if file.path in inputs else file for file in kept
                ]
            else:
                kept = [file for file in kept if file.path not in inputs]
            kept.append(it.output)
        tables[it.task.table] = kept
    return {table: tuple(files) for table, files in tables.items()}


class HistoryMaintenance:
    """Runs tasks beside the job, one lot at a time."""

    def __init__(self, files: StoreFiles, executor: Executor | None = None) -> None:
        self._files = files
        self._executor = executor
        self._running: Future[list[Done]] | None = None
        self.outputs: frozenset[str] = frozenset()
        """Files that are being written, or wait to be named by a manifest."""
        self._missed: set[str] = set()
        """Files that were not there when they were looked for last."""

    @property
    def is_idle(self) -> bool:
        return self._running is None

    def begin(self, tasks: Sequence[Task], version: int) -> None:
        """Begin these tasks; ``version`` is that of the manifest that names their inputs."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(
                1, thread_name_prefix="history-maintenance", initializer=_step_back
            )
        paths = [history_path(task.table, task.span, version, unique("merged")) for task in tasks]
        self.outputs = frozenset(paths)
        self._running = self._executor.submit(self._run, list(zip(tasks, paths, strict=True)))

    def take(self) -> list[Done]:
        """The tasks that were done since ``begin``; none while they run."""
        if self._running is None or not self._running.done():
            return []
        done = self._running.result()
        self._running, self.outputs = None, frozenset()
        return done

    def _run(self, tasks: Sequence[tuple[Task, str]]) -> list[Done]:
        return [self._done(task, path) for task, path in tasks]

    def _done(self, task: Task, path: str) -> Done:
        try:
            return Done(task=task, output=self._merged(task, path))
        except Exception as error:  # noqa: BLE001 (told; an error in a thread stops no batch)
            with suppress(OSError):
                self._files.delete(path)
            damaged = self._damaged([file.path for file in task.inputs])
            return Done(task=task, problem=str(error) or type(error).__name__, damaged=damaged)

    def _damaged(self, paths: Sequence[str]) -> dict[str, str]:
        """Why some of them are no tables any more. One is gone where two looks in turn say so."""
        damages = {path: why for path in paths if (why := damage(self._files, path))}
        gone = {path for path, why in damages.items() if why == GONE}
        first_look = gone - self._missed
        self._missed = (self._missed - {*paths}) | gone
        return {path: why for path, why in damages.items() if path not in first_look}

    def _merged(self, task: Task, path: str) -> HistoryFile:
        shape = SHAPES[task.table]
        key = list(shape.key)
        rows_max = sum(file.rows for file in task.inputs)
        with ExitStack() as opened:
            sources = [opened.enter_context(self._files.open(file.path)) for file in task.inputs]
            runs = [open_run(source, key, shape.schema) for source in sources]
            rows, ends = self._files.write_sorted(
                path,
                (_points(task, shape, some) for some in slices(runs)),
                shape.schema,
                order=Order(key=key, measured="at_ms", rows_max=rows_max),
            )
        return HistoryFile(
            path=path,
            span=task.span,
            level=task.level,
            rows=rows,
            from_ms=ends[0],
            until_ms=ends[1],
            is_rolled=not task.is_rollup and task.inputs[0].is_rolled,
        )


def _points(task: Task, shape: Shape, rows: pa.Table) -> pa.Table:
    """The points of a slice of all rows."""
    if task.is_rollup:
        return merged_points(rows, shape, SPANS_MS[task.span], shape.schema)
    return in_order(rows, [*shape.key])


def _step_back() -> None:
    """Let this thread have less of the machine than others."""
    with suppress(AttributeError, OSError):  # only Linux gives each thread its own
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
