"""One partition's part in a merge: what was read of it and not yet shown. Pure; forward or back.

A source says where to fetch (`position`), takes what came (`handle_fetched`), and gives its items
in order (`head`, `pop`). Records that nobody looks for count in the order as well: those in a row
are one `Passed`, so that a search says how far it has scanned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence, Set
from functools import partial
from typing import Final

from control.kafka.records.decoding import ChunkDecoder, FetchedBytes
from control.kafka.records.fetching import BATCH_BYTES_MAX, PARTITION_BYTES_MAX
from control.kafka.records.record import (
    FetchedRecord,
    Gap,
    Isolation,
    Item,
    Mask,
    Matches,
    Matching,
    MayMatch,
    Passed,
    Unread,
    cut_record,
    first_offset_of,
    last_offset_of,
    looked_for,
)
from control.model.ids import TopicPartition

OPENED_MAX: Final = 2_000
"""Records opened at a time, and kept of one partition."""
_WINDOW_RECORDS: Final = 16
_WINDOW_BYTES: Final = 4 << 20
"""Read forward within a step back; a step that holds more is taken shorter."""


class Source(ABC):
    """A partition that is read; both directions share this."""

    def __init__(
        self,
        partition: TopicPartition,
        *,
        first: int,
        end: int,
        stable: int,
        matches: Matches | None = None,
        matching: Matching | None = None,
        may_match: MayMatch | None = None,
        kept_bytes: int | None = None,
        mask: Mask | None = None,
    ) -> None:
        """Reads offsets `first` to `end` - 1; transactions before `stable` are decided."""
        self.partition = partition
        self.first = first
        self.end = end
        self.items: deque[Item] = deque()
        self.partition_bytes = PARTITION_BYTES_MAX
        self.read_bytes = 0
        self.unread: Unread | None = None
        self.is_stalled = False
        """The last answer brought it no further."""
        self._stable = stable
        self._matches = matches
        self._matching = matching
        # A batch is judged by its bytes as they are: who searches would learn what is masked.
        self._may_match = may_match if mask is None else None
        self._mask = mask
        self._kept_bytes = kept_bytes
        self._leap = 1
        self._log_end = end
        self._offset_count = max(0, end - first)
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Sets up the state of a direction."""

    @property
    @abstractmethod
    def position(self) -> int:
        """The offset to fetch."""

    @property
    @abstractmethod
    def is_at_end(self) -> bool:
        """Nothing more is to be fetched."""

    @property
    @abstractmethod
    def rest(self) -> int:
        """Where reading goes on behind what was popped; backwards: before which offset."""

    @abstractmethod
    def head(self) -> Item:
        """The next item."""

    @abstractmethod
    def pop(self) -> Item:
        """Take the next item out."""

    def pop_within(self, most: int) -> Item:
        """Take the next item out; of records in a row that are not looked for at most so many."""
        item = self.pop()
        if not isinstance(item, Passed) or item.record_count <= most:
            return item
        taken, left = self._split(item, most)
        self._put_back(left)
        return taken

    @abstractmethod
    def _split(self, passed: Passed, count: int) -> tuple[Passed, Passed]:
        """The next so many of them, and the others."""

    @abstractmethod
    def _put_back(self, item: Item) -> None:
        """It is the next one again."""

    @abstractmethod
    def handle_fetched(self, fetched: FetchedBytes) -> None:
        """Open what came, or the first of it."""

    @abstractmethod
    def skip_to(self, offset: int, reason: str) -> None:
        """The log does not hold what is before an offset any more."""

    @property
    def offset_count(self) -> int:
        """From `first` to `end`."""
        return self._offset_count

    @property
    @abstractmethod
    def offsets_left(self) -> int:
        """Offsets that are not popped yet; 0 also where nothing more comes."""

    @property
    def has_more_open(self) -> bool:
        """Whether fetched bytes are still to be opened, by `open_more`."""
        return False

    def open_more(self) -> None:
        """Open the next of what came."""
        raise AssertionError("there is never more")

    @property
    def isolation(self) -> Isolation:
        """A broker names aborted transactions only to those that ask for committed records, and
        gives them none from the last stable offset on."""
        is_decided = self.position < self._stable
        return Isolation.READ_COMMITTED if is_decided else Isolation.READ_UNCOMMITTED

    def give_up(self, reason: str) -> None:
        """Ends the reading of this partition for a reason."""
        self.unread = Unread(partition=self.partition, reason=reason)

    def _decoder(self, fetched: FetchedBytes, first_offset: int | None = None) -> ChunkDecoder:
        self.read_bytes += len(fetched.data)
        if fetched.end_offset >= 0:
            self._log_end = fetched.end_offset
        return ChunkDecoder(
            self.partition,
            fetched,
            self.position,
            first_offset=first_offset,
            may_match=self._may_match,
        )

    def _keep_all(self, kept: deque[Item], items: Sequence[Item], end: int) -> None:
        """Put items behind those that are kept, as far as they lie before `end`."""
        if (mask := self._mask) is not None:
            items = [mask(it) if isinstance(it, FetchedRecord) else it for it in items]
        matches = self._matches
        if self._matching is not None:
            records = (it for it in items if isinstance(it, FetchedRecord) and it.offset < end)
            offsets = {it.offset for it in looked_for(records, matches, self._matching)}
            matches = partial(_is_among, offsets)
        for item in items:
            self._keep(kept, item, end, matches)

    def _keep(self, kept: deque[Item], item: Item, end: int, matches: Matches | None) -> None:
        if first_offset_of(item) >= end:
            return
        if isinstance(item, FetchedRecord):
            if matches is None or matches(item):
                is_whole = self._kept_bytes is None
                kept.append(item if is_whole else cut_record(item, self._kept_bytes or 0))
                return
            item = Passed(item.offset, item.timestamp_ms, item.offset)
        elif isinstance(item, Passed):
            item = item._replace(last_offset=min(item.last_offset, end - 1))
        before = kept[-1] if kept else None
        if (
            isinstance(before, Passed)
            and isinstance(item, Passed)
            and before.last_offset + 1 == item.offset
        ):
            newest_ms = max(before.timestamp_ms, item.timestamp_ms)
            kept[-1] = Passed(before.offset, newest_ms, item.last_offset)
        else:
            kept.append(item)

    @abstractmethod
    def leap(self, reason: str) -> None:
        """Past what cannot be read, ever further; it becomes a gap."""

    def _handle_no_progress(self, decoder: ChunkDecoder) -> None:
        """More bytes may be needed, or there is something that no reader gets past."""
        self.is_stalled = True
        is_asked_whole = self.partition_bytes > PARTITION_BYTES_MAX
        if 0 < decoder.partial_bytes <= BATCH_BYTES_MAX and not is_asked_whole:
            self.partition_bytes = max(decoder.partial_bytes, PARTITION_BYTES_MAX + 1)
            return
        self.partition_bytes = PARTITION_BYTES_MAX
        if decoder.partial_bytes:
            self.leap(f"a batch claims {decoder.partial_bytes:,} bytes, which are not there")
        elif decoder.damage is not None:
            self.leap(decoder.damage)

    def _next_leap(self, end: int, reason: str) -> Gap:
        # Records from the last stable offset on are not told to whom asks for those before it.
        if self.position < self._stable:
            end = min(end, self._stable)
        last = max(self.position, min(self.position + self._leap, end, self._log_end) - 1)
        self._leap *= 2
        self.is_stalled = False
        return gap_of(self.partition, self.position, last, reason)


class ForwardSource(Source):
    """From `first` to `end`, oldest first."""

    def _begin(self) -> None:
        self._at = self.first
        self._open: ChunkDecoder | None = None

    @property
    def position(self) -> int:
        return self._at

    @property
    def has_more_open(self) -> bool:
        return self._open is not None

    @property
    def is_at_end(self) -> bool:
        return self.unread is not None or (self._open is None and self._at >= self.end)

    @property
    def rest(self) -> int:
        if self.items:
            return first_offset_of(self.items[0])
        return min(self._at, self.end)  # a fetch may give more than is wanted here

    @property
    def offsets_left(self) -> int:
        return 0 if self.unread else max(0, self.end - self.rest)

    def head(self) -> Item:
        return self.items[0]

    def pop(self) -> Item:
        return self.items.popleft()

    def _split(self, passed: Passed, count: int) -> tuple[Passed, Passed]:
        return _halves(passed, count)

    def _put_back(self, item: Item) -> None:
        self.items.appendleft(item)

    def skip_to(self, offset: int, reason: str) -> None:
        last = min(offset, self.end) - 1
        if last >= self._at:
            self.items.append(gap_of(self.partition, self._at, last, reason))
        self._at = offset

    def move_to(self, offset: int) -> None:
        """Read on from another offset; what was read is forgotten."""
        self.items.clear()
        self._open = None
        self._at = offset

    def handle_fetched(self, fetched: FetchedBytes) -> None:
        self._open = self._decoder(fetched)
        self.open_more()

    def open_more(self) -> None:
        decoder = self._open
        if decoder is None:
            return
        self._keep_all(self.items, decoder.take(OPENED_MAX), self.end)
        before, self._at = self._at, max(self._at, decoder.next_offset)
        self.is_stalled = self._at == before and not self.items
        if self._at >= self.end:
            self._open = None
        elif decoder.is_done:
            self._open = None
            if decoder.next_offset <= before and self.is_stalled:
                self._handle_no_progress(decoder)
            elif not decoder.damage:
                self._leap = 1

    def leap(self, reason: str) -> None:
        gap = self._next_leap(self.end, reason)
        self.items.append(gap)
        self._at = gap.last_offset + 1


class BackwardSource(Source):
    """From `end` back to `first`, newest first: by steps back, each read forward."""

    def _begin(self) -> None:
        self._low = self.end
        """Everything from here to `end` was read."""
        self._step = _WINDOW_RECORDS
        self._window_bytes = 0
        self._read: deque[Item] = deque(maxlen=OPENED_MAX)
        self._start = self._at = self.end
        self._begin_window(self._step)

    @property
    def position(self) -> int:
        return self._at

    @property
    def is_at_end(self) -> bool:
        return self.unread is not None or self._low <= self.first

    @property
    def rest(self) -> int:
        if not self.items:
            return self._low
        return last_offset_of(self.items[-1]) + 1

    @property
    def offsets_left(self) -> int:
        return 0 if self.unread else max(0, self.rest - self.first)

    def head(self) -> Item:
        return self.items[-1]

    def pop(self) -> Item:
        return self.items.pop()

    def _split(self, passed: Passed, count: int) -> tuple[Passed, Passed]:
        left, taken = _halves(passed, passed.record_count - count)
        return taken, left

    def _put_back(self, item: Item) -> None:
        self.items.append(item)

    def skip_to(self, offset: int, reason: str) -> None:
        last = min(offset, self._low) - 1
        if last >= self.first:
            self._read.append(gap_of(self.partition, max(self.first, self._start), last, reason))
        self.first = offset
        self._start = max(self._start, min(offset, self._low))
        self._at = max(self._at, offset)
        if self._at >= self._low:
            self._end_window()

    def handle_fetched(self, fetched: FetchedBytes) -> None:
        """Open what came; when the step is read whole, its items are there."""
        is_first = self._at == self._start
        decoder = self._decoder(fetched, first_offset=self.first if is_first else None)
        self._window_bytes += len(fetched.data)
        before = self._at
        self.is_stalled = False
        while not decoder.is_done and self._at < self._low:
            self._keep_all(self._read, decoder.take(OPENED_MAX), self._low)
            self._at = max(self._at, decoder.next_offset)
        if self._at == before:
            self._handle_no_progress(decoder)
        else:
            self._settle_window()

    def leap(self, reason: str) -> None:
        gap = self._next_leap(self._low, reason)
        self._read.append(gap)
        self._at = gap.last_offset + 1
        self._settle_window()

    def _settle_window(self) -> None:
        if self._at >= self._low:
            self._end_window()
        elif self._window_bytes >= _WINDOW_BYTES and self._low - self._start > 1:
            self._shorten_window()

    def _end_window(self) -> None:
        read, self._read = self._read, deque(maxlen=OPENED_MAX)
        was_cut = len(read) == OPENED_MAX
        oldest = min((first_offset_of(item) for item in read), default=self._start)
        self._low = oldest if was_cut else max(self.first, min(self._start, oldest))
        self.items = read
        step = self._step * 4
        if read:
            offset_bytes = max(1, self._window_bytes // max(1, last_offset_of(read[-1]) - oldest))
            step = max(1, min(step, _WINDOW_BYTES // offset_bytes))
        if was_cut or self._may_match is None:
            step = min(step, OPENED_MAX)
        self._begin_window(step)

    def _begin_window(self, step: int) -> None:
        self._step = step
        self._start = self._at = max(self.first, self._low - step)
        self._window_bytes = 0

    def _shorten_window(self) -> None:
        """By what an offset has weighed: what was read of this step is read again later."""
        self._read.clear()
        offset_bytes = max(1, self._window_bytes // max(1, self._at - self._start))
        step = max(1, min(_WINDOW_BYTES // offset_bytes, (self._low - self._start) // 2))
        self._begin_window(step)


def _is_among(offsets: Set[int], record: FetchedRecord) -> bool:
    return record.offset in offsets


def _halves(passed: Passed, count: int) -> tuple[Passed, Passed]:
    """The first so many of them, and those behind."""
    at = passed.offset + count
    return passed._replace(last_offset=at - 1), passed._replace(offset=at)


def gap_of(partition: TopicPartition, first: int, last: int, reason: str) -> Gap:
    """A gap of offsets that holds an unknown number of records."""
    return Gap(
        topic=partition.topic,
        partition=partition.partition,
        first_offset=first,
        last_offset=last,
        records=None,
        reason=reason,
    )
