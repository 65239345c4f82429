"""Racks of brokers, some of them unknown. Pure.

A broker without `broker.rack` beside others that have one stands on a rack of its own that nobody
knows. It asks for nothing: partitions need as many racks as are known. It counts as a rack of its
own where it holds a replica. A partition with a replica there keeps its known racks: whichever rack
the unknown one is, it is then on as many as before.

Worked example: brokers 1 (a), 2 (b), 3 (c) and 9 (unknown). Partition [1, 2, 9] is on two known
racks and broker 9, which is as good as three. It never becomes [3, 2, 9], for 9 may be on rack c;
and [1, 2, 3] never becomes [1, 2, 9].
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from control.model.units import counted

NAMES_MAX: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Racks:
    """The rack of each broker; null, or absent, where it is not known."""

    of: Mapping[int, str | None]

    @property
    def unknown(self) -> tuple[int, ...]:
        """Brokers without a rack where others have one."""
        if not any(rack is not None for rack in self.of.values()):
            return ()
        return tuple(sorted(broker for broker, rack in self.of.items() if rack is None))

    def known(self, brokers: Iterable[int]) -> frozenset[str]:
        """The known racks that these are on."""
        return frozenset(rack for b in brokers if (rack := self.of.get(b)) is not None)

    def number(self, brokers: Iterable[int]) -> int:
        """On how many racks these are, each broker of an unknown one for itself."""
        distinct = set(brokers)
        return len(self.known(distinct)) + sum(self.of.get(b) is None for b in distinct)

    def most(self, brokers: Iterable[int]) -> int:
        """How many of these stand on one known rack, at most."""
        racks = Counter(rack for b in brokers if (rack := self.of.get(b)) is not None)
        return max(racks.values(), default=0)

    def words(self, brokers: Iterable[int]) -> str:
        """``2 racks``, or ``2 racks and 1 unknown``."""
        distinct = set(brokers)
        unknown = sum(self.of.get(b) is None for b in distinct)
        racks = counted(len(self.known(distinct)), "rack")
        return f"{racks} and {unknown} unknown" if unknown else racks

    def given_up(self, before: Iterable[int], after: Iterable[int]) -> str:
        """Says that a partition leaves a known rack although a replica of it is on an unknown one,
        so that it may be on fewer racks afterwards; empty where it does not."""
        now, then = tuple(before), tuple(after)
        had, has = self.known(now), self.known(then)
        unknown = sorted(b for b in then if self.of.get(b) is None)
        is_smaller = len(then) < len(now) and len(has) >= min(len(had), len(then))
        if not unknown or not had - has or len(now) < 2 or is_smaller:
            return ""
        return f"leaves rack {min(had - has)} while the rack of broker {unknown[0]} is unknown"


def unknown_words(brokers: Iterable[int]) -> str:
    """``broker 9 has no rack``, or ``brokers 8, 9 have no rack``."""
    ids = tuple(brokers)
    more = f" and {len(ids) - NAMES_MAX} more" if len(ids) > NAMES_MAX else ""
    names = ", ".join(map(str, ids[:NAMES_MAX])) + more
    return f"broker {names} has no rack" if len(ids) == 1 else f"brokers {names} have no rack"
