"""Reads and writes the checkpoints of a data directory about its logs.

After a crash a file that says too little costs time: more is recovered or cleaned. One that says
too much costs data. The start of a deleted log would empty a new log with the same name. A recovery
point beyond the place where a log was cut would leave what was written there since unchecked. Where
a log was clean, compaction would keep old values. So what a deletion or a cut makes untrue is taken
out of the files at once, and not with the next periodic write.
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

    def write(self, logs: Logs) -> Iterator[None]:
        """Begin to write the files that say something else than the logs do now, step by step."""
        for name, offsets in self._look(logs):
            if self._written.get(name) != offsets:
                self._written[name] = kept = dict(offsets)
                self._writer.write(self._file(name), partial(encode_offsets, kept), is_forced=True)
            yield

    def write_now(self, logs: Logs) -> None:
        """Write them before it returns.

        :raises StorageError: the disk refused.
        """
        for name, offsets in self._look(logs):
            if self._written.get(name) != offsets:
                write_file(self._file(name), encode_offsets(offsets), is_forced=True)

    def forget(self, key: TopicPartition) -> None:
        """Forgets the log of this name, which is deleted."""
        for name in self._known():
            self._lower(name, key, 0)

    def forget_cleaned(self, key: TopicPartition) -> None:
        """The log is not as clean as was written."""
        self._lower(CLEANER_OFFSET_FILE, key, 0)

    def handle_cut(self, key: TopicPartition, log: PartitionLog) -> None:
        """The log was cut, or starts anew."""
        self._lower(RECOVERY_POINT_FILE, key, log.recovery_point)
        self._lower(LOG_START_FILE, key, log.log_start_offset)

    def _lower(self, name: str, key: TopicPartition, offset: int) -> None:
        """Write down without delay that an offset is not larger; for 0 the file has no line."""
        known = self._known()[name]
        is_true = known.get(key, 0) <= offset
        if offset:
            known[key] = min(known.get(key, 0), offset)
        else:
            known.pop(key, None)
        if is_true:
            return
        self._written.pop(name, None)
        # Of many logs that are deleted or cut together, the writer writes the last only.
        make = partial(_encode_now, self._known, name)
        self._writer.write(self._file(name), make, is_forced=True)

    def loaded(self, logs: Logs) -> None:
        """Tell the logs found at start how clean they are; what cannot be true is forgotten."""
        for key, offset in list(self.cleaned.items()):
            log = logs.get(key)
            if log is None or not log.cleaning.take_checkpoint(offset):
                self.forget_cleaned(key)

    def _look(self, logs: Logs) -> Iterator[tuple[str, dict[TopicPartition, int]]]:
        """Each file with the offsets it should hold, one after the other."""
        self.cleaned = {
            key: log.cleaning.cleaned_to for key, log in logs.items() if log.cleaning.cleaned_to
        }
        yield CLEANER_OFFSET_FILE, self.cleaned
        self.recovery_points = {key: log.recovery_point for key, log in logs.items()}
        yield RECOVERY_POINT_FILE, self.recovery_points
        starts = ((key, log.log_start_offset) for key, log in logs.items())
        self.log_starts = {key: start for key, start in starts if start}
        yield LOG_START_FILE, self.log_starts
        yield HIGH_WATERMARK_FILE, self.high_watermarks

    def _known(self) -> dict[str, dict[TopicPartition, int]]:
        return {
            CLEANER_OFFSET_FILE: self.cleaned,
            RECOVERY_POINT_FILE: self.recovery_points,
            LOG_START_FILE: self.log_starts,
            HIGH_WATERMARK_FILE: self.high_watermarks,
        }

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._file(name))
        except StorageError as error:
            _logger.error("%s", error)
            return {}


def _encode_now(known: Callable[[], dict[str, dict[TopicPartition, int]]], name: str) -> bytes:
    """In the writer's thread: a file as it is by then."""
    return encode_offsets(dict(known()[name]))
