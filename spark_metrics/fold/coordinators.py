"""Looks up groups and their coordinators for each commit. Pure.

A few hundred names beside a million rows: NumPy looks them up in milliseconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spark_metrics.keys import coded
from spark_metrics.state.job_state import KnownBroker


def with_alive(rows: pa.Table, alive: Mapping[tuple[str, str], int]) -> pa.Table:
    """The commits with when their group committed anything last."""
    clusters, groups = _coded(rows["cluster"]), _coded(rows["group_id"])
    names = [(cluster, group) for cluster in clusters[0] for group in groups[0]]
    alive_ms = pa.array([alive.get(name) for name in names], pa.int64())
    places = clusters[1] * len(groups[0]) + groups[1]
    return rows.append_column("alive_ms", alive_ms.take(pa.array(places)))


def still_reported(commits: pa.Table, brokers: Sequence[KnownBroker]) -> pa.Table:
    """Leave out the commits that their coordinator's newest complete round left out.

    … and without those of a coordinator that fell silent too long ago. ``commits``: the answer
    of ``fold.commits.newest_commits``, named.
    """
    if not commits.num_rows:
        return commits
    clusters, codes = _coded(commits["cluster"])
    sources = commits["source"].to_numpy()
    since_ms = np.zeros(commits.num_rows, np.int64)
    for code, cluster in enumerate(clusters):
        bounds = sorted(
            (it.broker, max(it.complete_ms, it.silent_ms))
            for it in brokers
            if it.cluster == cluster
        )
        if not bounds:
            continue
        ids, each_ms = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
        places = np.minimum(np.searchsorted(ids, sources), len(ids) - 1)
        is_of = (codes == code) & (ids[places] == sources)
        since_ms = np.where(is_of, each_ms[places], since_ms)
    is_reported = commits["round_ms"].to_numpy() >= since_ms
    return commits if is_reported.all() else commits.filter(pa.array(is_reported))


def _coded(column: pa.ChunkedArray) -> tuple[list[str], Any]:
    """The different texts, and which of them each row has."""
    texts = coded(column)
    return texts.dictionary.to_pylist(), texts.indices.to_numpy().astype(np.int64)
