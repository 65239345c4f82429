"""The follower's half of a fetch session, and partitions left out of it for a while."""

from collections.abc import Set as AbstractSet
from typing import Final

from broker.protocol.hot.fetch import INITIAL_EPOCH, NO_SESSION
from broker.protocol.hot.replica_fetch import TopicIdPartition
from broker.replication.leader.fetch_session import SESSION_EPOCH_MAX

_DOUBLINGS_MAX: Final = 10


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
        """Take the id that the leader gave a new session, if it keeps one."""
        if self._is_opening and session_id != NO_SESSION:
            self._is_opening = False
            self._id = session_id
            self._epoch = 1


class HeldPartitions:
    """Partitions that failed or are throttled, until when (monotonic ms), or wait for the disk.

    One that is held for several reasons is held until the last of them ends.
    """

    __slots__ = (
        "_backoff_ms_first",
        "_backoff_ms_max",
        "_failed",
        "_failures",
        "_throttled",
        "_unforced",
    )

    def __init__(self, *, backoff_ms_first: int, backoff_ms_max: int) -> None:
        self._backoff_ms_first = backoff_ms_first
        self._backoff_ms_max = backoff_ms_max
        self._failures: dict[TopicIdPartition, int] = {}
        self._failed: dict[TopicIdPartition, int] = {}
        self._throttled: dict[TopicIdPartition, int] = {}
        self._unforced: set[TopicIdPartition] = set()

    def __len__(self) -> int:
        return len(self._failed.keys() | self._throttled.keys() | self._unforced)

    def __contains__(self, key: TopicIdPartition) -> bool:
        return key in self._failed or key in self._throttled or key in self._unforced

    def hold_failed(self, key: TopicIdPartition, now_ms: int) -> int:
        """Wait longer after each failure in a row; answers how many there were."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        backoff_ms = self._backoff_ms_first << min(failures, _DOUBLINGS_MAX)
        self._failed[key] = now_ms + min(backoff_ms, self._backoff_ms_max)
        return failures + 1

    def hold_throttled(self, key: TopicIdPartition, until_ms: int) -> None:
        """Wait until the throttle lets bytes through again."""
        self._throttled[key] = until_ms

    def hold_unforced(self, key: TopicIdPartition) -> None:
        """Wait until it is `forced`: the disk has what was fetched."""
        self._unforced.add(key)

    def forced(self, key: TopicIdPartition) -> None:
        """It does not wait for the disk any more."""
        self._unforced.discard(key)

    def succeeded(self, key: TopicIdPartition) -> None:
        """The next failure is a first one."""
        self._failures.pop(key, None)

    def forget(self, key: TopicIdPartition) -> None:
        """Drops a partition."""
        self._failures.pop(key, None)
        self._failed.pop(key, None)
        self._throttled.pop(key, None)
        self._unforced.discard(key)

    def release_throttled(self) -> None:
        """The throttle holds nothing any more; `release` tells what nothing else holds."""
        self._throttled = dict.fromkeys(self._throttled, 0)

    def release(self, now_ms: int) -> list[TopicIdPartition]:
        """Let go of what has waited long enough, for every reason."""
        released = dict[TopicIdPartition, None]()
        for held in (self._failed, self._throttled):
            for key in [key for key, until_ms in held.items() if until_ms <= now_ms]:
                del held[key]
                released[key] = None
        return [key for key in released if key not in self]

    def wait_s(self, now_ms: int) -> float | None:
        """Seconds until time releases something, None when it does not."""
        until_ms = min((*self._failed.values(), *self._throttled.values()), default=None)
        return None if until_ms is None else max(until_ms - now_ms, 1) / 1000
