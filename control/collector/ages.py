"""Asks brokers about the records that groups lag behind: of old ones when they were written, of
those at which a group stands whether it gets any."""

from collections.abc import Callable, Sequence
from typing import Final

from control.collector.image import ClusterImage
from control.collector.log_times import LogTimes
from control.collector.member import Member
from control.collector.readable_ends import ReadableEnds
from control.collector.source import wall_ms
from control.model.ids import TopicPartition

AGES_INTERVAL_MS: Final = 1_000
COMMITS_SORTED_PER_S: Final = 20_000


class LogAges:
    """Fills in ``PartitionState.log_points`` and ``readable_offset``; ``broker_times_per_s`` bounds
    what a broker bears."""

    def __init__(self, image: ClusterImage, *, broker_times_per_s: int) -> None:
        self.times = LogTimes()
        self.ends = ReadableEnds()
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

    async def read_tails(self, members: Sequence[Member]) -> None:
        """One Fetch to each broker that leads partitions in which a group stands.

        :raises KafkaPortError: one does not answer.
        """
        self.ends.see(self._lagging_commits(members), wall_ms())
        for member in members:
            led = self._image.led_by(member.source.broker)
            wanted = self.ends.wanted(led, wall_ms())
            if wanted:
                await member.source.read_tails(wanted, self.ends)
            for state in led:
                state.readable_offset = self.ends.told(state.key, wall_ms())

    def interval_ms(self, members: Sequence[Member]) -> int:
        """Between two readings: looking through many commits takes its time."""
        commits = sum(member.source.groups.commits for member in members)
        return max(AGES_INTERVAL_MS, commits * 1000 // COMMITS_SORTED_PER_S)

    def _old_commits(self, members: Sequence[Member]) -> dict[TopicPartition, list[int]]:
        """Committed offsets whose next record is still there, and was before the collector."""
        return _commits(members, self.times.is_old)

    def _lagging_commits(self, members: Sequence[Member]) -> dict[TopicPartition, list[int]]:
        """Committed offsets below the end of the log."""

        def lags(key: TopicPartition, offset: int) -> bool:
            state = self._image.partitions.get(key)
            return state is not None and offset < (state.high_watermark or 0)

        return _commits(members, lags)


def _commits(
    members: Sequence[Member], is_wanted: Callable[[TopicPartition, int], bool]
) -> dict[TopicPartition, list[int]]:
    found: dict[TopicPartition, list[int]] = {}
    for member in members:
        for group in member.source.groups.groups.values():
            for key, offset in group.offsets.items():
                if is_wanted(key, offset):
                    found.setdefault(key, []).append(offset)
    return found
