"""How many bytes of rack repairs can at the same time be what brokers must lose: at most so many.

Each broken partition p lets go w(p) bytes of its crowded replicas, off the brokers that hold them;
a broker b has use for out(b) of them. The most that fits is a maximum flow from partitions to
brokers, and every cut is above it: choose any set of brokers, then

    shared ≤ Σ out(b) over brokers outside the set + Σ w(p) over partitions that touch the set.

So the choice needs no proof, only to be good. Partitions spread their bytes over their brokers,
again and again more to those that are less full; where that ends, the brokers with room left are
the set (all prefixes of the order by fullness are tried).

Worked example: two brokers must lose 10 each, and one partition of 12 has its crowded replicas on
both. By broker it could help with 10 and 10; but it lets go one of them: 12, not 20.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.columns import Floats, Numbers

_ROUNDS: Final = 60
_STEP: Final = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowded:
    """Replicas that a rack repair may take: `of` which broken partition (ascending), `on` which
    broker. `weight` are the bytes that each partition, by its number, lets go."""

    of: Numbers
    on: Numbers
    weight: Numbers


def shared_bytes(crowded: Crowded, out: Numbers) -> int:
    """The most bytes that count for both."""
    useful = out[crowded.on] > 0
    of, on = crowded.of[useful], crowded.on[useful]
    if not len(of):
        return 0
    partitions, starts = np.unique(of, return_index=True)
    weight = crowded.weight[partitions].astype(np.float64)
    order = np.argsort(_fullness(starts, on, weight, out), kind="stable")
    rank = np.empty(len(out), dtype=np.int64)
    rank[order] = np.arange(len(out))
    first = np.minimum.reduceat(rank[on], starts)
    touching = np.cumsum(np.bincount(first, weights=weight, minlength=len(out)))
    outside = float(out.sum()) - np.cumsum(out[order])
    cuts = np.concatenate((np.array([float(out.sum())]), touching + outside))
    return int(np.ceil(cuts.min()))


def _fullness(starts: Numbers, on: Numbers, weight: Floats, out: Numbers) -> Floats:
    """Bytes that each broker gets per byte it has use for, once partitions have spread theirs."""
    lengths = np.diff(np.append(starts, len(on)))
    each = np.repeat(weight, lengths)
    share = 1.0 / np.repeat(lengths, lengths)
    wanted = np.maximum(out.astype(np.float64), 1e-9)
    full: Floats = np.zeros(len(out))
    for _ in range(_ROUNDS):
        got = np.bincount(on, weights=share * each, minlength=len(out))
        full = np.where(out > 0, got / wanted, np.inf)
        pull = share * np.exp(-_STEP * np.minimum(full[on], 20.0))
        share = pull / np.repeat(np.add.reduceat(pull, starts), lengths)
    return full
