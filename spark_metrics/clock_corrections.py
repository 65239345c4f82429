"""Commits in the state that were read before the clock of their coordinator was known. Pure.

A clock that is behind is known only after some batches (``spark_metrics.clocks``). The commits read
until then have times that are too early, and were paired with end offsets that are too old. Speeds
and trends that begin with such a reading would be wrong for a minute. So its times are set right,
and speeds and trends begin anew.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.clocks import Correction
from spark_metrics.keys import coded

_TIMES: Final = (
    *("read_ms", "commit_ms", "first_ms", "still_since_ms", "moved_ms", "rewind_ms", "alive_ms"),
    *("wait_a_ms", "wait_a_commit_ms", "wait_b_ms", "wait_b_commit_ms"),
)
"""By the coordinator's clock."""
_ANCHORS: Final = (
    *("speed_a_ms", "speed_a_offset", "speed_a_lag", "speed_b_ms", "speed_b_offset"),
    *("speed_b_lag", "trend_a_ms", "trend_a_lag", "trend_b_ms", "trend_b_lag"),
)
_NEWEST: Final = ("wait_b_ms", "wait_a_ms", "read_ms")


def corrected(names: pa.Table, state: pa.Table, corrections: Sequence[Correction]) -> pa.Table:
    """The state of commits (``schema.COMMIT_STATE``) after these corrections.

    ``names``: of its rows (``names.names_of``).
    """
    if not corrections or not state.num_rows:
        return state
    by_ms = _by_ms(names, state, corrections)
    is_early = pa.array(by_ms > 0)
    ahead = pa.array(by_ms)
    for name in (it for it in (*_TIMES, *_ANCHORS) if it in state.column_names):
        place = state.schema.get_field_index(name)
        column = state[name]
        known: Any = pc.add(column, ahead)
        if name in _ANCHORS:
            known = pc.if_else(is_early, pa.scalar(None, column.type), column)
        state = state.set_column(place, name, known)
    return state


def _by_ms(names: pa.Table, state: pa.Table, corrections: Sequence[Correction]) -> Any:
    """By how much each row's times are too early; 0: they are right."""
    newest = pc.coalesce(*(state[name] for name in _NEWEST))
    newest_ms = pc.fill_null(newest, 0).to_numpy()
    sources = pc.fill_null(state["source"], -1).to_numpy()
    clusters = coded(names["cluster"])
    codes = clusters.indices.to_numpy()
    by_ms = np.zeros(state.num_rows, np.int64)
    for it in corrections:
        code = clusters.dictionary.index(it.source.cluster).as_py()
        is_of = (codes == code) & (sources == it.source.broker) & (newest_ms < it.until_ms)
        by_ms[is_of] = it.by_ms
    return by_ms
