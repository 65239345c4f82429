"""The follower's half of a fetch session, and partitions left out of it for a while."""

from collections.abc import Set as AbstractSet
from typing import Final

from broker.protocol.hot.fetch import INITIAL_EPOCH, NO_SESSION
from broker.protocol.hot.replica_fetch import TopicIdPartition
from broker.replication.leader.fetch_session import SESSION_EPOCH_MAX

_DOUBLINGS_MAX: Final = 10
FOR_EVER_MS: Final = 2**62


class FetchSessionHandler:
    """Which session the next request belongs to; `partitions` are those the leader knows of."""

    __slots__ = ("_epoch", "_id", "_is_opening", "partitions")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._is_opening = False
        self.partitions: set[TopicIdPartition] = set()

    @property
    def is_open(self) -> bool:
        """Whether the leader has named the session."""
        return self._epoch != INITIAL_EPOCH

    def advance(
        self, sent: AbstractSet[TopicIdPartition], gone: AbstractSet[TopicIdPartition]
    ) -> tuple[tuple[int, int], AbstractSet[TopicIdPartition]]:
        """The (id, epoch) of a request that sends these positions, and what it must forget: what
        is `gone` since the last one and was not taken up again."""
        session = (self._id, self._epoch)
        forgotten = (gone & self.partitions) - sent
        self.partitions |= sent
        self.partitions -= forgotten
        self._is_opening = not self.is_open
        if self.is_open:
            self._epoch = 1 if self._epoch == SESSION_EPOCH_MAX else self._epoch + 1
        return session, forgotten

    def answered(self, session_id: int) -> None:
        """Take the id that the leader gave a new session."""
        if self._is_opening:
            self._is_opening = False
            self._id = session_id
            self._epoch = 1


class HeldPartitions:
    """Partitions that failed, are throttled or wait for the disk, until when; times in monotonic
    ms."""

    __slots__ = ("_backoff_ms_first", "_backoff_ms_max", "_failures", "_throttled", "_until_ms")

    def __init__(self, *, backoff_ms_first: int, backoff_ms_max: int) -> None:
        self._backoff_ms_first = backoff_ms_first
        self._backoff_ms_max = backoff_ms_max
        self._until_ms: dict[TopicIdPartition, int] = {}
        self._failures: dict[TopicIdPartition, int] = {}
        self._throttled: set[TopicIdPartition] = set()

    def __len__(self) -> int:
        return len(self._until_ms)

    def __contains__(self, key: TopicIdPartition) -> bool:
        return key in self._until_ms

    def hold_failed(self, key: TopicIdPartition, now_ms: int) -> int:
        """Wait longer after each failure in a row; answers how many there were."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        backoff_ms = self._backoff_ms_first << min(failures, _DOUBLINGS_MAX)
        self._hold(key, now_ms + min(backoff_ms, self._backoff_ms_max))
        return failures + 1

    def hold_throttled(self, key: TopicIdPartition, until_ms: int) -> None:
        """Wait until the throttle lets bytes through again."""
        self._throttled.add(key)
        self._hold(key, until_ms)

    def hold_unforced(self, key: TopicIdPartition) -> None:
        """Wait until it is forgotten here, once the disk has what was fetched."""
        self._hold(key, FOR_EVER_MS)

    def _hold(self, key: TopicIdPartition, until_ms: int) -> None:
        self._until_ms[key] = max(until_ms, self._until_ms.get(key, 0))

    def succeeded(self, key: TopicIdPartition) -> None:
        """The next failure is a first one."""
        self._failures.pop(key, None)

    def forget(self, key: TopicIdPartition) -> None:
        """Drops a partition."""
        self._until_ms.pop(key, None)
        self._failures.pop(key, None)
        self._throttled.discard(key)

    def release_throttled(self) -> None:
        """Let go of everything that only the throttle holds."""
        for key in self._throttled & self._until_ms.keys():
            if self._until_ms[key] != FOR_EVER_MS:
                self._until_ms[key] = 0
        self._throttled.clear()

    def release(self, now_ms: int) -> list[TopicIdPartition]:
        """Let go of what has waited long enough."""
        if not self._until_ms:
            return []
        released = [key for key, until_ms in self._until_ms.items() if until_ms <= now_ms]
        for key in released:
            del self._until_ms[key]
        return released

    def wait_s(self, now_ms: int) -> float | None:
        """Seconds until the next release, None when nothing is held."""
        until_ms = min(self._until_ms.values(), default=FOR_EVER_MS)
        return None if until_ms == FOR_EVER_MS else max(until_ms - now_ms, 1) / 1000
