"""The metadata log is checked batch by batch at each start, and not cut where it held more.

It is small, and a voter answers for all that it has acknowledged. A torn tail after a crash is cut
as in any log: no disk ever had it. Everything else is refused with file and position; the quorum
says what becomes of it (raft.damaged_log).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.log.errors import DamagedMetadataError
from broker.log.load.recovery import CutRules, Damage
from broker.log.segment.batch_scan import header_damage
from broker.log.segment.segment import Segment
from broker.protocol.records import (
    HEADER_BYTES,
    BatchHeader,
    batch_crc_is_valid,
    parse_batch_header,
)

_BATCH_START: Final = re.compile(rb"(?=\x00{3}.{5}\x00.{7}\x02)", re.DOTALL)
"""A base offset below 2**40, a batch length below 2**24, an epoch, magic 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataCheck:
    """Segments that end at or below `from_offset` are not read: a snapshot tells what they held.
    No batch has a later leader epoch than `epoch_max`, which this node's vote knows."""

    from_offset: int = 0
    may_cut: bool = False
    epoch_max: int = 2**31 - 1


class MetadataRules(CutRules):
    """`epochs`: (epoch, start offset) as written down, complete if the stop `is_clean`.
    `durable_end`: up to here the disk had the log."""

    def __init__(
        self,
        check: MetadataCheck,
        *,
        is_clean: bool,
        durable_end: int,
        epochs: Sequence[tuple[int, int]],
    ) -> None:
        self._check = check
        self._is_clean = is_clean
        self._durable_end = durable_end
        self._epochs = epochs
        self._epoch = 0

    def problem_of(self, header: BatchHeader, next_offset: int) -> str | None:
        """Base offset and leader epoch stand outside the CRC; here both follow from others."""
        if header.base_offset != next_offset:
            return f"offset {header.base_offset} stands where {next_offset} must"
        epoch = header.partition_leader_epoch
        written = [entry[0] for entry in self._epochs if entry[1] <= next_offset]
        is_other = self._is_clean and epoch not in written[-1:] and bool(written)
        if is_other or not self._epoch <= epoch <= self._check.epoch_max:
            return f"leader epoch {epoch} is not that of offset {next_offset}"
        self._epoch = epoch
        return None

    def problem_between(self, before: Segment, behind: Segment) -> str | None:
        """Only a roll that a crash overtook leaves a gap."""
        is_gap = before.next_offset < behind.base_offset
        if is_gap and (behind.size_bytes or behind.base_offset <= self._durable_end):
            return f"offsets {before.next_offset} to {behind.base_offset - 1} are missing before it"
        return None

    def before_cut(self, segment: Segment, damage: Damage, behind: Sequence[Segment]) -> None:
        """Raises DamagedMetadataError where more was held than a cut would leave."""
        good_end = segment.next_offset
        found = list(_batches_behind(segment, damage.position, good_end))
        for each in behind:
            found += _batches_behind(each, 0, each.base_offset)
        is_torn = damage.is_torn_tail and not self._is_clean and good_end >= self._durable_end
        if self._check.may_cut or (is_torn and not found):
            return
        is_told = self._is_clean and self._epochs
        epochs = [epoch for epoch, _ in (self._epochs if is_told else (*self._epochs, *found))]
        ends = [self._durable_end, good_end, *(each.base_offset for each in behind)]
        raise DamagedMetadataError(
            segment.path,
            damage.position,
            damage.reason,
            good_end=good_end,
            held=(max(epochs, default=0), max(ends + [end for _, end in found])),
            next_base=behind[0].base_offset if behind else None,
        )

    def check_end(self, segment: Segment) -> None:
        """A file may end between two batches, too early."""
        if segment.next_offset < self._durable_end:
            reason = f"the file ends before offset {self._durable_end}"
            damage = Damage(position=segment.size_bytes, reason=reason, is_torn_tail=False)
            self.before_cut(segment, damage, ())


def _batches_behind(
    segment: Segment, position: int, first_offset: int
) -> Iterator[tuple[int, int]]:
    """(leader epoch, end offset) of each whole batch from damage on, wherever it begins.

    Offsets stand outside the CRC: no more records are believed than bytes have room for, and a
    batch at the very place begins at `first_offset`.
    """
    data = memoryview(Path(segment.path).read_bytes())[position:]
    offset_max = first_offset + segment.size_bytes
    for match in _BATCH_START.finditer(data):
        start = match.start()
        if len(data) - start < HEADER_BYTES:
            return
        header = parse_batch_header(data, start)
        if header_damage(header, len(data) - start) is not None:
            continue
        batch = data[start : start + header.size_bytes]
        base_offset = header.base_offset if start else first_offset
        end = base_offset + header.last_offset_delta + 1
        if first_offset < end <= offset_max and batch_crc_is_valid(batch, header):
            yield header.partition_leader_epoch, end
