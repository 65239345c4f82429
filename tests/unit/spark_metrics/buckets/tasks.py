"""Tasks of executors without Spark: each folds its bucket of batch after batch in this process."""

import time
from collections.abc import Sequence
from pathlib import Path

from spark_metrics.buckets.judged_batch import StateBefore, judge
from spark_metrics.buckets.on_executors import TaskResult, fold_records
from spark_metrics.buckets.plan import FoldPlan
from spark_metrics.decode.record_head import Head
from spark_metrics.state.job_clock import Tick
from spark_metrics.state.job_state import JobState
from spark_metrics.store.files import StoreFiles

T0_MS = 1_800_000_000_000


class Tasks:
    """The tasks of batch after batch, one after the other, without Spark."""

    def __init__(self, store: Path, count: int) -> None:
        self._store, self._count = str(store), count
        self._version = 0
        self.cpu_s: list[float] = []
        """What each task took."""
        self._state = JobState().begun(Tick(wall_ms=T0_MS, boot="b", steady_ms=0))
        self._now: dict[str, list[str]] = {}
        StoreFiles(self._store).make_folders("now", "history")

    def batch(self, heads: Sequence[Head]) -> list[TaskResult]:
        """Their answers to a batch; each is handed the records that Spark would hand it."""
        self._version += 1
        plan = FoldPlan(
            store=self._store,
            version=self._version,
            buckets=self._count,
            now=self._now,
            before=StateBefore(
                memory=self._state,
                groups=(),
                alive={},
                at_ms=T0_MS,
                records_max=1_000,
                compares_clocks=False,
            ),
        )
        made = []
        for bucket in range(self._count):
            records = [it.record for it in heads if bucket in it.buckets(self._count)]
            began_s = time.process_time()
            made.append(fold_records(plan, bucket, records))
            self.cpu_s.append(time.process_time() - began_s)
        paths = [it.folded.paths for it in made]
        self._now = {name: [each[name] for each in paths] for name in paths[0]}
        told = sorted((head for it in made for head in it.heads), key=lambda it: it.record.offset)
        self._state = judge(plan.before, told).memory
        return made
