"""Runs the two plans of a batch: rows of samples and the state of before become the state of now.

In one JVM the driver hands a plan its input in files, and the plan is made once (``FileFeed``,
``Slot``). Large clusters are cut into *buckets* of partitions that need nothing of each other;
they go through as many slots side by side as there are cores. Where executors are elsewhere, the
frames are made, and planned, for each batch (``FrameFeed``).
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from spark_metrics.coordinators import told_still, with_alive
from spark_metrics.files import StoreFiles
from spark_metrics.gather import gather
from spark_metrics.heads import Head
from spark_metrics.memory import KnownBroker
from spark_metrics.parse import Parsed, cut_rows, parse_rows
from spark_metrics.session import compiled_session
from spark_metrics.size import OutgrownError
from spark_metrics.slot import STATES, Slot, known_frame
from spark_metrics.status import newest_commits
from spark_metrics.tables import COMMITS
from spark_metrics.transform import newest_partitions

BUCKET_ROWS_MAX: Final = (4_000, 400_000, 800_000)
"""Up to so many replicas and commits: one bucket; then two, four and eight.

A bucket's rows are in memory several times while it is under way, those of others once.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Files of a store, one per bucket, in order, and about how many rows they have."""

    partitions: Sequence[str] = ()
    commits: Sequence[str] = ()
    rows: int = 0


Put = Callable[[str, str, pa.Table], str]
"""Writes a part of a table into the store: table, part, rows; returns its path."""


@dataclass(frozen=True, kw_only=True)
class Wave:
    """One pass: the samples with their numbers, the state of before, what the driver knows."""

    heads: Sequence[tuple[int, Head]]
    known: Sequence[KnownBroker]
    alive: Mapping[tuple[str, str], int]
    """When each group (by cluster and id) committed anything last."""
    state: State
    files: StoreFiles
    put: Put

    def known_lines(self) -> Iterator[str]:
        for it in self.known:
            fenced = "" if it.fenced_ms is None else it.fenced_ms
            yield f"{it.cluster}\t{it.broker}\t{it.complete_ms}\t{fenced}\t{it.silent_ms}"

    @property
    def has_commits(self) -> bool:
        return bool(self.state.commits) or self.commits.rows.num_rows > 0

    @cached_property
    def replicas(self) -> Parsed:
        return parse_rows("replicas", self.heads)

    @cached_property
    def commits(self) -> Parsed:
        return parse_rows("commits", self.heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One bucket's ``transform.newest_partitions`` and ``status.newest_commits``, written."""

    partitions: pa.Table
    partitions_path: str
    commits: pa.Table
    commits_path: str


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
        self.large: list[Slot] = []
        self._free: SimpleQueue[Slot] = SimpleQueue()
        self._cores = session.sparkContext.defaultParallelism
        self._threads = ThreadPoolExecutor(self._cores)

    def run(self, wave: Wave) -> list[Answer]:
        fresh = wave.replicas.rows.num_rows + wave.commits.rows.num_rows
        rows = max(wave.state.rows, fresh)
        if self._rows_max is not None and rows > self._rows_max:
            raise OutgrownError(rows)
        count = buckets_for(rows, so_far=max(1, len(wave.state.partitions)))
        shares = _shares(wave, count)
        if count == 1:
            return [_run(self.small, wave, shares[0])]
        self._make_large()
        return list(self._threads.map(partial(self._take, wave), shares))

    def remove(self) -> None:
        """Delete the files; the feed is not to be used any more."""
        self._threads.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make_large(self) -> None:
        """Slots whose plans are compiled; made when the cluster is first seen to be large."""
        for number in range(len(self.large), self._cores):
            slot = Slot(compiled_session(self._session), self._folder / f"large-{number}")
            self.large.append(slot)
            self._free.put(slot)

    def _take(self, wave: Wave, share: "_Share") -> Answer:
        slot = self._free.get()
        try:
            return _run(slot, wave, share)
        finally:
            self._free.put(slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """What a wave brings for one bucket."""

    bucket: int
    buckets: int
    replicas: pa.Table
    commits: pa.Table


def _shares(wave: Wave, buckets: int) -> list[_Share]:
    replicas, commits = (cut_rows(it.rows, buckets) for it in (wave.replicas, wave.commits))
    return [
        _Share(bucket=bucket, buckets=buckets, replicas=replicas[bucket], commits=commits[bucket])
        for bucket in range(buckets)
    ]


def _run(slot: Slot, wave: Wave, share: _Share) -> Answer:
    slot.clear()
    slot.give_table("fresh_replicas", gather(share.replicas))
    slot.give_table("fresh_commits", with_alive(share.commits, wave.alive))
    slot.give_known(wave.known_lines())
    _give_state(slot, "partitions", wave, share)
    there = _present(slot.partitions_plan.toArrow())
    part = str(share.bucket)
    path = wave.put("partitions", part, there)
    commits = slot.no_commits
    if wave.has_commits:
        _give(slot, "logs", path, wave.files)
        _give_state(slot, "commits", wave, share)
        commits = told_still(slot.commits_plan.toArrow(), wave.known)
    return _answer(there, path, commits, wave.put("commits", part, commits))


_TOLD_COMMITS: Final = [*COMMITS.names, "is_fresh"]


def _present(found: pa.Table) -> pa.Table:
    """Without the partitions that are deleted; usually that is none."""
    is_there = found["is_partition"]
    return found if pc.all(is_there, min_count=0).as_py() else found.filter(is_there)


def _answer(there: pa.Table, path: str, commits: pa.Table, commits_path: str) -> Answer:
    # Chunks that came over a socket keep all their columns alive: what is wanted is copied.
    told = commits.select(_TOLD_COMMITS).combine_chunks()
    return Answer(partitions=there, partitions_path=path, commits=told, commits_path=commits_path)


def _give(slot: Slot, name: str, path: str, files: StoreFiles) -> None:
    if files.is_local:
        slot.link_table(name, files.absolute(path))
    else:
        slot.give_table(name, files.read_whole(path))


def _give_state(slot: Slot, name: str, wave: Wave, share: _Share) -> None:
    """The bucket's state; taken out of all files where the cut was another one before."""
    paths = wave.state.partitions if name == "partitions" else wave.state.commits
    if len(paths) == share.buckets:
        _give(slot, name, paths[share.bucket], wave.files)
    elif paths:
        whole = pa.concat_tables([wave.files.read_whole(path) for path in paths])
        slot.give_table(name, cut_rows(whole, share.buckets)[share.bucket])


class FrameFeed:
    """The same as frames of this very batch: for executors that are elsewhere."""

    def __init__(self, session: SparkSession) -> None:
        self._session = compiled_session(session)

    def run(self, wave: Wave) -> list[Answer]:
        there = newest_partitions(
            self._session.createDataFrame(gather(wave.replicas.rows)),
            self._state("partitions", wave.state.partitions, wave.files),
            known_frame(self._lines(list(wave.known_lines()))),
            is_single=False,
        ).toArrow()
        there = _present(there)
        path = wave.put("partitions", "0", there)
        commits = newest_commits(
            self._session.createDataFrame(with_alive(wave.commits.rows, wave.alive)),
            self._state("commits", wave.state.commits, wave.files),
            partitions=self._state("partitions", [path], wave.files),
            is_single=False,
        ).toArrow()
        commits = told_still(commits, wave.known)
        return [_answer(there, path, commits, wave.put("commits", "0", commits))]

    def _lines(self, lines: Sequence[str]) -> DataFrame:
        return self._session.createDataFrame(pa.table({"line": pa.array(lines, pa.string())}))

    def _state(self, name: str, paths: Sequence[str], files: StoreFiles) -> DataFrame:
        reader = self._session.read.schema(STATES[name])
        if not paths:
            return self._session.createDataFrame([], STATES[name])
        return reader.parquet(*(files.hadoop_url(path) for path in paths))


def build_feed(
    session: SparkSession, within: str | None = None, *, rows_max: int | None = None
) -> FileFeed | FrameFeed:
    """The feed that fits where the session's executors are; the rest as of ``FileFeed``."""
    if not (session.sparkContext.master or "").startswith("local"):
        return FrameFeed(session)
    return FileFeed(session, within, rows_max=rows_max)
