"""Where would these keys land, and which of them move when partitions are added: a forecast."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from control.messages.keys import is_description, parse_keys
from control.messages.partitioners import KeyRule, key_hash
from control.model.units import counted

KEYS_PREVIEWED: Final = 10_000
MOVES_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMove:
    """A key whose next records land on another partition than those before."""

    key: bytes
    now: int
    then: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Records per partition (index) under one rule, now and with another number of partitions.

    `skew` is the fullest partition against the mean: 0.0 is even, 1.0 is twice the mean.
    `unkeyed` records have no rule and are not in `records`. Without another number, `records_then`
    and `moves` are empty.
    """

    rule: KeyRule
    records: tuple[int, ...]
    distinct_keys: int
    unkeyed: int
    records_then: tuple[int, ...] = ()
    moves: tuple[KeyMove, ...] = ()
    """Each key once."""

    @property
    def total(self) -> int:
        """Records with a place."""
        return sum(self.records)

    @property
    def skew(self) -> float:
        """The fullest partition against the mean."""
        return max(self.records) * len(self.records) / self.total - 1.0 if self.total else 0.0

    @property
    def empty_partitions(self) -> int:
        """Partitions that would get nothing."""
        return self.records.count(0)


def keys_to_preview(
    description: str | None, count: int = KEYS_PREVIEWED
) -> tuple[bytes | None, ...]:
    """The first keys that a description makes; of one fixed key or none, those of ``seq``.

    :raises KeySpecError: bad numbers.
    """
    makes_many = description is not None and ("{n}" in description or is_description(description))
    usual = not makes_many or description == "none"
    choose = parse_keys("seq" if usual else description, np.random.default_rng(0))
    return tuple(map(choose, range(count)))


def forecast(
    keys: Iterable[bytes | None], *, partitions: int, rule: KeyRule, then: int | None = None
) -> Forecast:
    """Count where each key lands, and would with `then` partitions; equal keys are hashed once.

    :raises ValueError: no partition.
    """
    if min(partitions, partitions if then is None else then) < 1:
        raise ValueError("a topic has at least one partition")
    counts = Counter(keys)
    unkeyed = counts.pop(None, 0)
    now, later, moves = [0] * partitions, [0] * (then or 0), []
    for key, count in counts.items():
        assert key is not None
        found = key_hash(rule, key)
        if found is None:
            unkeyed += count
            continue
        now[found % partitions] += count
        if then is not None:
            later[found % then] += count
            if found % partitions != found % then:
                moves.append(KeyMove(key=key, now=found % partitions, then=found % then))
    return Forecast(
        rule=rule,
        records=tuple(now),
        distinct_keys=len(counts),
        unkeyed=unkeyed,
        records_then=tuple(later),
        moves=tuple(moves),
    )


def moving_words(found: Forecast) -> str:
    """``5,012 of 10,000 keys move, such as k-1 3 → 9``."""
    if not found.moves:
        return "no key moves"
    named = ", ".join(
        f"{move.key.decode(errors='replace')} {move.now} → {move.then}"
        for move in found.moves[:MOVES_NAMED]
    )
    return f"{len(found.moves):,} of {counted(found.distinct_keys, 'key')} move, such as {named}"
