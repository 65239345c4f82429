"""What a run of chaos tells: which misfortune cost how long a silence, and what processes took."""

import bisect
import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfortune:
    """One node's misfortune; `roles` are what it was when it met it, "follower" if nothing else."""

    kind: str
    node: int
    roles: tuple[str, ...]
    begun_s: float

    @property
    def name(self) -> str:
        """The kind and the roles, as the report groups them."""
        return f"{self.kind} of {' and '.join(self.roles)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The largest memory and the most descriptors of a node at one moment."""

    resident_bytes: int
    descriptors: int
    of_kind: Mapping[str, int]
    """Descriptors of the node that has most: `socket`, or the end of a file's name."""


@dataclass
class ChaosReport:
    """Notes misfortunes and sizes; `figures` adds the times of all acknowledgements."""

    misfortunes: list[Misfortune] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)

    def measure(self, pids: Sequence[int]) -> None:
        """Look at the processes that run."""
        found = list[tuple[int, int, Mapping[str, int]]]()
        for pid in pids:
            with suppress(OSError):
                folder = Path(f"/proc/{pid}")
                pages = int((folder / "statm").read_text().split()[1])
                held = Counter(map(_kind, (folder / "fd").iterdir()))
                found.append((pages * PAGE_BYTES, held.total(), held))
        if found:
            _, descriptors, kinds = max(found, key=lambda it: it[1])
            resident = max(found, key=lambda it: it[0])[0]
            size = Size(resident_bytes=resident, descriptors=descriptors, of_kind=kinds)
            self.sizes.append(size)

    def half(self, *, is_late: bool) -> Size:
        """The largest sizes in one half of the run."""
        middle = len(self.sizes) // 2
        half = self.sizes[middle:] if is_late else self.sizes[:middle]
        most = max(half, key=lambda each: each.descriptors)
        return Size(
            resident_bytes=max(each.resident_bytes for each in half),
            descriptors=most.descriptors,
            of_kind=most.of_kind,
        )

    def figures(self, ack_times: Sequence[float]) -> dict[str, Any]:
        """Counts by kind, the longest gap of each, sizes; times are seconds since the first one."""
        memory_mb = [each.resident_bytes >> 20 for each in self.sizes]
        descriptors = [each.descriptors for each in self.sizes]
        return {
            "misfortunes": dict(Counter(each.kind for each in self.misfortunes)),
            "longest_gaps": longest_gaps(self.misfortunes, ack_times),
            "memory_mb": _ends(memory_mb),
            "descriptors": _ends(descriptors),
            "descriptors_by_kind": {
                "first": self.sizes[0].of_kind,
                "last": self.sizes[-1].of_kind,
            }
            if self.sizes
            else {},
        }


def longest_gaps(
    misfortunes: Sequence[Misfortune], ack_times: Sequence[float]
) -> dict[str, dict[str, float]]:
    """By kind and roles: how many there were, the longest gap that began in one, and when."""
    starts = [each.begun_s for each in misfortunes]
    longest = {
        each.name: {"count": 0, "gap_s": 0.0, "node": 0, "at_s": 0.0} for each in misfortunes
    }
    for each in misfortunes:
        longest[each.name]["count"] += 1
    for before, after in itertools.pairwise(ack_times):
        slot = bisect.bisect_right(starts, after) - 1
        # A gap belongs to the misfortune that begins in it, else to the last one before it.
        if slot > 0 and starts[slot] > before and after - starts[slot] < starts[slot] - before:
            slot -= 1
        if slot < 0:
            continue
        met = misfortunes[slot]
        if after - before > longest[met.name]["gap_s"]:
            longest[met.name] |= {
                "gap_s": round(after - before, 2),
                "node": met.node,
                "at_s": round(before - starts[0], 1),
            }
    return dict(sorted(longest.items()))


def _kind(descriptor: Path) -> str:
    """`socket`, `.log` or `.index`: what a descriptor is open on; "" where it has closed."""
    try:
        target = os.readlink(descriptor)
    except OSError:
        return ""
    return target.split(":")[0] if ":" in target else Path(target).suffix or target


def _ends(values: Sequence[int]) -> dict[str, int]:
    return {"first": values[0], "last": values[-1], "peak": max(values)} if values else {}
