"""Errors of a log.

LogError
├── RecordsRejectedError           this batch is refused; the log stands as it was
│   ├── CorruptBatchError          CRC, length or count do not hold
│   ├── BatchTooLargeError         larger than max.message.bytes or segment.bytes
│   ├── UnsupportedMagicError      a format before version 2
│   ├── InvalidTimestampError      too far from the broker's clock
│   ├── InvalidRecordError         a record this topic may not hold
│   ├── OutOfOrderSequenceError    an idempotent producer skipped or repeated a sequence
│   ├── InvalidProducerEpochError  the producer was fenced by a newer one
│   ├── InvalidTxnStateError       the partition was not added to the producer's transaction
│   ├── CoordinatorFencedError     a newer coordinator has ended transactions of the producer
│   └── OffsetsOutOfOrderError     a replicated batch does not follow the log's end
├── ForbiddenLogError              a topic has no log of that name
├── OffsetOutOfRangeError          not between log_start_offset and log_end_offset
├── InvalidConfigError             a property's value cannot be used
└── StorageError                   the disk or what lies on it; has title, reason, next_step
    ├── CorruptSegmentError        bytes of a sealed segment are not batches
    ├── DamagedMetadataError       the metadata log lacks records that it held
    ├── UnreadableFileError        a file cannot be opened or read
    └── LogDirError                the whole directory cannot be used
        ├── ForceFailedError       fsync failed: what was written may be lost
        ├── LogDirInUseError       another process holds its lock
        └── LogDirMismatchError    it belongs to another node or cluster
"""

import errno
from collections.abc import Mapping


class LogError(Exception):
    """Base of everything this package raises."""


class ForbiddenLogError(LogError):
    """A topic's log is asked for under a name that no topic may have."""


class RecordsRejectedError(LogError):
    """A batch that may not enter the log; nothing was written. `records` says of single records,
    by their number in the batch, why they may not."""

    def __init__(self, reason: str, records: Mapping[int, str] | None = None) -> None:
        super().__init__(reason)
        self.records: Mapping[int, str] = records or {}


class CorruptBatchError(RecordsRejectedError):
    """The CRC, the length or the count of a batch do not hold."""


class BatchTooLargeError(RecordsRejectedError):
    """A batch is larger than max.message.bytes or than a whole segment."""


class UnsupportedMagicError(RecordsRejectedError):
    """A batch in a format older (or newer) than version 2."""


class InvalidTimestampError(RecordsRejectedError):
    """A timestamp is further from the broker's clock than the topic allows."""


class InvalidRecordError(RecordsRejectedError):
    """A record that this topic may not hold, e.g. one without key where compaction needs it."""


class OutOfOrderSequenceError(RecordsRejectedError):
    """The first sequence of a batch does not follow the producer's last one."""


class InvalidProducerEpochError(RecordsRejectedError):
    """A batch with an older epoch than its producer id has reached."""


class InvalidTxnStateError(RecordsRejectedError):
    """Nobody would end the transaction: the coordinator does not know of its records here."""


class CoordinatorFencedError(RecordsRejectedError):
    """A marker comes from a coordinator that another one has replaced."""


class OffsetsOutOfOrderError(RecordsRejectedError):
    """A replicated batch starts before the log's end."""


class OffsetOutOfRangeError(LogError):
    """An offset outside log_start_offset..log_end_offset."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(
            f"offset {offset} is outside {log_start_offset}..{log_end_offset} of this log"
        )
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class InvalidConfigError(LogError):
    """A configuration value that cannot be used."""

    def __init__(self, name: str, value: str, reason: str) -> None:
        super().__init__(f"{name}={value}: {reason}")
        self.name = name
        self.value = value


class StorageError(LogError):
    """The disk refused, or what lies on it is damaged.

    `title` says what, `reason` why, `next_step` what the operator can do.
    """

    def __init__(self, title: str, reason: str, next_step: str) -> None:
        super().__init__(f"{title}: {reason}. {next_step}")
        self.title = title
        self.reason = reason
        self.next_step = next_step


class CorruptSegmentError(StorageError):
    """Bytes of a segment file are not a batch; position is in bytes from the file's start."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(
            f"{path} is damaged at position {position}",
            reason,
            "Keep a copy of the file and check the disk. If another replica is in sync, restart "
            "this broker without its .kafka_cleanshutdown and recovery-point-offset-checkpoint "
            "files: recovery cuts the segment there, keeps what it cut off beside it, and the rest "
            "is fetched from the leader. If none is, what lies behind would not come back",
        )
        self.path = path
        self.position = position


class DamagedMetadataError(StorageError):
    """Batches of the metadata log are damaged: below `good_end` all is whole.

    `held` is the (leader epoch, end offset) up to which the log reached before. The batches from
    `next_base` on are in other files; None when there are none.
    """

    def __init__(
        self,
        path: str,
        position: int,
        reason: str,
        *,
        good_end: int,
        held: tuple[int, int],
        next_base: int | None,
    ) -> None:
        super().__init__(
            f"The metadata log is damaged: {path} at position {position}",
            f"{reason}; offsets {good_end} to {held[1] - 1} cannot be read",
            "Nothing was changed. Check the disk, and put this file back from a backup of this "
            "node, or the files of __cluster_metadata-0 but quorum-state from another voter that "
            "is stopped. Keep the directory as it is until then: it holds this node's vote",
        )
        self.path = path
        self.position = position
        self.good_end = good_end
        self.held = held
        self.next_base = next_base


class LogDirError(StorageError):
    """The data directory as a whole cannot be used."""


class ForceFailedError(LogDirError):
    """fsync failed: Linux may have dropped what was written, so only a restart can be believed."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(
            f"Forcing {path} to the disk failed",
            error.strerror or str(error),
            "Check the disk, then start this broker again: it finds out what the disk has",
        )


class LogDirInUseError(LogDirError):
    """Another process holds the lock of the data directory."""


class LogDirMismatchError(LogDirError):
    """The data directory was formatted for another node or another cluster."""


_NEXT_STEPS = {
    errno.ENOSPC: "Free space or lower retention; the partition takes writes again by itself",
    errno.EDQUOT: "Raise the quota; the partition takes writes again by itself",
    errno.EROFS: "Remount the file system read-write; look for I/O errors in the kernel's log",
    errno.EACCES: "Give the user that runs the broker write access to the directory",
    errno.EPERM: "Give the user that runs the broker write access to the directory",
    errno.EMFILE: "Raise the limit of open files (ulimit -n)",
    errno.EIO: "Check the disk; the other replicas serve on",
}


def storage_error(title: str, error: OSError) -> StorageError:
    """An operating system error in the operator's words."""
    reason = error.strerror or str(error)
    story = StorageError(title, reason, _NEXT_STEPS.get(error.errno or 0, "Check the disk"))
    story.__cause__ = error
    return story


def as_storage_error(title: str, error: BaseException) -> StorageError:
    """Turns the error that ended a thread's work into an error of the disk.

    :raises BaseException: it was none.
    """
    if isinstance(error, StorageError):
        return error
    if isinstance(error, OSError):
        return storage_error(title, error)
    raise error


class UnreadableFileError(StorageError):
    """A file cannot be opened or read; the partition's other files may be well."""

    def __init__(self, path: str, error: OSError) -> None:
        cause = storage_error(f"Reading {path} failed", error)
        super().__init__(cause.title, cause.reason, cause.next_step)
