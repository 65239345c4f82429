"""Tells how long producers may wait as a partition ends its move; never fails. Pure.

As an old replica goes, or the leader changes, the partition gets a new leader epoch. A follower
that hears of it before the leader does is told UNKNOWN_LEADER_EPOCH and asks again after
``replica.fetch.backoff.ms``; what producers with acks=all have sent to the partition waits with it,
and so does what they send afterwards on that connection. Brokers take this config from their
properties files alone. Kafka: AbstractFetcherThread.handlePartitionsWithErrors; measured in
docs/decisions/0012.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from control.model.units import duration_text
from control.move.check import Check, check_of
from planner.proposal import PartitionChange

FETCH_BACKOFF: Final = "replica.fetch.backoff.ms"
FIRST_BACKOFF: Final = "partiscope.replica.fetch.backoff.first.ms"
"""Of bundled brokers, who begin with it and double it up to the other."""
SHORT_BACKOFF_MS: Final = 100


def check_producers(
    backoff_ms: Mapping[int, int], changes: Iterable[PartitionChange]
) -> tuple[Check, ...]:
    """How long they may wait where epochs change; nothing where no follower there tells."""
    ending = [change for change in changes if change.removing or change.has_new_leader]
    follow = {broker for change in ending for broker in change.after}
    longest_ms = max((ms for broker, ms in backoff_ms.items() if broker in follow), default=None)
    if longest_ms is None:
        return ()
    each = "the partition" if len(ending) == 1 else f"each of {len(ending):,} partitions"
    words = (
        f"with acks=all they may wait {duration_text(longest_ms)} once for {each}, when its leader "
        "epoch changes"
    )
    if longest_ms > SHORT_BACKOFF_MS:
        words += (
            f"; {FETCH_BACKOFF}={SHORT_BACKOFF_MS} in the properties of every broker makes it "
            "shorter"
        )
    return (check_of("producers", [], fine=words),)
