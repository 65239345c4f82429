"""Runs the two plans of a batch: rows of samples and the state of before become the state of now.

In one JVM the driver hands a plan its input in files, and the plan is made once (``FileFeed``,
``Slot``). Large clusters are cut into *buckets* of partitions that need nothing of each other;
they go through as many slots side by side as there are cores. Where executors are elsewhere, the
frames are made, and planned, for each batch (``FrameFeed``).
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from spark_metrics.brought import met
from spark_metrics.clock_corrections import corrected_commits, corrected_partitions
from spark_metrics.clocks import Correction
from spark_metrics.coordinators import told_still, with_alive
from spark_metrics.decode.record_head import Head
from spark_metrics.decode.record_rows import cut_rows
from spark_metrics.gather import gather
from spark_metrics.group_lag import newest_commits
from spark_metrics.logs import logs_of
from spark_metrics.memory import KnownBroker
from spark_metrics.names import NAMES, NOBODY, aligned, named, names_of
from spark_metrics.schema import COMMIT_STATE
from spark_metrics.session import compiled_session
from spark_metrics.shares import Rows, Share, rows_told, shares
from spark_metrics.size import OutgrownError
from spark_metrics.slot import TABLES, Slot, known_frame
from spark_metrics.store.files import StoreFiles, conform
from spark_metrics.tables import COMMITS
from spark_metrics.transform import newest_partitions

BUCKET_ROWS_MAX: Final = (4_000, 400_000, 800_000)
"""Up to so many replicas and commits: one bucket; then two, four and eight.

A bucket's rows are in memory several times while it is under way, those of others once.
"""
UNCOMPILED_ROWS_MAX: Final = 100_000
"""Up to so many, batches are run by the plan that is there while others are still compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Files of a store, one per bucket, in order, and about how many rows they have."""

    partitions: Sequence[str] = ()
    commits: Sequence[str] = ()
    rows: int = 0
    corrections: Sequence[Correction] = ()
    """Of times in them."""


Put = Callable[[str, str, pa.Table], str]
"""Writes a part of a table into the store: table, part, rows; returns its path."""


@dataclass(slots=True, kw_only=True)
class Wave:
    """One pass: records of samples, the state of before, what the driver knows."""

    records: list[tuple[int, Head]]
    """With their numbers in the batch, until they are taken."""
    known: Sequence[KnownBroker]
    alive: Mapping[tuple[str, str], int]
    """When each group (by cluster and id) committed anything last."""
    state: State
    files: StoreFiles
    put: Put
    bad: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What is kept of records of which some rows were bad, by their numbers."""

    def known_lines(self) -> Iterator[str]:
        for it in self.known:
            fenced = "" if it.fenced_ms is None else it.fenced_ms
            times = (it.complete_ms, fenced, it.lost_ms, it.told_ms, it.patience_ms)
            yield "\t".join(map(str, (it.cluster, it.broker, *times)))

    def take(self, buckets: int) -> Iterator[Share]:
        """The share of each bucket, one after the other; the wave forgets them."""
        found = shares(self.records, buckets, has_commits=bool(self.state.commits))
        self.records.clear()
        while found:
            yield found.pop(0)

    def rows_of(self, share: Share) -> Rows:
        """The rows of a share, which forgets them; what is bad of them is remembered."""
        rows = share.take()
        self.bad |= rows.bad
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One bucket's ``transform.newest_partitions`` and ``status.newest_commits``, written."""

    partitions: pa.Table
    partitions_path: str
    commits: pa.Table
    commits_path: str
    names: pa.Table
    """Of the commits as they are in their file."""


class Feed(Protocol):
    """Runs the plans over one wave."""

    def run(self, wave: Wave) -> list[Answer]:
        """The answers of all buckets, in order."""


def buckets_for(rows: int, so_far: int) -> int:
    """Into how many buckets this many rows are cut; never into fewer than so far."""
    return max(1 << sum(rows > most for most in BUCKET_ROWS_MAX), so_far)


class FileFeed:
    """Plans made once, over files."""

    def __init__(
        self, session: SparkSession, within: str | None = None, *, rows_max: int | None = None
    ) -> None:
        """``within``: the folder for its files; None: the system's for temporary ones.

        ``rows_max``: so many replicas and commits are taken in (``size.OutgrownError``).
        """
        self._session = session
        self._rows_max = rows_max
        self._folder = Path(tempfile.mkdtemp(prefix="partiscope-feed-", dir=within))
        self.small = Slot(session, self._folder / "small")
        self._making_large: Future[None] | None = None
        self._free: SimpleQueue[Slot] = SimpleQueue()
        self._names = Names()
        self._cores = session.sparkContext.defaultParallelism
        self._threads = ThreadPoolExecutor(self._cores)

    def run(self, wave: Wave) -> list[Answer]:
        rows = max(wave.state.rows, rows_told(wave.records))
        if self._rows_max is not None and rows > self._rows_max:
            raise OutgrownError(rows)
        count = buckets_for(rows, so_far=max(1, len(wave.state.partitions)))
        parts = wave.take(count)
        if count > 1 and self._has_large(rows):
            answers = list(self._threads.map(partial(self._take, wave), parts))
        else:
            answers = [self._run(self.small, wave, share) for share in parts]
        self._names.keep(answers)
        if count > 1:
            self._make_large()
        return answers

    def remove(self) -> None:
        """Delete the files; the feed is not to be used any more."""
        self._threads.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _has_large(self, rows: int) -> bool:
        """Whether the slots are there whose plans are compiled; many rows wait for them."""
        are_many = rows > UNCOMPILED_ROWS_MAX
        if are_many:
            self._make_large()
        making = self._making_large
        if making is None or not (are_many or making.done()):
            return False
        if making.exception() is not None:
            self._making_large = None
        making.result()
        return True

    def _make_large(self) -> None:
        """Begin to make them, once; that takes longer than a batch, and batches go on meanwhile."""
        if self._making_large is None:
            self._making_large = self._threads.submit(self._fill_free)

    def _fill_free(self) -> None:
        for number in range(self._free.qsize(), self._cores):
            folder = self._folder / f"large-{number}"
            self._free.put(Slot(compiled_session(self._session), folder))

    def _take(self, wave: Wave, share: Share) -> Answer:
        slot = self._free.get()
        try:
            return self._run(slot, wave, share)
        finally:
            self._free.put(slot)

    def _run(self, slot: Slot, wave: Wave, share: Share) -> Answer:
        brought = wave.rows_of(share)
        slot.clear()
        slot.give_table("fresh_replicas", gather(brought.replicas))
        told = brought.commits
        del brought
        slot.give_known(wave.known_lines())
        before = wave.state.partitions
        file = share.file_of(before)
        if file is not None and not wave.state.corrections:
            _give(slot, "partitions", file, wave.files)
        elif before:
            known_rows = _rows_of(share, wave.files, before)
            slot.give_table("partitions", corrected_partitions(known_rows, wave.state.corrections))
        there = _present(slot.partitions_plan.toArrow())
        part = str(share.bucket)
        path = wave.put("partitions", part, there)
        if not share.has_commits:
            beside = aligned(with_alive(told, {}), NOBODY, there)
            commits = named(slot.no_commits, beside, met(beside.fresh, NOBODY).carried)
            return _answer(wave, part, there, path, commits)
        slot.give_table("logs", logs_of(there))
        known, state = self._commits(wave, share)
        beside = aligned(with_alive(told, wave.alive), known, there)
        state = corrected_commits(known, state, wave.state.corrections)
        rows, carried = met(beside.fresh, state)
        slot.give_table("commits", rows)
        del rows, state
        commits = named(slot.commits_plan.toArrow(), beside, carried)
        return _answer(wave, part, there, path, commits)

    def _commits(self, wave: Wave, share: Share) -> tuple[pa.Table, pa.Table]:
        """Names of the commits in the state, and their figures."""
        before = wave.state.commits
        if not before:
            return NOBODY, NOBODY
        if (file := share.file_of(before)) is not None:
            return self._names.with_figures(wave.files, file)
        state = _rows_of(share, wave.files, before)
        return names_of(state), state


class Names:
    """Names of the commits in files of the state, as they are kept from wave to wave."""

    def __init__(self) -> None:
        self._kept: Mapping[str, pa.Table] = {}

    def keep(self, answers: Sequence[Answer]) -> None:
        self._kept = {answer.commits_path: answer.names for answer in answers}

    def with_figures(self, files: StoreFiles, path: str) -> tuple[pa.Table, pa.Table]:
        """Names of the rows of a file, and their figures."""
        kept = self._kept.get(path)
        names = NAMES if kept is None else ()
        found = files.read_texts(path, [*names, *COMMIT_STATE])
        return names_of(found) if kept is None else kept, found


def _together(files: StoreFiles, paths: Sequence[str]) -> pa.Table:
    """The rows of several files; in some of them a column may have nulls."""
    each = [files.read_whole(path) for path in paths]
    return pa.concat_tables(each, promote_options="permissive")


def _rows_of(share: Share, files: StoreFiles, state: Sequence[str]) -> pa.Table:
    """The bucket's rows out of all files of the state."""
    whole = _together(files, state).unify_dictionaries()
    return cut_rows(whole, share.buckets)[share.bucket]


_TOLD_COMMITS: Final = [*COMMITS.names, "is_fresh"]


def _present(found: pa.Table) -> pa.Table:
    """Without the partitions that are deleted; usually that is none."""
    is_there = found["is_partition"]
    return found if pc.all(is_there, min_count=0).as_py() else found.filter(is_there)


def _answer(wave: Wave, part: str, there: pa.Table, path: str, commits: pa.Table) -> Answer:
    """The answer of a bucket whose partitions are written, with its commits written too."""
    commits = told_still(commits, wave.known)
    return Answer(
        partitions=there,
        partitions_path=path,
        # Chunks that came over a socket keep all their columns alive: what is wanted is copied.
        commits=commits.select(_TOLD_COMMITS).combine_chunks(),
        commits_path=wave.put("commits", part, commits),
        names=commits.select(NAMES),
    )


def _give(slot: Slot, name: str, path: str, files: StoreFiles) -> None:
    if files.is_local:
        slot.link_table(name, files.absolute(path))
    else:
        slot.give_table(name, files.read_whole(path))


class FrameFeed:
    """The same as frames of this very batch: for executors that are elsewhere."""

    def __init__(self, session: SparkSession) -> None:
        self._session = compiled_session(session)
        self._names = Names()

    def run(self, wave: Wave) -> list[Answer]:
        (share,) = wave.take(1)
        brought = wave.rows_of(share)
        there = newest_partitions(
            self._session.createDataFrame(gather(brought.replicas)),
            self._state(wave),
            known_frame(self._lines(list(wave.known_lines()))),
            is_single=False,
        ).toArrow()
        there = _present(there)
        path = wave.put("partitions", "0", there)
        known, state = self._commits(wave)
        beside = aligned(with_alive(brought.commits, wave.alive), known, there)
        state = corrected_commits(known, state, wave.state.corrections)
        rows, carried = met(beside.fresh, state)
        commits = newest_commits(
            self._session.createDataFrame(rows),
            logs=self._session.createDataFrame(logs_of(there)),
            is_single=False,
        ).toArrow()
        answers = [_answer(wave, "0", there, path, named(commits, beside, carried))]
        self._names.keep(answers)
        return answers

    def _commits(self, wave: Wave) -> tuple[pa.Table, pa.Table]:
        """Names of the commits in the state, and their figures."""
        paths = wave.state.commits
        if not paths:
            return NOBODY, NOBODY
        if len(paths) == 1:
            return self._names.with_figures(wave.files, paths[0])
        state = _together(wave.files, paths)
        return names_of(state), state

    def _lines(self, lines: Sequence[str]) -> DataFrame:
        return self._session.createDataFrame(pa.table({"line": pa.array(lines, pa.string())}))

    def _state(self, wave: Wave) -> DataFrame:
        columns, paths = TABLES["partitions"], wave.state.partitions
        if not paths:
            return self._session.createDataFrame([], columns)
        if wave.state.corrections and (known := _together(wave.files, paths)).num_rows:
            rows = corrected_partitions(known, wave.state.corrections)
            schema = to_arrow_schema(self._session.createDataFrame([], columns).schema)
            return self._session.createDataFrame(conform(rows, schema))
        reader = self._session.read.schema(columns)
        return reader.parquet(*(wave.files.hadoop_url(path) for path in paths))


def build_feed(
    session: SparkSession, within: str | None = None, *, rows_max: int | None = None
) -> FileFeed | FrameFeed:
    """The feed that fits where the session's executors are; the rest as of ``FileFeed``."""
    if not (session.sparkContext.master or "").startswith("local"):
        return FrameFeed(session)
    return FileFeed(session, within, rows_max=rows_max)
