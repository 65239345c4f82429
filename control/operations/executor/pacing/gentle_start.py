"""How a move begins: its copies are asked for bit by bit, not all at one moment.

What new replicas ask for first is sent before any throttle knows of it (KIP-73 looks at what was
sent), at once by all leaders to all followers, and what producers write waits behind it. So no
request begins more than the throttle would let pass until the next one; what came of it is in
docs/decisions/0012.
"""

from itertools import accumulate, groupby
from operator import itemgetter
from typing import Final

from control.operations.executor.catching_up import FETCH_BYTES
from planner.proposal import PartitionChange
from planner.waves import Wave

BATCHES_MAX: Final = 20
BATCH_S: Final = 0.5
"""From one batch to the next: all is asked for within ten seconds."""


def gentle_start(wave: Wave, rate: int) -> list[Wave]:
    """Batches of a wave, in its order, at a throttle in bytes per second.

    Example: at 2 MiB/s, of three partitions of 1 MiB and more each is a batch; twenty of 100 KiB
    are two. At 50 MiB/s twenty of any size are one.
    """
    begun = tuple(accumulate(map(_first_bytes, wave), initial=0))
    most = max(FETCH_BYTES, rate * BATCH_S, begun[-1] / BATCHES_MAX)
    numbers = (before // most for before in begun)
    batches = groupby(zip(numbers, wave, strict=False), key=itemgetter(0))
    return [tuple(change for _, change in batch) for _, batch in batches]


def _first_bytes(change: PartitionChange) -> int:
    return min(change.size_bytes, FETCH_BYTES) * len(change.adding)
