"""The proven minimum rack by rack, where every rack must hold one replica of every partition.

What a rack holds afterwards is then known: all partitions, once. Bytes that arrive at its brokers
are those that leave them plus what it gains (or loses) in all, so for each rack

    arriving ≥ max(what its brokers must receive, what they must lose + gain of the rack)

and the racks add up, since every byte arrives once. Looking at the whole cluster misses this: what
one rack must lose cannot fill brokers of another.

Worked example: racks a and b, a broker joins each, and one of two old ones leaves a. In a its
bytes fill the new broker; in b the new broker's share moves as well, and comes from b.
"""

import numpy as np

from planner.columns import Columns, Flags, Numbers


def bytes_by_rack(
    columns: Columns, rack: tuple[Numbers, int], out: Numbers, arriving: Numbers
) -> int:
    """The fewest bytes that move. `rack`: number of each broker's rack (those that only removed
    brokers have come last) and how many there are; `out`, `arriving`: per broker, what it must
    lose and receive. Every partition has as many replicas as there are racks."""
    number, racks = rack
    place = number[columns.on]
    on_rack = np.zeros((len(columns.width), racks + 1), dtype=np.int64)
    np.add.at(on_rack, (columns.of, place), 1)
    wanted = np.append(np.ones(racks, dtype=np.int64), 0)
    surplus = np.maximum(on_rack - wanted, 0)
    forced = (surplus * columns.size[:, None]).sum(axis=0)
    is_crowded: Flags = surplus[columns.of, place] > 0
    crowded = np.bincount(
        columns.on[is_crowded], weights=columns.size[columns.of[is_crowded]], minlength=len(out)
    ).astype(np.int64)
    gain = wanted * int(columns.size.sum()) - _by_rack(columns.held(), number, racks)
    shared = np.minimum(forced, _by_rack(np.minimum(out, crowded), number, racks))
    leaving = _by_rack(out, number, racks) + forced - shared
    return int(np.maximum(_by_rack(arriving, number, racks), leaving + gain).sum())


def _by_rack(values: Numbers, number: Numbers, racks: int) -> Numbers:
    total = np.zeros(racks + 1, dtype=np.int64)
    np.add.at(total, number, values)
    return total
