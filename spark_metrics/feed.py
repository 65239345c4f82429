"""Folds a wave: rows of samples and the state of before become the state of now, in files.

Large clusters are cut into *buckets* of partitions that need nothing of each other; they are folded
side by side. What a bucket's figures are is told by ``spark_metrics.fold``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.brought import met
from spark_metrics.clock_corrections import corrected_commits, corrected_partitions
from spark_metrics.clocks import Correction
from spark_metrics.coordinators import told_still, with_alive
from spark_metrics.decode.record_head import Head
from spark_metrics.decode.record_rows import cut_rows
from spark_metrics.fold.commits import newest_commits
from spark_metrics.fold.partitions import newest_partitions
from spark_metrics.gather import gather
from spark_metrics.logs import logs_of
from spark_metrics.memory import KnownBroker
from spark_metrics.names import NAMES, NOBODY, aligned, named, names_of
from spark_metrics.schema import COMMIT_STATE, PARTITION_STATE, arrow_schema
from spark_metrics.shares import Rows, Share, rows_told, shares
from spark_metrics.store.files import StoreFiles
from spark_metrics.tables import COMMITS

BUCKET_ROWS_MAX: Final = (4_000, 400_000, 800_000)
"""Up to so many replicas and commits: one bucket; then two, four and eight.

A bucket's rows are in memory several times while it is under way, those of others once.
"""
_NO_PARTITIONS: Final = arrow_schema(PARTITION_STATE).empty_table()


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
    """One bucket's figures and state, written."""

    partitions: pa.Table
    partitions_path: str
    commits: pa.Table
    commits_path: str
    names: pa.Table
    """Of the commits as they are in their file."""


def buckets_for(rows: int, so_far: int) -> int:
    """Into how many buckets this many rows are cut; never into fewer than so far."""
    return max(1 << sum(rows > most for most in BUCKET_ROWS_MAX), so_far)


class Feed:
    """Folds one wave after the other; remembers names of commits from wave to wave."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._names = Names()

    def run(self, wave: Wave) -> list[Answer]:
        """The answers of all buckets, in order."""
        rows = max(wave.state.rows, rows_told(wave.records))
        count = buckets_for(rows, so_far=max(1, len(wave.state.partitions)))
        answers = list(self._threads.map(partial(self._fold, wave), wave.take(count)))
        self._names.keep(answers)
        return answers

    def _fold(self, wave: Wave, share: Share) -> Answer:
        brought = wave.rows_of(share)
        told = brought.commits
        there = _present(
            newest_partitions(gather(brought.replicas), _partitions(wave, share), wave.known)
        )
        del brought
        known, state = self._commits(wave, share)
        state = corrected_commits(known, state, wave.state.corrections)
        beside = aligned(with_alive(told, wave.alive), known, there)
        rows, carried = met(beside.fresh, state)
        commits = told_still(
            named(newest_commits(rows, logs_of(there)), beside, carried), wave.known
        )
        part = str(share.bucket)
        return Answer(
            partitions=there,
            partitions_path=wave.put("partitions", part, there),
            commits=commits.select(_TOLD_COMMITS),
            commits_path=wave.put("commits", part, commits),
            names=commits.select(NAMES),
        )

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


def _partitions(wave: Wave, share: Share) -> pa.Table:
    """The state of the bucket's partitions."""
    before = wave.state.partitions
    if not before:
        return _NO_PARTITIONS
    file = share.file_of(before)
    known = _rows_of(share, wave.files, before) if file is None else wave.files.read_whole(file)
    return corrected_partitions(known, wave.state.corrections)


_TOLD_COMMITS: Final = [*COMMITS.names, "is_fresh"]


def _present(found: pa.Table) -> pa.Table:
    """Without the partitions that are deleted; usually that is none."""
    is_there = found["is_partition"]
    return found if pc.all(is_there, min_count=0).as_py() else found.filter(is_there)
