"""One Fetch request that waits for data."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.protocol.hot.fetch import FetchRequest
from broker.replication.partition.partition import Partition
from broker.replication.results import PartitionData
from broker.replication.timer_wheel import NOT_WAITING

if TYPE_CHECKING:
    from broker.replication.leader.fetch_session import FetchSession

Key = tuple[str | bytes, int]
"""(topic name or id, partition), as the request has it."""

OnFetched = Callable[["FetchAnswer"], None]


class FetchAnswer:
    """Answer of a fetch, by partition in the request's order."""

    __slots__ = ("results", "session_error", "session_id")

    def __init__(
        self,
        results: dict[Key, PartitionData],
        *,
        session_id: int = 0,
        session_error: Exception | None = None,
    ) -> None:
        self.results = results
        self.session_id = session_id
        self.session_error = session_error


class FetchOperation:
    """State between the first look and the answer.

    `pending` holds the keys to look at (again); results of the others stand. A sessionless
    request answers for every partition it names, one of a session for those that changed.
    """

    __slots__ = (
        "is_done",
        "is_urgent",
        "keys_by_partition",
        "on_done",
        "pending",
        "request",
        "results",
        "session",
        "size_bytes",
        "wake",
        "wheel_tick",
    )

    def __init__(
        self,
        request: FetchRequest,
        on_done: OnFetched,
        wake: "Callable[[FetchOperation, bool], None]",
        session: "FetchSession | None",
    ) -> None:
        self.request = request
        self.on_done = on_done
        self.wake = wake
        self.session = session
        self.results: dict[Key, PartitionData] = {}
        self.pending: dict[Key, None] = (
            dict.fromkeys(request.positions) if session is None else session.changed
        )
        self.keys_by_partition: dict[Partition, Key] = {}
        self.size_bytes = 0
        self.is_urgent = False
        self.is_done = False
        self.wheel_tick = NOT_WAITING

    def records_appended(self, partition: Partition) -> None:
        """Consumers read below the high watermark: an append alone is nothing to them."""

    def partition_changed(self, partition: Partition) -> None:
        """A parked consumer: look at this partition again."""
        self.pending[self.keys_by_partition[partition]] = None
        self.wake(self, False)

    def count_traffic(self) -> None:
        """Add what a consumer got to the traffic of its partitions."""
        for partition, key in self.keys_by_partition.items():
            partition.traffic.bytes_out += self.results[key].size_bytes

    def expire(self) -> None:
        """max_wait is over: answer with what there is."""
        self.wake(self, True)
