"""The producers of one log, and their snapshots on the disk."""

from collections.abc import Sequence

from broker.log.errors import CorruptSegmentError
from broker.log.producer.producer_snapshot import (
    list_snapshots,
    load_newest_snapshot,
    remove_snapshots,
    write_snapshot,
)
from broker.log.producer.producer_state import ProducerState
from broker.log.segment.segment import Segment
from broker.protocol.control_records import Marker, read_marker
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import BatchHeader


class LogProducers:
    """Producers up to the log's end; read anew after a truncation."""

    def __init__(
        self, directory: str, segments: Sequence[Segment], loaded: ProducerState | None
    ) -> None:
        self._directory = directory
        self._segments = segments
        self._loaded = loaded

    @property
    def state(self) -> ProducerState:
        """State of each producer.

        :raises StorageError: the disk refused.
        """
        if self._loaded is None:
            snapshots = list_snapshots(self._directory)
            self._loaded = load_producers(self._directory, snapshots, self._segments)
        return self._loaded

    def write_snapshot(self, offset: int) -> None:
        """Write down how they stand at the log's end.

        :raises StorageError: the disk refused.
        """
        write_snapshot(self._directory, offset, self.state)

    def has_snapshot(self, offset: int) -> bool:
        """Whether they were written down as of an offset."""
        return offset in list_snapshots(self._directory)

    def forget(self) -> ProducerState | None:
        """The log is being cut: nothing is known of them. Answers what was."""
        known, self._loaded = self._loaded, None
        return known

    def keep_if_none(self, known: ProducerState | None, end: int) -> None:
        """The log was cut to `end`: a log without producers still has none."""
        if known is not None and not known.entries:
            stale = {offset for offset in list_snapshots(self._directory) if offset > end}
            remove_snapshots(self._directory, stale)
            self._loaded = known

    def remove_snapshots(self) -> None:
        """The log is about to start anew.

        :raises StorageError: the disk refused.
        """
        self._loaded = None
        remove_snapshots(self._directory, set(list_snapshots(self._directory)))

    def start_anew(self) -> None:
        """The log is empty: there are none."""
        self._loaded = ProducerState()


def load_producers(
    directory: str, snapshots: list[int], segments: Sequence[Segment], *, durable: int | None = None
) -> ProducerState:
    """Producers as they stand at the log's end: newest snapshot, then the batches behind it.

    Snapshots above the end, and those that no segment needs, are removed. What is read is indexed
    anew where it aborts a transaction. After a crash that is all from the segment on that holds
    `durable`: everything below was forced to the disk.
    """
    end = segments[-1].next_offset
    bases = {segment.base_offset for segment in segments}
    newest = max((offset for offset in snapshots if offset <= end), default=-1)
    stale = {o for o in snapshots if o > end or (o not in bases and o != newest)}
    remove_snapshots(directory, stale)
    kept = [offset for offset in snapshots if offset not in stale]
    offset_max = end
    if durable is not None:
        offset_max = max((base for base in bases if base <= durable), default=0)
    state, start = load_newest_snapshot(directory, kept, offset_max=offset_max)
    for segment in segments:
        if segment.next_offset <= start:
            continue
        segment.transactions.keep_below(start)
        for header, position in segment.headers(segment.indexes.position_before(start)):
            if header.base_offset >= start and header.producer_id >= 0:
                aborted = state.replay(header, _marker(segment, header, position))
                segment.transactions.add(aborted)
    return state


def _marker(segment: Segment, header: BatchHeader, position: int) -> Marker | None:
    if not header.is_control:
        return None
    try:
        return read_marker(segment.slice(position, position + header.size_bytes).read())
    except MalformedRecordsError as error:
        raise CorruptSegmentError(segment.path, position, str(error)) from error
