"""What a reader keeps of files of history goes when these files are merged."""

import time
from pathlib import Path

from spark_metrics.window.aggregates import AggregatesReader
from tests.support.at_once import AtOnce
from tests.support.store_builder import CLUSTER, StoreBuilder, SyntheticSizes

SIZES = SyntheticSizes(topics=1, partitions=1, groups=1)
VERSIONS = 60


def test_of_files_that_were_merged_nothing_is_kept(tmp_path: Path) -> None:
    builder, reader = StoreBuilder(tmp_path, executor=AtOnce()), AggregatesReader(str(tmp_path))
    lookup, seen = reader._opened._lookup, set[str]()
    at_ms = time.time_ns() // 1_000_000
    for number in range(VERSIONS):
        named = builder.write_synthetic(SIZES, history_s=0, at_ms=at_ms + 1_000 * number).paths()
        reader.topic_history(topic="topic-0", cluster=CLUSTER, since_ms=at_ms, until_ms=at_ms * 2)
        kept = {key[0] for key in (*lookup._footers._kept, *lookup._kept._kept)}
        assert kept <= named
        seen |= kept
    assert seen - named, "some were merged"
