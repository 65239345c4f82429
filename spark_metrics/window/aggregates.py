"""The window of the metrics job: what its store holds, and how to read it.

The store is a folder (or any URL that Spark and pyarrow both reach) of Parquet files and one
``manifest.json``, written last and replaced atomically; a reader opens only what it names.
"Now" holds the newest state of everything; history holds what changed over time.

Names end in their unit. Null means unknown (shown as n/a), never 0. Times are milliseconds
since the epoch, UTC. Every row carries the time at which its source read it.

    reader = AggregatesReader(store)
    now = reader.now()                      # None until the first version is committed
    now.tables["partitions"]                # an Arrow table of exactly the schema PARTITIONS
    reader.topic_history(cluster=..., topic=..., since_ms=..., until_ms=...)
    reader.as_of(cluster=..., at_ms=...)    # "now" as it was then
    reader.history_files("commit_history", span="minute")   # for an engine of your own
"""

from spark_metrics.read.reader import Aggregates, AggregatesReader, HistoryFiles
from spark_metrics.store.existing import set_aside_folders
from spark_metrics.window.errors import MetricsError, StoreUnreadableError
from spark_metrics.window.history_points import (
    ALL_BROKERS,
    BROKER_HISTORY,
    COMMIT_HISTORY,
    GROUP_HISTORY,
    HISTORY_TABLES,
    JOB_HISTORY,
    PARTITION_HISTORY,
    TOPIC_HISTORY,
)
from spark_metrics.window.tables import (
    BROKERS,
    COMMITS,
    GROUPS,
    HEALTH,
    NOW_TABLES,
    PARTITIONS,
    REPLICAS,
)

__all__ = [
    "ALL_BROKERS",
    "BROKERS",
    "BROKER_HISTORY",
    "COMMITS",
    "COMMIT_HISTORY",
    "GROUPS",
    "GROUP_HISTORY",
    "HEALTH",
    "HISTORY_TABLES",
    "JOB_HISTORY",
    "NOW_TABLES",
    "PARTITIONS",
    "PARTITION_HISTORY",
    "REPLICAS",
    "TOPIC_HISTORY",
    "Aggregates",
    "AggregatesReader",
    "HistoryFiles",
    "MetricsError",
    "StoreUnreadableError",
    "set_aside_folders",
]
