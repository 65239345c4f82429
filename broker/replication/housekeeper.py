"""What a node does every few seconds for all its partitions together."""

import asyncio
from typing import Final

from broker.clock import Clock
from broker.log.log_manager import LogManager
from broker.replication.events import IsrScanDue, LogStartMoved
from broker.replication.host import PartitionHost

ISR_SCAN_MS_MAX: Final = 5_000


class Housekeeper:
    """ISR scans and high watermark checkpoints; idle partitions cost next to nothing."""

    def __init__(
        self,
        *,
        host: PartitionHost,
        logs: LogManager,
        clock: Clock,
        lag_time_ms_max: int,
        checkpoint_ms: int,
    ) -> None:
        self._host = host
        self._logs = logs
        self._clock = clock
        self._scan_ms = max(min(lag_time_ms_max // 2, ISR_SCAN_MS_MAX), 1)
        self._checkpoint_ms = checkpoint_ms
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Begin; needs a running loop."""
        self._schedule_scan()
        self._schedule_checkpoint()

    def close(self) -> None:
        """Stop, after a last checkpoint."""
        for timer in self._timers.values():
            timer.cancel()
        self.write_checkpoints()

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        """Of every partition, for checkpoints and retention."""
        return {key: p.state.high_watermark for key, p in self._host.by_name.items()}

    def write_checkpoints(self) -> None:
        """Begin to write the high watermarks when one has moved since the last time."""
        if self._host.has_unsaved_high_watermark:
            self._logs.write_checkpoints(self.high_watermarks())
            self._host.has_unsaved_high_watermark = False

    def scan(self) -> None:
        """Look for followers that lag, and for log starts that retention has moved."""
        now_ms = self._clock.monotonic_ms()
        for partition in list(self._host.partitions()):
            start = partition.log.log_start_offset
            if start > partition.state.log_start_offset:
                self._host.apply(partition, LogStartMoved(start))
            if partition.state.needs_scan:
                self._host.apply(partition, IsrScanDue(now_ms=now_ms))

    def _schedule_scan(self) -> None:
        loop = asyncio.get_running_loop()
        self._timers["scan"] = loop.call_later(self._scan_ms / 1000, self._scan_due)

    def _scan_due(self) -> None:
        self._schedule_scan()
        self.scan()

    def _schedule_checkpoint(self) -> None:
        loop = asyncio.get_running_loop()
        delay_s = self._checkpoint_ms / 1000
        self._timers["checkpoint"] = loop.call_later(delay_s, self._checkpoint_due)

    def _checkpoint_due(self) -> None:
        self._schedule_checkpoint()
        self.write_checkpoints()
