"""Known brokers, looked up by cluster and id. Pure."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spark_metrics.figures.column import Column
from spark_metrics.keys import coded
from spark_metrics.state.job_state import KnownBroker

_IDS: Final = 1 << 33
"""More than there are ids of brokers, those below 0 included."""


class KnownBrokers:
    """A look-up for rows of these clusters."""

    def __init__(self, brokers: Sequence[KnownBroker], clusters: pa.ChunkedArray) -> None:
        names = coded(clusters)
        self._clusters = names.indices.to_numpy().astype(np.int64)
        codes = {name: code for code, name in enumerate(names.dictionary.to_pylist())}
        of_these = sorted(
            ((codes[it.cluster] * _IDS + it.broker, it) for it in brokers if it.cluster in codes),
            key=lambda keyed: keyed[0],
        )
        self._keys = np.array([key for key, _ in of_these], np.int64)
        self._brokers = [it for _, it in of_these]
        heard_ms = {codes[it.cluster]: 0 for it in self._brokers}
        for it in self._brokers:
            heard_ms[codes[it.cluster]] = max(heard_ms[codes[it.cluster]], it.orphans_heard_ms)
        self._heard_ms = pa.array([heard_ms.get(code) for code in range(len(codes))], pa.int64())

    def of(self, field: str, brokers: Column, rows: Any = None) -> Column:
        """A field of each broker; unknown where the broker is. ``rows``: whose clusters count."""
        values = pa.array([getattr(it, field) for it in self._brokers], pa.int64())
        clusters = self._clusters if rows is None else self._clusters[rows]
        keys = clusters * _IDS + brokers.or_else(0).numpy()
        places = np.searchsorted(self._keys, keys)
        is_there = np.append(self._keys, -_IDS)[places] == keys
        return Column(values.take(pa.array(places, mask=~(is_there & brokers.is_known.numpy()))))

    @property
    def orphans_heard_ms(self) -> Column:
        """When the orphans of each row's cluster were told last."""
        return Column(self._heard_ms.take(pa.array(self._clusters)))
