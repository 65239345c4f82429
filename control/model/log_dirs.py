"""Log directories of a broker, and which of them lie on one file system. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from broker.metrics_schema import LogDirSample

SAME_WITHIN_BYTES: Final = 1 << 20
"""A broker reads the free bytes of its directories one after the other, and writes meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """Directories of one broker that share their free bytes.

    The protocol does not name file systems. Directories share one where their sizes are equal,
    their free bytes as good as equal, and where it can hold the replicas of them all: that is
    likely, and not known.
    """

    directories: tuple[LogDirSample, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of its directories."""
        return tuple(it.path for it in self.directories)

    @property
    def total_bytes(self) -> int | None:
        """Its size; None where the broker does not tell."""
        return self.directories[0].total_bytes

    @property
    def usable_bytes(self) -> int | None:
        """Its free bytes, as the lowest reading has them; None where the broker does not tell."""
        told = [it.usable_bytes for it in self.directories if it.usable_bytes is not None]
        return min(told, default=None)

    @property
    def is_assumed(self) -> bool:
        """Whether several directories are taken for one file system."""
        return len(self.directories) > 1

    def takes_in(self, other: LogDirSample) -> bool:
        """Whether a directory seems to lie on it as well."""
        total, usable = self.total_bytes, self.usable_bytes
        if total is None or usable is None or other.usable_bytes is None:
            return False
        if total != other.total_bytes or abs(usable - other.usable_bytes) > SAME_WITHIN_BYTES:
            return False
        held = other.size_bytes + sum(it.size_bytes for it in self.directories)
        return held <= total - usable + SAME_WITHIN_BYTES


def file_systems(directories: Iterable[LogDirSample]) -> tuple[FileSystem, ...]:
    """The file systems of one broker's live directories: a failed one tells no figures."""
    found: list[FileSystem] = []
    for directory in sorted(directories, key=lambda it: it.path):
        if directory.is_failed:
            continue
        for place, known in enumerate(found):
            if known.takes_in(directory):
                found[place] = FileSystem(directories=(*known.directories, directory))
                break
        else:
            found.append(FileSystem(directories=(directory,)))
    return tuple(found)
