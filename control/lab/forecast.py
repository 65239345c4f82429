"""Where would these keys land: a forecast before anything is sent."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from control.lab.partitioners import KeyRule, partition_for

TOP_KEYS_MAX: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class HotKey:
    """A frequent key, how often it came, and where it goes."""

    key: bytes
    records: int
    partition: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Records per partition (index) under one rule.

    `skew` is the fullest partition against the mean: 0.0 is even, 1.0 is twice the mean.
    `unkeyed` records have no rule and are not in `records`.
    """

    rule: KeyRule
    records: tuple[int, ...]
    distinct_keys: int
    unkeyed: int
    skew: float
    hot_keys: tuple[HotKey, ...]

    @property
    def total(self) -> int:
        """Records with a place."""
        return sum(self.records)

    @property
    def empty_partitions(self) -> int:
        """Partitions that would get nothing."""
        return self.records.count(0)


def forecast(keys: Iterable[bytes | None], *, partitions: int, rule: KeyRule) -> Forecast:
    """Count where each key lands; equal keys are hashed once.

    :raises ValueError: no partition.
    """
    counts = Counter(keys)
    unkeyed = counts.pop(None, 0)
    per_partition = [0] * partitions
    place: dict[bytes, int | None] = {}
    for key, count in counts.items():
        assert key is not None
        place[key] = partition_for(rule, key, partitions)
        partition = place[key]
        if partition is None:
            unkeyed += count
        else:
            per_partition[partition] += count
    mean = sum(per_partition) / partitions
    hottest = sorted(counts.items(), key=lambda item: (-item[1], item[0] or b""))[:TOP_KEYS_MAX]
    return Forecast(
        rule=rule,
        records=tuple(per_partition),
        distinct_keys=len(counts),
        unkeyed=unkeyed,
        skew=max(per_partition) / mean - 1.0 if mean else 0.0,
        hot_keys=tuple(
            HotKey(key=key, records=count, partition=place[key])
            for key, count in hottest
            if key is not None
        ),
    )
