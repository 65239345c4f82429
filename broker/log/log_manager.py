"""All logs of one data directory: opened at start, kept up while running, closed in order.

`upkeep` is the only periodic work: retention, delayed deletions, compaction, checkpoints, and
forcing sealed segments to the disk. What may take the disk seconds or minutes is done in threads.
Source: kafka.log.LogManager (Kafka 4.x).
"""

import logging
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final
from uuid import UUID

from broker.clock import Clock
from broker.log.checkpoint.checkpoint_format import TopicPartition
from broker.log.checkpoint.file_writer import FileWriter
from broker.log.checkpoint.offset_checkpoints import CheckpointFiles
from broker.log.cleaner.log_cleaner import CleanableLogs, Cleaner
from broker.log.config import LogConfig
from broker.log.data_directory import DataDirectory
from broker.log.disk.delayed_delete import Remover, RetiredFiles
from broker.log.disk.disk_health import DiskHealth
from broker.log.disk.durable import rename
from broker.log.disk.flush import Flusher
from broker.log.errors import LogError, StorageError, storage_error
from broker.log.load.metadata_check import MetadataCheck
from broker.log.names import (
    DELETE_DIRECTORY_SUFFIX,
    METADATA_TOPIC_ID,
    check_topic_partition,
    deleted_directory_name,
    parse_partition_directory,
    partition_directory_name,
)
from broker.log.partition_log import PartitionLog, settle_topic_id
from broker.log.segment.open_files import FilePool, raise_open_files_limit
from broker.metadata.topic_names import METADATA_TOPIC

_logger: Final = logging.getLogger(__name__)
RETENTION_CHECK_MS: Final = 300_000
RETENTION_INITIAL_DELAY_MS: Final = 30_000
CHECKPOINT_MS: Final = 60_000
PRODUCER_ID_EXPIRATION_MS: Final = 86_400_000
CLOSE_THREADS: Final = 16
_METADATA: Final = (METADATA_TOPIC, 0)
_WHOLE: Final = MetadataCheck()


class LogManager:
    """The logs of one data directory.

    `was_clean`: the last shutdown was in order. `previous_broker_epoch`: its broker epoch, or -1.
    `failures`: partitions whose log could not be opened, and why.
    """

    def __init__(self, data: DataDirectory, clock: Clock, defaults: LogConfig) -> None:
        self.directory = data.path
        self.directory_id = data.directory_id
        self.retention_check_ms = RETENTION_CHECK_MS
        self.checkpoint_ms = CHECKPOINT_MS
        self.producer_id_expiration_ms = PRODUCER_ID_EXPIRATION_MS
        self.failures: dict[TopicPartition, StorageError] = {}
        self._data = data
        self._clock = clock
        self._defaults = defaults
        self._files = FilePool(raise_open_files_limit())
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._deleted = RetiredFiles()
        self._remover = Remover()
        self.cleaner = Cleaner()
        self.disk = DiskHealth(data.path, clock)
        self._flusher = Flusher(self._note_refused)
        self._writer = FileWriter(self.disk.note)
        self._retention_due_ms = clock.monotonic_ms() + RETENTION_INITIAL_DELAY_MS
        self._checkpoint_due_ms = clock.monotonic_ms()
        self._checkpoints = CheckpointFiles(data.file, self._writer)
        epoch = data.take_clean_shutdown()
        self.was_clean = epoch is not None
        self.previous_broker_epoch = -1 if epoch is None else epoch

    @classmethod
    def open(
        cls,
        directory: str,
        *,
        node_id: int,
        cluster_id: str,
        clock: Clock,
        defaults: LogConfig,
    ) -> "LogManager":
        """Lock the directory, recover it after a crash, open every log in it.

        :raises LogDirError: it is in use, another's, or cannot be written.
        """
        data = DataDirectory.open(directory, node_id=node_id, cluster_id=cluster_id)
        try:
            manager = cls(data, clock, defaults)
            manager._load_all()
        except BaseException:
            data.release()
            raise
        return manager

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """The open log of a partition."""
        return self._logs.get((topic, partition))

    @property
    def all_logs(self) -> list[PartitionLog]:
        """Every open log."""
        return list(self._logs.values())

    def metadata_log(
        self, config: LogConfig | None = None, *, check: MetadataCheck = _WHOLE
    ) -> PartitionLog:
        """The log of the metadata quorum, made if there is none yet; only the quorum itself,
        behind its snapshots, moves its start.

        :raises DamagedMetadataError: it lacks what it held; nothing is changed.
        :raises StorageError: the disk refused, or the directory holds a topic's data.
        """
        return self._obtain(_METADATA, METADATA_TOPIC_ID, config, check)

    @property
    def metadata_directory(self) -> str:
        """Where that log lies, and the snapshots and the vote beside it."""
        return self._data.file(partition_directory_name(*_METADATA))

    def create_log(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig | None = None
    ) -> PartitionLog:
        """The log of a topic's partition, made if there is none yet.

        :raises ForbiddenLogError: a topic has no log of that name.
        :raises StorageError: the disk refused, or the directory holds another topic's data.
        """
        check_topic_partition(topic, partition)
        return self._obtain((topic, partition), topic_id, config)

    def _obtain(
        self,
        key: TopicPartition,
        topic_id: UUID,
        config: LogConfig | None,
        check: MetadataCheck | None = None,
    ) -> PartitionLog:
        log = self._logs.get(key)
        if log is not None:
            log.config = config or log.config  # first: retention must not go by the defaults
            log.topic_id = settle_topic_id(log.directory, topic_id)
        else:
            log = self._logs[key] = self._open_log(key, topic_id, config or self._defaults, check)
            self.failures.pop(key, None)
        return log

    def delete_log(self, topic: str, partition: int) -> bool:
        """Take a topic's log out of service; its files go after file.delete.delay.ms.

        :raises ForbiddenLogError: a topic has no log of that name.
        :raises StorageError: the disk refused; the log is in service still.
        """
        check_topic_partition(topic, partition)
        key = (topic, partition)
        log = self._logs.get(key)
        if log is None:
            return False
        path = self._data.file(deleted_directory_name(topic, partition))
        try:
            rename(log.directory, path)
        except OSError as error:
            raise storage_error(f"Deleting {log.directory} failed", error) from error
        log.abandon()
        del self._logs[key]
        self._checkpoints.forget(key)
        self._deleted.add(self._clock.wall_ms() + log.config.file_delete_delay_ms, (path,))
        return True

    def high_watermark_checkpoint(self) -> dict[TopicPartition, int]:
        """The high watermarks that were last written down."""
        return dict(self._checkpoints.high_watermarks)

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Begin to write recovery points, log starts and high watermarks where they changed.

        What the disk refuses is logged by `upkeep`, and written with the next call.
        """
        for _ in self.checkpointing(high_watermarks):
            pass

    def checkpointing(self, high_watermarks: Mapping[TopicPartition, int]) -> Iterator[None]:
        """The same in steps."""
        self._checkpoints.high_watermarks.update(high_watermarks)
        return self._checkpoints.write(self._logs)

    def upkeep(
        self, now_ms: int, high_watermarks: Iterable[tuple[TopicPartition, int]] = ()
    ) -> Iterator[None]:
        """Does the maintenance that is due: forced files, delayed deletions, retention,
        checkpoints; `now_ms` is wall time. Logs may come, change and go between two steps.

        What the disk refuses is logged, and tried again when it is next due. After a failed fsync
        nothing is tried any more: see `DiskHealth.failure`.
        """
        if self.disk.failure is not None:
            return
        for key, high_watermark in high_watermarks:
            self._checkpoints.high_watermarks[key] = high_watermark
            yield
        self._remover.start(self._deleted.take_due(now_ms))
        parts = (
            self._collect(),
            self._maintain_logs(now_ms),
            self._checkpoint_if_due(),
            self._compact(now_ms),
        )
        for steps in parts:
            try:
                yield from steps
            except StorageError as error:
                self._note_refused(error)
            except (LogError, OSError) as error:
                _logger.error("maintaining the logs failed: %s", error)

    def _collect(self) -> Iterator[None]:
        for part in (self._writer, self._flusher, self._remover):
            part.collect()
            yield

    def _maintain_logs(self, now_ms: int) -> Iterator[None]:
        is_retention_due = self._clock.monotonic_ms() >= self._retention_due_ms
        if is_retention_due:
            self._retention_due_ms = self._clock.monotonic_ms() + self.retention_check_ms
        for key, log in list(self._logs.items()):
            yield
            if log.is_abandoned:
                continue
            try:
                self._remover.start(log.retired.take_due(now_ms))
                if is_retention_due and log.topic != METADATA_TOPIC:
                    expired_ms = now_ms - self.producer_id_expiration_ms
                    log.producers.state.expire(before_ms=expired_ms)
                    _retain(log, self._checkpoints.high_watermarks.get(key, 0), now_ms)
                is_due = log.durability.is_due(log.config.flush_ms)
                self._flusher.maybe_start(log.durability, is_with_active=is_due)
            except (LogError, OSError) as error:
                _logger.error("%s-%d is not maintained: %s", *key, error)

    def _checkpoint_if_due(self) -> Iterator[None]:
        if self._clock.monotonic_ms() >= self._checkpoint_due_ms:
            self._checkpoint_due_ms = self._clock.monotonic_ms() + self.checkpoint_ms
            yield from self.checkpointing({})

    def _note_refused(self, error: StorageError) -> None:
        if not self.disk.note(error):
            _logger.error("%s", error)

    def _compact(self, now_ms: int) -> Iterator[None]:
        def look() -> Generator[None, None, CleanableLogs]:
            yield from self.checkpointing({})
            return CleanableLogs(
                logs=self._logs,
                high_watermarks=self._checkpoints.high_watermarks,
                recovery_points=self._checkpoints.recovery_points,
                now_ms=now_ms,
            )

        if (yield from self.cleaner.tick(self._clock.monotonic_ms(), look)):
            yield from self.checkpointing({})

    def shutdown(self, clean: bool = True, *, broker_epoch: int = -1) -> None:
        """Close every log and release the directory; an unclean one leaves all as it is."""
        self.cleaner.stop()
        self._flusher.stop()
        self._remover.stop()
        is_clean = self._writer.stop() and self.disk.failure is None and clean
        try:
            # What closing writes on top, leader epochs for one, is waited for as well.
            if is_clean and _close_all(self.all_logs) and self._writer.stop():
                self._checkpoints.write_now(self._logs)
                self._data.mark_clean_shutdown(broker_epoch)
        except StorageError as error:
            _logger.error("%s", error)
        finally:
            self._logs.clear()
            self._files.clear()
            self._data.release()

    def _load_all(self) -> None:
        try:
            names = sorted(os.listdir(self.directory))
        except OSError as error:
            raise storage_error(f"Reading {self.directory} failed", error) from error
        for name in names:
            path = self._data.file(name)
            if not os.path.isdir(path):
                continue
            if name.endswith(DELETE_DIRECTORY_SUFFIX):
                self._deleted.add(0, (path,))
                continue
            key = parse_partition_directory(name)
            if key is None or key == _METADATA:
                continue
            try:
                self._logs[key] = self._open_log(key, None, self._defaults)
            except StorageError as error:
                _logger.error("%s", error)
                self.failures[key] = error
        self._checkpoints.loaded(self._logs)

    def _open_log(
        self,
        key: TopicPartition,
        topic_id: UUID | None,
        config: LogConfig,
        check: MetadataCheck | None = None,
    ) -> PartitionLog:
        topic, partition = key
        log = PartitionLog.open(
            self._data.file(partition_directory_name(topic, partition)),
            topic=topic,
            partition=partition,
            topic_id=topic_id,
            config=config,
            clock=self._clock,
            files=self._files,
            writer=self._writer,
            recovery_point=self._checkpoints.recovery_points.get(key, 0),
            log_start_offset=self._checkpoints.log_starts.get(key, 0),
            is_clean=self.was_clean,
            metadata_check=check,
        )
        log.cleaning.on_cut = partial(self._checkpoints.forget_cleaned, key)
        log.handle_cut = partial(self._checkpoints.handle_cut, key, log)
        return log


def _retain(log: PartitionLog, high_watermark: int, now_ms: int) -> None:
    deleted = log.delete_old_segments(high_watermark=high_watermark, now_ms=now_ms)
    if deleted.segments:
        _logger.info("%s-%d: %d segments deleted by %s", log.topic, log.partition, *deleted)


def _close_all(logs: Sequence[PartitionLog]) -> bool:
    """Whether every log could be closed in order.

    Many threads wait for the disk at once: a journal commits them together, in a tenth of the
    time that one after the other takes.
    """
    is_whole = True
    with ThreadPoolExecutor(CLOSE_THREADS) as threads:
        running = []
        for log in logs:
            try:
                job = log.prepare_close()
                if job is not None:
                    running.append((log, job, threads.submit(job.run)))
            except StorageError as error:
                _logger.error("%s", error)
                is_whole = False
    for log, job, future in running:
        if (failure := future.exception()) is None:
            log.durability.handle_flushed(job)
        else:
            _logger.error("Forcing %s to the disk failed: %s", log.directory, failure)
            is_whole = False
        log.abandon()
    return is_whole
