"""Which leader epoch started at which offset; how replicas find where their logs part.

Entries (epoch, start_offset) rise in both. Example: [(0, 0), (2, 10)] at log end 25 says that
epoch 0 ended at 10, nothing was written under epoch 1, and epoch 2 lasts up to 25.
Source: KIP-101, KIP-279, org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache.
"""

import logging
from bisect import bisect_right
from functools import partial
from typing import Final, NamedTuple

from broker.log.checkpoint.checkpoint_format import (
    decode_checkpoint,
    encode_checkpoint,
    read_file,
    write_file,
)
from broker.log.checkpoint.file_writer import FileWriter
from broker.log.errors import StorageError

_logger: Final = logging.getLogger(__name__)
UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class EpochEnd(NamedTuple):
    """The largest epoch not above the one asked for, and the offset where it ended; -1, -1 when
    this log cannot tell.
    """

    epoch: int
    end_offset: int


class EpochCache:
    """The epochs of one log, mirrored in its leader-epoch-checkpoint: soon with a `writer`, else
    at once."""

    def __init__(
        self,
        path: str,
        entries: list[tuple[int, int]] | None = None,
        *,
        writer: FileWriter | None = None,
    ) -> None:
        self.path = path
        self._entries = entries or []
        self._writer = writer

    @classmethod
    def load(cls, path: str, *, writer: FileWriter | None = None) -> "EpochCache":
        """From the file.

        :raises StorageError: there is none, or it is not a checkpoint.
        """
        content = read_file(path) or b""
        entries = decode_checkpoint(path, content, 2)
        return cls(path, [(int(epoch), int(start)) for epoch, start in entries], writer=writer)

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """(epoch, start_offset), rising."""
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the newest entry."""
        return self._entries[-1][0] if self._entries else None

    def start_offset(self, epoch: int) -> int | None:
        """Where an epoch started, None when nothing was written under it."""
        slot = self._floor(epoch)
        return self._entries[slot][1] if slot >= 0 and self._entries[slot][0] == epoch else None

    def epoch_at(self, offset: int) -> int | None:
        """The epoch under which `offset` was (or would be) written."""
        slot = bisect_right(self._entries, offset, key=lambda entry: entry[1]) - 1
        return self._entries[slot][0] if slot >= 0 else None

    def end_offset(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where `epoch`, or the largest one below it, ended (OffsetForLeaderEpoch)."""
        if epoch == UNDEFINED_EPOCH or not self._entries or epoch > self._entries[-1][0]:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self._entries[-1][0]:
            return EpochEnd(epoch, log_end_offset)
        slot = self._floor(epoch)
        if slot < 0:
            # The whole log is newer: it starts where the first known epoch does.
            return EpochEnd(epoch, self._entries[0][1])
        return EpochEnd(self._entries[slot][0], self._entries[slot + 1][1])

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note a new epoch; entries that it contradicts go.

        :raises StorageError: the disk refused.
        """
        if self._entries and self._entries[-1][0] == epoch and self._entries[-1][1] <= start_offset:
            return
        kept = [entry for entry in self._entries if entry[0] < epoch and entry[1] < start_offset]
        self._replace([*kept, (epoch, start_offset)])

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that started at or behind a log's new end."""
        if self._entries and self._entries[-1][1] >= end_offset:
            self._forget([entry for entry in self._entries if entry[1] < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended before a log's new start; the one that spans it starts there."""
        slot = bisect_right(self._entries, start_offset, key=lambda entry: entry[1]) - 1
        if slot >= 0 and self._entries[0] != (self._entries[slot][0], start_offset):
            self._forget([(self._entries[slot][0], start_offset), *self._entries[slot + 1 :]])

    def clear(self) -> None:
        """Forget all."""
        if self._entries:
            self._forget([])

    def _floor(self, epoch: int) -> int:
        return bisect_right(self._entries, epoch, key=lambda entry: entry[0]) - 1

    def _forget(self, entries: list[tuple[int, int]]) -> None:
        """Take entries away, on disk if it can be.

        A full disk must not keep retention from freeing it. What the file says too much is
        outside the log, and is taken away again when the log is opened.
        """
        try:
            self._replace(entries)
        except StorageError as error:
            _logger.warning("%s", error)
            self._entries = entries

    def _replace(self, entries: list[tuple[int, int]]) -> None:
        # Not forced to the disk: without the file the epochs are found again in the batches, and
        # a broker that leads thousands of partitions at once cannot wait for as many files.
        if self._writer is None:
            write_file(self.path, encode_checkpoint(entries), is_forced=False)
        else:
            self._writer.write(self.path, partial(encode_checkpoint, entries), is_forced=False)
        self._entries = entries
