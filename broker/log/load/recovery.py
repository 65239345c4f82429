"""After a crash: which bytes at the end of a log are whole batches, and what becomes of the rest.

Segments before the recovery point were forced to the disk and are taken as they are. In those
behind it every batch's CRC is checked. At the first batch that does not hold the log is cut, as
Kafka does; but the bytes cut off are kept beside the segment (`….log.cut-<position>`) for a month,
and a finding says what was cut and why. A torn last batch is the ordinary trace of a killed
process; damage with more batches behind it is not, and is reported as an error.
"""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from broker.log.config import LogConfig
from broker.log.disk.durable import force, remove_if_there, rename
from broker.log.errors import ForceFailedError, StorageError, storage_error
from broker.log.names import CUT_MARK
from broker.log.segment.batch_scan import header_damage
from broker.log.segment.offset_check import RELATIVE_OFFSET_MAX
from broker.log.segment.segment import Segment
from broker.protocol.records import (
    HEADER_BYTES,
    BatchHeader,
    batch_crc_is_valid,
    parse_batch_header,
)

_logger: Final = logging.getLogger(__name__)
_COPY_BYTES: Final = 1024 * 1024

OnHeader = Callable[[BatchHeader], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryFinding:
    """A cut by recovery: `cut_bytes` from `position` of `path` on, now in `kept_path`.

    `end_offset` is where the log ends since; everything below it is kept.
    """

    path: str
    position: int
    end_offset: int
    cut_bytes: int
    kept_path: str
    reason: str
    is_torn_tail: bool

    def __str__(self) -> str:
        what = "torn tail" if self.is_torn_tail else "damage"
        return (
            f"{self.path}: {what} at position {self.position} ({self.reason}). Everything below "
            f"offset {self.end_offset} is kept; {self.cut_bytes} bytes from there on were cut off "
            f"and set aside in {self.kept_path}. "
            + (
                "Nothing acknowledged by all replicas is lost; the leader sends the rest again"
                if self.is_torn_tail
                else "Check the disk. A follower fetches the rest from its leader; for a "
                "partition with one replica look into the kept file with `partiscope segments`"
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A batch that does not hold, at a position of its segment."""

    position: int
    reason: str
    is_torn_tail: bool


class CutRules:
    """Further rules for batches, and for a cut; of an ordinary log there are none."""

    def problem_of(self, header: BatchHeader, next_offset: int) -> str | None:
        """Why a batch that is whole by itself cannot stand behind those before it."""
        return None

    def problem_between(self, before: Segment, behind: Segment) -> str | None:
        """Why one segment cannot follow another."""
        return None

    def before_cut(self, segment: Segment, damage: Damage, behind: Sequence[Segment]) -> None:
        """Raises where nothing may be cut."""

    def check_end(self, segment: Segment) -> None:
        """Raises where the last segment lacks records."""


def recover_segments(
    segments: list[Segment],
    recovery_point: int,
    config: LogConfig,
    on_header: OnHeader,
    rules: CutRules,
) -> list[RecoveryFinding]:
    """Check everything behind the recovery point, cut at the first damage, index anew.

    `segments` (rising, all sealed) loses those behind a cut. `on_header` sees each good batch.

    :raises StorageError: the disk refused, e.g. to keep the bytes aside.
    """
    findings = _check_segments(segments, recovery_point, config, on_header, rules)
    _drop_empty_tail(segments, recovery_point)
    for finding in findings:
        _logger.log(logging.INFO if finding.is_torn_tail else logging.ERROR, "%s", finding)
    return findings


def _drop_empty_tail(segments: list[Segment], recovery_point: int) -> None:
    """Undo a roll that reached the disk before the records did that came before it.

    Otherwise the log would end behind records that it does not have, and never ask for them.
    Below the recovery point nothing lacks: compaction may have taken the last records away.
    """
    while len(segments) > 1 and not segments[-1].size_bytes:
        if segments[-1].base_offset <= recovery_point:
            return
        if segments[-2].next_offset >= segments[-1].base_offset:
            return
        segments.pop().remove()


def _check_segments(
    segments: list[Segment],
    recovery_point: int,
    config: LogConfig,
    on_header: OnHeader,
    rules: CutRules,
) -> list[RecoveryFinding]:
    first = max(
        (slot for slot, each in enumerate(segments) if each.base_offset <= recovery_point),
        default=0,
    )
    for slot in range(first, len(segments)):
        segment = segments[slot]
        damage = None
        if slot > first and (gap := rules.problem_between(segments[slot - 1], segment)) is not None:
            segment.next_offset = segments[slot - 1].next_offset
            damage = Damage(position=0, reason=gap, is_torn_tail=False)
        damage = damage or _find_damage(
            segment, on_header, rules, is_last=slot == len(segments) - 1
        )
        if damage is None:
            segment.rebuild_indexes(config)
            continue
        rules.before_cut(segment, damage, segments[slot + 1 :])
        findings = [_cut(segment, damage)]
        segment.rebuild_indexes(config)
        findings += [_set_aside(behind, segment) for behind in segments[slot + 1 :]]
        del segments[slot + 1 :]
        return findings
    rules.check_end(segments[-1])
    return []


def _find_damage(
    segment: Segment, on_header: OnHeader, rules: CutRules, *, is_last: bool
) -> Damage | None:
    """Base offsets stand outside the CRC: one is believed when the batch behind it follows."""
    position, next_offset = 0, segment.base_offset
    believed: BatchHeader | None = None
    while position < segment.size_bytes:
        available = segment.size_bytes - position
        header, reason = _check_batch(segment, position, available, next_offset)
        if header is not None and reason is None:
            reason = rules.problem_of(header, next_offset)
        if believed is not None and header is not None and reason is None:
            on_header(believed)
        elif believed is not None and _is_misplaced(believed, header, segment):
            size_bytes = believed.size_bytes
            reason = f"offset {believed.base_offset} stands where {segment.next_offset} may"
            return Damage(position=position - size_bytes, reason=reason, is_torn_tail=False)
        elif believed is not None:
            on_header(believed)
        segment.next_offset = next_offset
        if reason is not None:
            is_cut_short = header is None or header.size_bytes >= available
            return Damage(position=position, reason=reason, is_torn_tail=is_last and is_cut_short)
        assert header is not None
        believed = header
        next_offset = header.last_offset + 1
        position += header.size_bytes
    segment.next_offset = next_offset
    if believed is not None:
        on_header(believed)
    return None


def _is_misplaced(batch: BatchHeader, behind: BatchHeader | None, segment: Segment) -> bool:
    """Whether the batch behind follows the one before, and this one in between leaps ahead."""
    if behind is None or batch.base_offset <= segment.next_offset:
        return False
    return segment.next_offset < behind.base_offset <= batch.last_offset


def _check_batch(
    segment: Segment, position: int, available: int, next_offset: int
) -> tuple[BatchHeader | None, str | None]:
    """The header at `position` when there is one, and what is wrong with the batch, if anything."""
    file = segment.open()
    raw = file.read(HEADER_BYTES, position)
    if len(raw) < HEADER_BYTES:
        return None, f"only {available} bytes of a batch"
    header = parse_batch_header(raw)
    if (reason := header_damage(header, available)) is not None:
        return header, reason
    batch = file.read(header.size_bytes, position)
    if not batch_crc_is_valid(batch, header):
        return header, f"the CRC of the batch at offset {header.base_offset} is wrong"
    if header.base_offset < next_offset:
        return header, f"offset {header.base_offset} follows {next_offset - 1}"
    if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
        return header, f"offset {header.base_offset} is too far behind {segment.base_offset}"
    return header, None


def _cut(segment: Segment, damage: Damage) -> RecoveryFinding:
    kept_path = f"{segment.path}{CUT_MARK}{damage.position}"
    cut_bytes = segment.size_bytes - damage.position
    try:
        _copy_tail(segment.path, kept_path, damage.position)
        os.truncate(segment.path, damage.position)
    except (OSError, ForceFailedError) as error:
        remove_if_there(kept_path)  # the next start makes it anew
        if isinstance(error, ForceFailedError):
            raise
        raise storage_error(f"Cutting {segment.path} at {damage.position} failed", error) from error
    segment.size_bytes = damage.position
    return RecoveryFinding(
        path=segment.path,
        position=damage.position,
        end_offset=segment.next_offset,
        cut_bytes=cut_bytes,
        kept_path=kept_path,
        reason=damage.reason,
        is_torn_tail=damage.is_torn_tail,
    )


def _copy_tail(path: str, kept_path: str, position: int) -> None:
    with open(path, "rb") as source, open(kept_path, "wb") as target:
        source.seek(position)
        while part := source.read(_COPY_BYTES):
            target.write(part)
        target.flush()
        force(target.fileno(), kept_path)


def _set_aside(segment: Segment, damaged: Segment) -> RecoveryFinding:
    """A whole segment behind the cut: only its .log is kept, under a name that no log loads."""
    kept_path = f"{segment.path}{CUT_MARK}0"
    try:
        rename(segment.path, kept_path)
    except OSError as error:
        raise storage_error(f"Setting {segment.path} aside failed", error) from error
    try:
        segment.remove()
    except StorageError as error:
        _logger.warning("%s", error)
    return RecoveryFinding(
        path=segment.path,
        position=0,
        end_offset=damaged.next_offset,
        cut_bytes=segment.size_bytes,
        kept_path=kept_path,
        reason=f"it lies behind the damage in {damaged.path}",
        is_torn_tail=False,
    )
