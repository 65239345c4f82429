"""Tasks of a node every few seconds, for all its partitions together."""

from collections.abc import Iterator
from typing import Final

from broker.background import Rounds, attempt
from broker.clock import Clock
from broker.log.log_manager import LogManager
from broker.replication.partition.events import IsrScanDue, LogStartMoved
from broker.replication.partition.partition import Partition
from broker.replication.partition.partition_effects import PartitionEffects

ISR_SCAN_MS_MAX: Final = 5_000


class IsrScanAndCheckpoint:
    """ISR scans and high watermark checkpoints; idle partitions cost next to nothing."""

    def __init__(
        self,
        *,
        replicas: PartitionEffects,
        logs: LogManager,
        clock: Clock,
        lag_time_ms_max: int,
        checkpoint_ms: int,
    ) -> None:
        self._replicas = replicas
        self._logs = logs
        self._clock = clock
        scan_ms = max(min(lag_time_ms_max // 2, ISR_SCAN_MS_MAX), 1)
        self._rounds = (
            Rounds("scan of in-sync replicas", scan_ms, self.scan),
            Rounds("checkpoint of high watermarks", checkpoint_ms, self.checkpointing),
        )

    def start(self) -> None:
        """Begin; needs a running loop."""
        for each in self._rounds:
            each.start()

    async def close(self) -> None:
        """Stop, after a last checkpoint."""
        for each in self._rounds:
            await each.stop()
        self._logs.write_checkpoints(dict(self.high_watermarks()))

    def high_watermarks(self) -> Iterator[tuple[tuple[str, int], int]]:
        """High watermarks of every partition, each as it is when its turn comes."""
        for key, partition in list(self._replicas.by_name.items()):
            if self._replicas.by_name.get(key) is partition:
                yield key, partition.state.high_watermark

    def checkpointing(self) -> Iterator[None]:
        """Begin to write the high watermarks when one has moved since the last time."""
        if self._replicas.has_unsaved_high_watermark:
            self._replicas.has_unsaved_high_watermark = False
            # At a stretch: a topic that is deleted and made anew meanwhile must not get an old one.
            yield from self._logs.checkpointing(dict(self.high_watermarks()))

    def scan(self) -> Iterator[None]:
        """Look for followers that lag, and for log starts that retention has moved."""
        for key, partition in list(self._replicas.by_name.items()):
            if self._replicas.by_name.get(key) is partition:
                attempt("scan of in-sync replicas", self._scan, partition)
            yield

    def _scan(self, partition: Partition) -> None:
        start = partition.log.log_start_offset
        if start > partition.state.log_start_offset:
            self._replicas.apply(partition, LogStartMoved(start))
        if partition.state.needs_scan:
            self._replicas.apply(partition, IsrScanDue(now_ms=self._clock.monotonic_ms()))
