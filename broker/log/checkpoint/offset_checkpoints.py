"""Reads and writes the checkpoints of a data directory about its logs.

After a power failure an old or missing file costs time (more is recovered or cleaned), never data,
with one exception. The offset up to which a log is clean must not outlive the log. Otherwise it
would apply to a new log with the same name: compaction would keep an old value of a key there and,
in time, drop the tombstone behind it. So such an offset is removed at once.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from broker.log.checkpoint.checkpoint_format import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    TopicPartition,
    encode_offsets,
    read_offsets,
    write_file,
)
from broker.log.checkpoint.file_writer import FileWriter
from broker.log.errors import StorageError
from broker.log.partition_log import PartitionLog

_logger: Final = logging.getLogger(__name__)

Logs = Mapping[TopicPartition, PartitionLog]


class CheckpointFiles:
    """Offsets read at start, and what was noted since; `file` makes a name into a path."""

    def __init__(self, file: Callable[[str], str], writer: FileWriter) -> None:
        self._file = file
        self._writer = writer
        self._written: dict[str, dict[TopicPartition, int]] = {}
        """What the files say now, or soon will."""
        self.recovery_points = self._read(RECOVERY_POINT_FILE)
        self.log_starts = self._read(LOG_START_FILE)
        self.cleaned = self._read(CLEANER_OFFSET_FILE)
        self.high_watermarks = self._read(HIGH_WATERMARK_FILE)

    def write(self, logs: Logs) -> None:
        """Begin to write the files that say something else than the logs do now."""
        for name, offsets in self._changed(logs):
            self._writer.write(self._file(name), partial(encode_offsets, offsets), is_forced=True)
            self._written[name] = offsets

    def write_now(self, logs: Logs) -> None:
        """Write them before it returns.

        :raises StorageError: the disk refused.
        """
        for name, offsets in self._changed(logs):
            write_file(self._file(name), encode_offsets(offsets), is_forced=True)

    def forget(self, key: TopicPartition) -> None:
        """Forgets the log of this name, which is deleted."""
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks):
            offsets.pop(key, None)
        self.forget_cleaned(key)

    def forget_cleaned(self, key: TopicPartition) -> None:
        """The log is not as clean as was written: without delay the file says nothing of it."""
        if self.cleaned.pop(key, None) is None:
            return
        self._written.pop(CLEANER_OFFSET_FILE, None)
        # Of many logs that go together, the writer writes the last only.
        path = self._file(CLEANER_OFFSET_FILE)
        self._writer.write(path, lambda: encode_offsets(dict(self.cleaned)), is_forced=True)

    def loaded(self, logs: Logs) -> None:
        """Tell the logs found at start how clean they are; what cannot be true is forgotten."""
        for key, offset in list(self.cleaned.items()):
            log = logs.get(key)
            if log is None or not log.cleaning.take_checkpoint(offset):
                self.forget_cleaned(key)

    def _changed(self, logs: Logs) -> Iterator[tuple[str, dict[TopicPartition, int]]]:
        self.recovery_points = {key: log.recovery_point for key, log in logs.items()}
        starts = {key: log.log_start_offset for key, log in logs.items()}
        self.log_starts = {key: start for key, start in starts.items() if start}
        self.cleaned = {
            key: log.cleaning.cleaned_to for key, log in logs.items() if log.cleaning.cleaned_to
        }
        offsets_of = {
            CLEANER_OFFSET_FILE: self.cleaned,
            RECOVERY_POINT_FILE: self.recovery_points,
            LOG_START_FILE: self.log_starts,
            HIGH_WATERMARK_FILE: self.high_watermarks,
        }
        for name, offsets in offsets_of.items():
            if self._written.get(name) != offsets:
                yield name, dict(offsets)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._file(name))
        except StorageError as error:
            _logger.error("%s", error)
            return {}
