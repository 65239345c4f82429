"""Rounds of samples, folded batch by batch as the job does it, in this process without Spark."""

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from broker.metrics_schema import Envelope, Row, encode_round
from spark_metrics.buckets.shares import read_rows
from spark_metrics.buckets.waves import Known, judge
from spark_metrics.decode.record_head import KafkaRecord, read_head
from spark_metrics.fold.bucket import NO_PARTITIONS, BucketState, Folded, fold_bucket
from spark_metrics.fold.names import NOBODY
from spark_metrics.fold.now_tables import group_table
from spark_metrics.state.job_state import JobState
from spark_metrics.state.known_groups import RegisteredGroup
from spark_metrics.state.source_clocks import corrections

CLUSTER: Final = "c"
RECORDS_MAX: Final = 1_000_000


@dataclass
class FoldedRounds:
    """Rounds of sources; times are milliseconds since 1970."""

    memory: JobState = field(default_factory=JobState)
    state: BucketState = field(
        default_factory=lambda: BucketState(partitions=NO_PARTITIONS, commits=NOBODY)
    )
    groups: list[RegisteredGroup] = field(default_factory=list)
    alive: dict[tuple[str, str], int] = field(default_factory=dict)
    bad_records: int = 0
    _values: list[tuple[int | None, bytes]] = field(default_factory=list)

    def round(
        self,
        broker: int,
        at_ms: int,
        *rows: Row,
        cluster: str = CLUSTER,
        broker_epoch: int = 1,
        sent_ms: int | None = None,
    ) -> None:
        """A whole round of a broker, which the next batch takes in. ``sent_ms``: by its own clock;
        None: as the job's."""
        envelope = Envelope(
            cluster=cluster,
            broker=broker,
            broker_epoch=broker_epoch,
            round_ms=at_ms,
            interval_ms=1_000,
        )
        self._values += [(sent_ms, value) for value in encode_round(envelope, rows)]

    def batch(self, at_ms: int) -> Folded:
        """Fold what was told since the last batch."""
        heads = [
            read_head(
                KafkaRecord(
                    partition=0,
                    offset=number,
                    timestamp_ms=at_ms if sent_ms is None else sent_ms,
                    value=value,
                )
            )
            for number, (sent_ms, value) in enumerate(self._values)
        ]
        self._values.clear()
        known = Known(
            memory=self.memory,
            groups=self.groups,
            alive=self.alive,
            seen_ms=at_ms,
            at_ms=at_ms,
            records_max=RECORDS_MAX,
        )
        judged = judge(known, heads)
        waves = []
        for wave in judged.waves:
            rows, bad = read_rows(wave.records)
            self.bad_records += len(bad)
            waves.append((rows, wave.around))
        behind = corrections(known.memory.clocks, judged.memory.clocks)
        folded = fold_bucket(self.state, behind, waves)
        self.memory, self.groups, self.state = judged.memory, judged.groups, folded.state
        groups: pa.Table = group_table(judged.groups, folded.sums)
        self.alive = {
            (row["cluster"], row["group_id"]): row["committed_ms"]
            for row in groups.to_pylist()
            if row["committed_ms"] is not None
        }
        return folded

    def group_rows(self, folded: Folded) -> list[dict[str, Any]]:
        """The figures of groups after a batch."""
        found: list[dict[str, Any]] = group_table(self.groups, folded.sums).to_pylist()
        return found
