"""Replication throttles (KIP-73): a byte rate per node and direction, for chosen replicas.

`leader.replication.throttled.rate` and `follower.replication.throttled.rate` are dynamic broker
configs; `*.replication.throttled.replicas` are topic configs: `*` or `partition:broker,...`.
Replicas in the ISR, and those about to join it, are never held back (producers wait for them), but
their bytes count.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

UNLIMITED: Final = 2**63 - 1
SAVED_MS_MAX: Final = 200
"""What was not used is saved up for so long, no longer: timers come late, but no burst may follow
an idle time.
"""
STEPS_PER_S: Final = 20


class ByteBucket:
    """Allows `rate` bytes a second.

    A response may overdraw the bucket; it is then empty until the debt is paid back at the rate,
    so the average holds whatever the size of a response. Throttled replicas are served in steps of
    `step_bytes`, so that the average holds over short times, too.
    """

    __slots__ = ("_allowance_bytes", "_updated_ms", "rate")

    def __init__(self) -> None:
        self.rate = UNLIMITED
        self._allowance_bytes = 0.0
        self._updated_ms = 0

    def set_rate(self, rate: int, now_ms: int) -> None:
        """Change the limit, bytes a second; a debt under the old rate is forgiven."""
        if rate != self.rate:
            self.rate = rate
            self._allowance_bytes = 0.0
            self._updated_ms = now_ms

    @property
    def step_bytes(self) -> int:
        """How much of a throttled replica to send or ask for at once."""
        return max(self.rate // STEPS_PER_S, 1)

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes that were sent or received."""
        if self.rate != UNLIMITED:
            self._refill(now_ms)
            self._allowance_bytes -= size_bytes

    def wait_ms(self, now_ms: int) -> int:
        """0 when bytes may flow, else ms until they may."""
        if self.rate == UNLIMITED:
            return 0
        self._refill(now_ms)
        if self._allowance_bytes >= 0:
            return 0
        return int(-self._allowance_bytes * 1000 / max(self.rate, 1)) + 1

    def _refill(self, now_ms: int) -> None:
        earned_bytes = self.rate * (now_ms - self._updated_ms) / 1000
        saved_bytes_max = self.rate * SAVED_MS_MAX / 1000
        self._allowance_bytes = min(self._allowance_bytes + earned_bytes, saved_bytes_max)
        self._updated_ms = now_ms


def is_throttled(replicas_config: str, partition: int, broker_id: int) -> bool:
    """Whether a `*.replication.throttled.replicas` value names this replica.

    Of a topic with thousands of partitions the value has tens of thousands of entries, and each of
    its replicas is looked for.
    """
    text = replicas_config.strip()
    if text in ("", "none"):
        return False
    return text == "*" or str(partition) in _partitions_of(text, broker_id)


@lru_cache(maxsize=8)
def _partitions_of(text: str, broker_id: int) -> frozenset[str]:
    suffix = f":{broker_id}"
    entries = (entry.strip() for entry in text.split(","))
    return frozenset(entry.removesuffix(suffix) for entry in entries if entry.endswith(suffix))


def throttled_rate(configs: Mapping[str, str], name: str) -> int:
    """A throttle rate among a broker's dynamic configs; unlimited when unset or unusable."""
    try:
        rate = int(configs.get(name) or UNLIMITED)
    except ValueError:
        return UNLIMITED
    return rate if rate >= 0 else UNLIMITED
