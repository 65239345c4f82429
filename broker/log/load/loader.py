"""Opening a partition's directory: what is there, where it ends, who wrote it last.

After a clean shutdown only the newest segment's tail is read; after a crash see recovery.py.
"""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from broker.log.checkpoint.epoch_cache import EpochCache
from broker.log.checkpoint.file_writer import FileWriter
from broker.log.config import LogConfig
from broker.log.errors import CorruptSegmentError, LogError, StorageError, storage_error
from broker.log.load.metadata_check import MetadataCheck, MetadataRules
from broker.log.load.new_log_directory import is_untouched
from broker.log.load.recovery import CutRules, RecoveryFinding, recover_segments
from broker.log.names import (
    CLEANED_SUFFIX,
    CUT_MARK,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LEADER_EPOCH_FILE,
    LOG_SUFFIX,
    base_offset_of,
    segment_path,
)
from broker.log.producer.log_producers import load_producers
from broker.log.producer.producer_snapshot import remove_snapshots, snapshot_offsets
from broker.log.producer.producer_state import ProducerState
from broker.log.segment.open_files import FilePool
from broker.log.segment.segment import Segment
from broker.log.segment.segment_swap import settle_swaps
from broker.protocol.records import BatchHeader

_LEFTOVERS: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp")
CUT_KEPT_MS: Final = 30 * 24 * 3_600_000
"""How long the bytes that recovery cut off are kept; a later start removes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Where a partition lies and what the checkpoints say of it."""

    directory: str
    config: LogConfig
    files: FilePool
    recovery_point: int
    log_start_offset: int
    is_clean: bool
    now_ms: int
    writer: FileWriter | None = None
    """Replaces small files; without one they are replaced at once."""
    metadata_check: MetadataCheck | None = None
    """For the metadata log, every batch of which is checked at each start."""


@dataclass(slots=True, kw_only=True)
class LoadedLog:
    """Contents of a partition's directory; the last segment is active."""

    segments: list[Segment]
    producers: ProducerState
    epochs: EpochCache
    findings: list[RecoveryFinding] = field(default_factory=list)


def load_log(request: LoadRequest) -> LoadedLog:
    """Open the directory, creating it with one empty segment when it is new.

    :raises StorageError: the disk refused, or the files hold what cannot be read. No other error
        leaves it: that would end the node, and its other logs with it.
    """
    try:
        return _load(request)
    except LogError:
        raise
    except Exception as error:
        raise StorageError(
            f"{request.directory} cannot be opened",
            f"its files hold what no broker writes ({type(error).__name__}: {error})",
            "Keep a copy of the directory and check the disk; the other replicas serve on",
        ) from error


def _load(request: LoadRequest) -> LoadedLog:
    try:
        names = _list_directory(request.directory)
        _remove_leftovers(request, names)
        if settle_swaps(request.directory, names):
            names = _list_directory(request.directory)
        is_new = not request.log_start_offset and is_untouched(request.directory, names)
        segments = [] if is_new else _find_segments(request, names)
    except OSError as error:
        raise storage_error(f"Opening {request.directory} failed", error) from error
    snapshots = snapshot_offsets(names)
    epochs, are_epochs_whole = _load_epochs(request)
    loaded = LoadedLog(segments=segments, producers=ProducerState(), epochs=epochs)
    if not segments:
        segments.append(new_segment(request, request.log_start_offset))
        if request.metadata_check is None:
            return loaded
    _open_tail(request, loaded)
    end = segments[-1].next_offset
    if end < request.log_start_offset:
        # Everything left is older than what was deleted on purpose: start anew from there.
        for segment in segments:
            segment.remove()
        loaded.segments[:] = [new_segment(request, request.log_start_offset)]
        remove_snapshots(request.directory, set(snapshots))
        snapshots = []
    if not are_epochs_whole and any(segment.size_bytes for segment in loaded.segments):
        epochs.clear()
        _replay_epochs(loaded.segments, epochs)
    epochs.truncate_from_end(loaded.segments[-1].next_offset)
    durable = None if request.is_clean else request.recovery_point
    loaded.producers = load_producers(
        request.directory, snapshots, loaded.segments, durable=durable
    )
    return loaded


def new_segment(request: LoadRequest, base_offset: int) -> Segment:
    """An empty active segment, on disk.

    Files that lie in its place belong to nobody: the log ends there (LocalLog.roll).

    :raises StorageError: the disk refused.
    """
    segment = Segment(
        request.directory, base_offset, files=request.files, created_ms=request.now_ms
    )
    try:
        for suffix in INDEX_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(segment_path(request.directory, base_offset, suffix))
        os.ftruncate(segment.open().fd, 0)
    except OSError as error:
        raise storage_error(f"Creating {segment.path} failed", error) from error
    return segment


def _list_directory(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        os.makedirs(directory)
        return []


def _remove_leftovers(request: LoadRequest, names: Iterable[str]) -> None:
    for name in names:
        path = f"{request.directory}/{name}"
        if name.endswith(_LEFTOVERS) or (CUT_MARK in name and _is_past_keeping(request, path)):
            os.unlink(path)


def _is_past_keeping(request: LoadRequest, path: str) -> bool:
    """By the time of the cut: a segment that was set aside may have been old by then."""
    return os.stat(path).st_ctime_ns // 1_000_000 < request.now_ms - CUT_KEPT_MS


def _find_segments(request: LoadRequest, names: Iterable[str]) -> list[Segment]:
    found = (base_offset_of(name, LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX))
    bases = sorted(base for base in found if base is not None)
    return (
        [
            Segment.found(request.directory, base, files=request.files, next_offset=following)
            for base, following in zip(bases, [*bases[1:], bases[-1]], strict=True)
        ]
        if bases
        else []
    )


def _load_epochs(request: LoadRequest) -> tuple[EpochCache, bool]:
    path = f"{request.directory}/{LEADER_EPOCH_FILE}"
    try:
        return EpochCache.load(path, writer=request.writer), True
    except StorageError:
        return EpochCache(path, writer=request.writer), False


def _open_tail(request: LoadRequest, loaded: LoadedLog) -> None:
    """Make the newest segment active, after recovery where the shutdown was not clean."""
    segments = loaded.segments
    replay = _EpochReplay(loaded.epochs)
    rules = CutRules()
    if request.metadata_check is not None:
        rules = MetadataRules(
            request.metadata_check,
            is_clean=request.is_clean,
            durable_end=request.recovery_point,
            epochs=loaded.epochs.entries,
        )
        from_offset = request.metadata_check.from_offset
        loaded.findings = recover_segments(segments, from_offset, request.config, replay, rules)
        segments[-1].activate()
        return
    if request.is_clean:
        try:
            segments[-1].activate()
            _check_end(segments[-1], request.recovery_point)
            return
        except CorruptSegmentError:
            # Somebody changed the file since: check all of that segment.
            recovery_point = segments[-1].base_offset
            rules = _EndRules(request.recovery_point)
            segments[-1] = _found_again(request, segments[-1])
    else:
        recovery_point = request.recovery_point
    loaded.findings = recover_segments(segments, recovery_point, request.config, replay, rules)
    segments[-1].activate()


class _EndRules(CutRules):
    """Where the log ended is known. What lies behind it and follows on stays: the end that was
    written down may be older than the log."""

    def __init__(self, durable_end: int) -> None:
        self._durable_end = durable_end

    def problem_of(self, header: BatchHeader, next_offset: int) -> str | None:
        is_behind = 0 < self._durable_end <= header.last_offset
        if is_behind and header.base_offset != next_offset:
            return f"offset {header.base_offset} lies behind the log's end {self._durable_end}"
        return None


def _check_end(segment: Segment, durable_end: int) -> None:
    """A clean stop writes down where the log ends; 0 where that is not known."""
    if 0 < durable_end < segment.next_offset:
        reason = f"the log ended at {durable_end}, not at {segment.next_offset}"
        raise CorruptSegmentError(segment.path, segment.size_bytes, reason)


def _found_again(request: LoadRequest, segment: Segment) -> Segment:
    base_offset = segment.base_offset
    request.files.forget(segment.path)
    return Segment.found(
        request.directory, base_offset, files=request.files, next_offset=base_offset
    )


class _EpochReplay:
    """Notes each leader epoch when its first batch comes by."""

    def __init__(self, epochs: EpochCache) -> None:
        self._epochs = epochs

    def __call__(self, header: BatchHeader) -> None:
        epoch, latest = header.partition_leader_epoch, self._epochs.latest_epoch
        if epoch >= 0 and (latest is None or epoch > latest):
            self._epochs.assign(epoch, header.base_offset)


def _replay_epochs(segments: Iterable[Segment], epochs: EpochCache) -> None:
    replay = _EpochReplay(epochs)
    for segment in segments:
        for header, _ in segment.headers(0):
            replay(header)
