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
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from broker.metrics_schema import bucket_of
from spark_metrics.files import StoreFiles
from spark_metrics.heads import Head
from spark_metrics.memory import KnownBroker
from spark_metrics.parse import sample_rows
from spark_metrics.session import compiled_session
from spark_metrics.slot import STATES, Slot, groups_frame, known_frame
from spark_metrics.status import newest_commits
from spark_metrics.transform import newest_partitions

BUCKET_ROWS_MAX: Final = (4_000, 400_000)
"""Up to so many replicas and commits: one bucket; up to the second: two; beyond: four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Files of a store, one per bucket, in order, and about how many rows they have."""

    partitions: Sequence[str] = ()
    commits: Sequence[str] = ()
    rows: int = 0


Put = Callable[[str, str, pa.Table], str]
"""Writes a part of a table into the store: table, part, rows; returns its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One pass: the samples with their numbers, the state of before, what the driver knows."""

    heads: Sequence[tuple[int, Head]]
    known: Sequence[KnownBroker]
    alive: Mapping[tuple[str, str], int]
    """When each group (by cluster and id) committed anything last."""
    state: State
    files: StoreFiles
    put: Put

    def lines(self, kind: str, bucket: int, buckets: int) -> Iterator[str]:
        """The records that may have rows of this kind in this bucket."""
        for number, head in self.heads:
            if not (head.rows or {}).get(kind):
                continue
            if head.bucket is None:
                yield head.line(number, f"{buckets}/{bucket}")
            elif head.bucket % buckets == bucket:
                yield head.line(number, "1/0")

    def known_lines(self) -> Iterator[str]:
        for it in self.known:
            fenced = "" if it.fenced_ms is None else it.fenced_ms
            yield f"{it.cluster}\t{it.broker}\t{it.complete_ms}\t{fenced}\t{it.silent_ms}"

    def group_lines(self) -> Iterator[str]:
        for (cluster, group_id), alive_ms in self.alive.items():
            if not {"\t", "\n"} & set(group_id):
                yield f"{cluster}\t{group_id}\t{alive_ms}"

    @property
    def has_commits(self) -> bool:
        told = any((head.rows or {}).get("commits") for _, head in self.heads)
        return told or bool(self.state.commits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One bucket's ``transform.newest_partitions`` and ``status.newest_commits``, written."""

    partitions: pa.Table
    partitions_path: str
    commits: pa.Table
    commits_path: str
    bad_numbers: frozenset[int]
    """Records of which some rows were bad."""


class Feed(Protocol):
    """Runs the plans over one wave."""

    def run(self, wave: Wave) -> list[Answer]:
        """The answers of all buckets, in order."""


def buckets_for(rows: int, so_far: int) -> int:
    """Into how many buckets this many rows are cut; never into fewer than so far."""
    wanted = 1 if rows <= BUCKET_ROWS_MAX[0] else 2 if rows <= BUCKET_ROWS_MAX[1] else 4
    return max(wanted, so_far)


class FileFeed:
    """Plans made once, over files."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._folder = Path(tempfile.mkdtemp(prefix="partiscope-feed-"))
        self.small = Slot(session, self._folder / "small")
        self.large: list[Slot] = []
        self._free: SimpleQueue[Slot] = SimpleQueue()
        self._cores = session.sparkContext.defaultParallelism
        self._threads = ThreadPoolExecutor(self._cores)

    def run(self, wave: Wave) -> list[Answer]:
        fresh = sum(sum((head.rows or {}).values()) for _, head in wave.heads)
        so_far = max(1, len(wave.state.partitions))
        count = buckets_for(max(wave.state.rows, fresh), so_far)
        if count == 1:
            return [_run(self.small, wave, bucket=0, buckets=1)]
        self._make_large()
        return list(self._threads.map(partial(self._take, wave, count), range(count)))

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

    def _take(self, wave: Wave, buckets: int, bucket: int) -> Answer:
        slot = self._free.get()
        try:
            return _run(slot, wave, bucket=bucket, buckets=buckets)
        finally:
            self._free.put(slot)


def _run(slot: Slot, wave: Wave, *, bucket: int, buckets: int) -> Answer:
    slot.clear()
    for kind in ("replicas", "commits"):
        slot.give_lines(kind, wave.lines(kind, bucket, buckets))
    slot.give_lines("known", wave.known_lines())
    slot.give_lines("groups", wave.group_lines())
    _give_state(slot, "partitions", wave, bucket, buckets)
    found = slot.partitions_plan.toArrow()
    path = wave.put("partitions", str(bucket), there := found.filter(found["is_partition"]))
    commits = slot.no_commits
    if wave.has_commits:
        _give(slot, "logs", path, wave.files)
        _give_state(slot, "commits", wave, bucket, buckets)
        commits = slot.commits_plan.toArrow()
    return _answer(found, there, path, commits, partial(wave.put, "commits", str(bucket)))


def _answer(
    found: pa.Table, there: pa.Table, path: str, commits: pa.Table, put: Callable[[pa.Table], str]
) -> Answer:
    """Put the nameless rows of bad records apart from the others."""
    bad_rows = found.filter(pc.equal(found["topic"], ""))["members"].to_pylist()
    bad = {member["broker"] for members in bad_rows for member in members}
    is_bad = pc.equal(commits["topic"], "")
    if pc.any(is_bad).as_py():
        for numbers in commits.filter(is_bad)["bad_numbers"].to_pylist():
            bad |= set(numbers)
        commits = commits.filter(pc.invert(is_bad))
    commits = commits.drop_columns(["bad_numbers"])
    return Answer(
        partitions=there,
        partitions_path=path,
        commits=commits,
        commits_path=put(commits),
        bad_numbers=frozenset(bad),
    )


def _give(slot: Slot, name: str, path: str, files: StoreFiles) -> None:
    if files.is_local:
        slot.link_state(name, files.absolute(path))
    else:
        slot.give_state(name, files.read_whole(path))


def _give_state(slot: Slot, name: str, wave: Wave, bucket: int, buckets: int) -> None:
    """The bucket's state; taken out of all files where the cut was another one before."""
    paths = wave.state.partitions if name == "partitions" else wave.state.commits
    if len(paths) == buckets:
        _give(slot, name, paths[bucket], wave.files)
    elif paths:
        whole = pa.concat_tables([wave.files.read_whole(path) for path in paths])
        slot.give_state(name, rows_of_bucket(whole, bucket, buckets))


def rows_of_bucket(table: pa.Table, bucket: int, buckets: int) -> pa.Table:
    """The rows whose topic is in this bucket of so many."""
    topics = table["topic"].combine_chunks().dictionary_encode()
    places = np.array([bucket_of(topic) for topic in topics.dictionary.to_pylist()], np.int64)
    if not places.size:
        return table
    return table.filter(pa.array(places[topics.indices.to_numpy()] % buckets == bucket))


class FrameFeed:
    """The same as frames of this very batch: for executors that are elsewhere."""

    def __init__(self, session: SparkSession) -> None:
        self._session = compiled_session(session)

    def run(self, wave: Wave) -> list[Answer]:
        known = known_frame(self._lines(list(wave.known_lines())))
        found = newest_partitions(
            sample_rows(self._lines(list(wave.lines("replicas", 0, 1))), "replicas"),
            self._state("partitions", wave.state.partitions, wave.files),
            known,
            is_single=False,
        ).toArrow()
        there = found.filter(found["is_partition"])
        path = wave.put("partitions", "0", there)
        commits = newest_commits(
            sample_rows(self._lines(list(wave.lines("commits", 0, 1))), "commits"),
            self._state("commits", wave.state.commits, wave.files),
            partitions=self._state("partitions", [path], wave.files),
            known=known,
            groups=groups_frame(self._lines(list(wave.group_lines()))),
            is_single=False,
        ).toArrow()
        return [_answer(found, there, path, commits, partial(wave.put, "commits", "0"))]

    def _lines(self, lines: Sequence[str]) -> DataFrame:
        return self._session.createDataFrame(pa.table({"line": pa.array(lines, pa.string())}))

    def _state(self, name: str, paths: Sequence[str], files: StoreFiles) -> DataFrame:
        reader = self._session.read.schema(STATES[name])
        if not paths:
            return self._session.createDataFrame([], STATES[name])
        return reader.parquet(*(files.hadoop_url(path) for path in paths))


def build_feed(session: SparkSession) -> FileFeed | FrameFeed:
    """The feed that fits where the session's executors are."""
    master = session.sparkContext.master or ""
    return FileFeed(session) if master.startswith("local") else FrameFeed(session)
