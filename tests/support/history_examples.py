"""Examples of docs/reference/history.md over the store's own files, as they stand there."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.at_once import AtOnce
from tests.support.node_cluster import ROOT
from tests.support.store_builder import CLUSTER, StoreBuilder

DOCUMENT: Final = ROOT / "docs" / "reference" / "history.md"
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A store, and what was written of one partition and of all groups."""

    store: str
    partition: list[tuple[int, int]]
    lags: list[tuple[str, int, int]]


def write_examples(folder: Path) -> Written:
    """Two weeks, a version every five hours with two readings in each of two minutes; all but the
    newest were merged into minutes. A lag falls within its minute."""
    builder = StoreBuilder(folder / "store", executor=AtOnce())
    now_ms = time.time_ns() // 1_000_000
    newest_ms = now_ms // MINUTE_MS * MINUTE_MS
    times = [
        newest_ms - ago + place
        for ago in range(14 * DAY_MS, -1, -5 * HOUR_MS)
        for place in (-MINUTE_MS + 1_000, -MINUTE_MS + 2_000, -30_000, -29_000)
    ]
    for start in range(0, len(times), 4):
        each = times[start : start + 4]
        builder.write(
            {},
            partition_history=[
                {**_key(topic), "partition": 3, "at_ms": at_ms, "high_watermark": at_ms // 1_000}
                for at_ms in each
                for topic in ("orders", "payments")
            ],
            group_history=[
                {"cluster": CLUSTER, "group_id": group, "at_ms": at_ms, "lag": lag - at_ms % 7_000}
                for at_ms in each
                for group, lag in (("billing", 100_000), ("search", 9_000))
            ],
        )
    day = [at_ms for at_ms in times if at_ms >= now_ms - DAY_MS]
    week = [at_ms for at_ms in times if at_ms >= now_ms - 7 * DAY_MS]
    hours = sorted({at_ms // HOUR_MS for at_ms in week})
    return Written(
        store=str(builder.folder),
        partition=[(at_ms, at_ms // 1_000) for at_ms in day],
        lags=[
            (group, hour, max(lag - at % 7_000 for at in week if at // HOUR_MS == hour))
            for group, lag in (("billing", 100_000), ("search", 9_000))
            for hour in hours
        ],
    )


def _key(topic: str) -> dict[str, Any]:
    return {"cluster": CLUSTER, "topic": topic}


def blocks() -> Mapping[str, str]:
    """Python of the section, by the engine that is named before it."""
    (section,) = re.findall(
        r"^## From the store's own files$(.*?)^## ", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL
    )
    found = re.findall(r"^([^\n]+):\n\n```python\n(.*?)```", section, re.MULTILINE | re.DOTALL)
    return dict(found)


def must_read(written: Written, engine: str) -> None:
    """The engine finds each reading of the day at its newest, and the greatest lags."""
    by_engine = blocks()
    (first,) = [it for it in by_engine if "week" in it]
    known: dict[str, Any] = {}
    exec(by_engine[first].replace("data/store", written.store), known)
    assert len(known["day"].paths) > 1
    exec(by_engine[engine], known)
    last_of_minute = {at // MINUTE_MS: (at, mark) for at, mark in written.partition}
    read = {at // MINUTE_MS: (at, mark) for at, mark in map(tuple, known["partition"])}
    assert read == last_of_minute
    assert [tuple(row) for row in known["lags"]] == written.lags
