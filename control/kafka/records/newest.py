"""The newest records of a topic that is followed, within a number and within bytes."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from control.kafka.records.record import FetchedRecord

NEWEST_BYTES_MAX: Final = 16 << 20
"""Of keys, values and headers that are kept; a larger record is kept alone."""


class NewestRecords:
    """Older records make room for newer ones; ``share`` tells how many were never shown."""

    def __init__(self, *, count_max: int, bytes_max: int = NEWEST_BYTES_MAX) -> None:
        self._kept: deque[FetchedRecord] = deque()
        self._count_max, self._bytes_max = count_max, bytes_max
        self._came = 0
        self.bytes = 0
        """Of the records that are kept."""

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[FetchedRecord]:
        """The oldest first."""
        return iter(self._kept)

    def __reversed__(self) -> Iterator[FetchedRecord]:
        return reversed(self._kept)

    def append(self, record: FetchedRecord) -> None:
        """The newest."""
        self._kept.append(record)
        self._came += 1
        self.bytes += kept_bytes(record)
        while len(self) > self._count_max or (self.bytes > self._bytes_max and len(self) > 1):
            self.bytes -= kept_bytes(self._kept.popleft())

    def clear(self) -> None:
        """Begin anew."""
        self._kept.clear()
        self._came = self.bytes = 0

    def share(self) -> int:
        """One of so many records that came since the last call is kept; 1: all of them are."""
        came, self._came = self._came, 0
        shown = min(came, len(self))
        return -(-came // shown) if shown else 1


def share_words(share: int) -> str:
    """Words of a screen about the share; empty: every record is shown."""
    return f", too fast to show all: 1 of {share:,} is shown" if share > 1 else ""


def kept_bytes(record: FetchedRecord) -> int:
    """Bytes of its key, value and headers, as far as they are kept."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
