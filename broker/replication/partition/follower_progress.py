"""A leader's knowledge of one follower (Kafka's Replica and ReplicaState)."""

from dataclasses import dataclass

from broker.replication.partition.events import ReplicaFetched


@dataclass(slots=True, kw_only=True)
class FollowerProgress:
    """Changed only by PartitionState; -1 stands for "not heard of yet"."""

    last_caught_up_ms: int
    log_end_offset: int = -1
    log_start_offset: int = -1
    broker_epoch: int = -1
    last_fetch_ms: int = -1
    leader_end_at_last_fetch: int = -1

    def fetched(self, event: ReplicaFetched, leader_end_offset: int) -> None:
        """Note a fetch: a follower that now has all that the leader had at its previous fetch
        was caught up at the time of that fetch, even when the leader has grown since.
        """
        if event.fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, event.now_ms)
        elif event.fetch_offset >= self.leader_end_at_last_fetch >= 0:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = event.fetch_offset
        self.log_start_offset = event.log_start_offset
        self.broker_epoch = event.broker_epoch
        self.last_fetch_ms = event.now_ms
        self.leader_end_at_last_fetch = leader_end_offset

    def leader_appended(self, old_end_offset: int, now_ms: int) -> None:
        """Note that the leader grows: a follower at its old end was caught up until now, though a
        fetch session does not name it while it idles. From here on its time runs.
        """
        if self.log_end_offset == old_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_ms_max: int) -> bool:
        """At the leader's end, or there not longer ago than replica.lag.time.max.ms."""
        if self.log_end_offset == leader_end_offset:
            return True
        return self.last_caught_up_ms >= 0 and now_ms - self.last_caught_up_ms <= lag_time_ms_max
