"""One pair of plans, made once, and the files of fixed names that they read.

Planning a query takes Spark many times as long as running it over a small batch. An action on a
DataFrame reads its files anew, so a plan over files can be executed again for every batch, as
long as it has no shuffle, whose files Spark would keep.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from spark_metrics.group_lag import newest_commits
from spark_metrics.nullability import declared
from spark_metrics.schema import (
    GATHERED,
    LOGS,
    MET_COMMITS,
    PARTITION_STATE,
    ddl,
)
from spark_metrics.store.files import conform
from spark_metrics.transform import newest_partitions

LISTED_BYTES: Final = 1 << 36
TABLES: Final = {
    "partitions": ddl(PARTITION_STATE),
    "fresh_replicas": ddl(GATHERED),
    "commits": ddl(MET_COMMITS),
    "logs": ddl(LOGS),
}

KNOWN: Final = "known"
_LINES: Final = """SELECT /*+ COALESCE(1) */ explode(split(CAST(content AS STRING), '\\n')) AS line
FROM {file}"""
_KNOWN: Final = """WITH each AS (SELECT split(line, '\\t') AS part FROM {lines})
SELECT part[0] AS cluster, CAST(part[1] AS INT) AS broker, CAST(part[2] AS BIGINT) AS complete_ms,
  CAST(part[3] AS BIGINT) AS fenced_ms, CAST(part[4] AS BIGINT) AS lost_ms,
  CAST(part[5] AS BIGINT) AS told_ms, CAST(part[6] AS BIGINT) AS patience_ms
FROM each WHERE size(part) = 7"""


def known_frame(lines: DataFrame) -> DataFrame:
    """``memory.KnownBroker`` of each line ``CLUSTER BROKER COMPLETE FENCED LOST TOLD PATIENCE``."""
    return lines.sparkSession.sql(_KNOWN, lines=lines)


class Slot:
    """Used by one thread at a time."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._folder = folder
        self._schemas: dict[str, Any] = {
            name: to_arrow_schema(session.createDataFrame([], columns).schema)
            for name, columns in TABLES.items()
        }
        self.clear()
        tables = {name: self._table_frame(session, name) for name in TABLES}
        self.partitions_plan = newest_partitions(
            tables["fresh_replicas"],
            tables["partitions"],
            known_frame(self._line_frame(session)),
            is_single=True,
        )
        self.commits_plan = newest_commits(tables["commits"], logs=tables["logs"], is_single=True)
        # Plans are made by the first action; over no rows that is all it does.
        self.partitions_plan.toArrow()
        self.no_commits = self.commits_plan.toArrow()

    def clear(self) -> None:
        """Files that hold nothing."""
        # Systems clean their folder of temporary files while the job runs on for weeks.
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.give_known(())
        for name in TABLES:
            self.give_table(name, None)

    def give_known(self, lines: Iterable[str]) -> None:
        """What is known of the brokers, as ``known_frame`` reads it."""
        # Never empty: Spark would leave an empty file out of the plan.
        (self._folder / KNOWN).write_text("\n".join(lines) + "\n")

    def give_table(self, name: str, table: pa.Table | None) -> None:
        """Have the plan read these rows; None: nothing."""
        target, schema = self._target(name), self._schemas[name]
        rows = schema.empty_table() if table is None else conform(table, schema)
        texts = [item.name for item in schema if item.type == pa.string()]
        pq.write_table(
            declared(rows), target, compression="none", use_dictionary=texts, write_statistics=False
        )

    def link_table(self, name: str, path: str) -> None:
        """Have the plan read this local file, which may have more columns."""
        self._target(name).symlink_to(path)

    def _target(self, name: str) -> Path:
        target = self._folder / f"{name}.parquet"
        target.unlink(missing_ok=True)
        return target

    def _line_frame(self, session: SparkSession) -> DataFrame:
        file = session.read.format("binaryFile").load(str(self._folder / KNOWN))
        return session.sql(_LINES, file=file)

    def _table_frame(self, session: SparkSession, name: str) -> DataFrame:
        """A frame over a Parquet file that may be replaced by a larger one.

        Spark looks at a file's size once, when the frame is made, and never reads beyond it. So
        it is made over a file that claims to be very large (and takes no more space for it).
        """
        path = self._folder / f"{name}.parquet"
        size_bytes = path.stat().st_size
        os.truncate(path, LISTED_BYTES)
        frame = session.read.schema(TABLES[name]).parquet(str(path)).coalesce(1)
        os.truncate(path, size_bytes)
        return frame
