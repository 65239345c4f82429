"""Which snapshot of the metadata log, and parts of it on their way."""

from dataclasses import dataclass
from typing import Final

SNAPSHOT_SUFFIX: Final = ".checkpoint"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class SnapshotId:
    """The state after all records before `end_offset`; the last of them has this epoch."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """Kafka's name of the file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}{SNAPSHOT_SUFFIX}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPart:
    """Bytes of a snapshot file from some position on, and the size of the whole file."""

    size_bytes: int
    data: bytes
