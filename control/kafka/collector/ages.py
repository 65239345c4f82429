"""Asks brokers when their logs ended where, for commits whose lag is older than the collector."""

from collections.abc import Sequence
from typing import Final

from control.kafka.collector.image import ClusterImage
from control.kafka.collector.log_times import LogTimes
from control.kafka.collector.member import Member
from control.kafka.collector.source import wall_ms
from control.model.ids import TopicPartition

AGES_INTERVAL_MS: Final = 1_000
COMMITS_SORTED_PER_S: Final = 20_000


class LogAges:
    """Fills in ``PartitionState.log_points``; ``broker_times_per_s`` bounds what a broker bears."""

    def __init__(self, image: ClusterImage, *, broker_times_per_s: int) -> None:
        self.times = LogTimes()
        self._image = image
        self._most = max(1, broker_times_per_s * AGES_INTERVAL_MS // 1000)

    async def read(self, members: Sequence[Member]) -> None:
        """One question to each broker that leads partitions with old lag.

        :raises KafkaPortError: one does not answer.
        """
        old = self._old_commits(members)
        for member in members:
            source = member.source
            led = {
                state.key: old[state.key]
                for state in self._image.led_by(source.broker)
                if state.key in old
            }
            moments = self.times.wanted(led, now_ms=wall_ms(), most=self._most)
            if moments:
                await source.read_times(moments, self.times)
            for key, offsets in led.items():
                if (state := self._image.partitions.get(key)) is not None:
                    state.log_points = self.times.told(key, offsets) or None

    def interval_ms(self, members: Sequence[Member]) -> int:
        """Between two readings: looking through many commits takes its time."""
        commits = sum(member.source.groups.commits for member in members)
        return max(AGES_INTERVAL_MS, commits * 1000 // COMMITS_SORTED_PER_S)

    def _old_commits(self, members: Sequence[Member]) -> dict[TopicPartition, list[int]]:
        """Committed offsets whose next record is still there, and was before the collector."""
        found: dict[TopicPartition, list[int]] = {}
        for member in members:
            for group in member.source.groups.groups.values():
                for key, offset in group.offsets.items():
                    if self.times.is_old(key, offset):
                        found.setdefault(key, []).append(offset)
        return found
