"""One Fetch from every leader concerned. What fails, fails for its partitions alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection import apis
from control.kafka.errors import KafkaPortError, RefusedError, raise_if_refused
from control.kafka.records.decoding import AbortedTransaction, FetchedBytes
from control.kafka.records.record import Isolation
from control.model.ids import TopicPartition

FETCH_WAIT_MS: Final = 500
FETCH_BYTES_MAX: Final = 8 << 20
PARTITION_BYTES_MAX: Final = 1 << 20
BATCH_BYTES_MAX: Final = 256 << 20
"""A batch that claims to be larger is passed over."""
_NO_LEADER: Final = ErrorCode.leader_not_available
_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.replica_not_available,
        ErrorCode.offset_not_available,
        ErrorCode.unknown_topic_id,
        ErrorCode.kafka_storage_error,
    }
)

Answers = dict[TopicPartition, FetchedBytes | KafkaPortError]
Positions = Mapping[TopicPartition, int]


class Fetcher:
    """Fetches from the leaders of partitions, which it remembers."""

    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin
        self._leaders: dict[TopicPartition, int] = {}

    async def find_leaders(self, partitions: Iterable[TopicPartition]) -> Answers:
        """Look up leaders that are not known; answers those that cannot be found, and why.

        :raises KafkaPortError: metadata cannot be read.
        """
        missing = [key for key in partitions if key not in self._leaders]
        if not missing:
            return {}
        names = sorted({key.topic for key in missing})
        topics = await self._admin.topics(names, leaves_out_unknown=True)
        known = {each.key: each.leader for topic in topics for each in topic.partitions}
        lost: Answers = {}
        for key in missing:
            if known.get(key, -1) >= 0:
                self._leaders[key] = known[key]
            else:
                is_known = key in known
                code = _NO_LEADER if is_known else ErrorCode.unknown_topic_or_partition
                lost[key] = RefusedError(code, what=f"reading {key}")
        return lost

    def set_leaders(self, leaders: Mapping[TopicPartition, int]) -> None:
        """As the newest metadata tells; -1 where there is none."""
        self._leaders = {key: leader for key, leader in leaders.items() if leader >= 0}

    def forget_leader(self, partition: TopicPartition) -> None:
        """It is looked up again."""
        self._leaders.pop(partition, None)

    def by_leader(self, positions: Positions) -> dict[int, dict[TopicPartition, int]]:
        """The positions by the leader that is to be asked, in their order; those of unknown
        leaders are left out."""
        found: dict[int, dict[TopicPartition, int]] = {}
        for key, at in positions.items():
            if key in self._leaders:
                found.setdefault(self._leaders[key], {})[key] = at
        return found

    async def fetch(
        self,
        positions: Positions,
        *,
        max_wait_ms: int,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        partition_bytes: int = PARTITION_BYTES_MAX,
    ) -> Answers:
        """Fetches partitions in the order of the positions. The first one with data gives at least
        a batch; a partition whose leader moved is absent.

        :raises KafkaPortError: metadata cannot be read.
        """
        lost = await self.find_leaders(positions)
        answers = await asyncio.gather(
            *(
                self.fetch_from(
                    leader,
                    some,
                    max_wait_ms=max_wait_ms,
                    isolation=isolation,
                    partition_bytes=partition_bytes,
                )
                for leader, some in self.by_leader(positions).items()
            )
        )
        return lost | {key: answer for some in answers for key, answer in some.items()}

    async def fetch_from(
        self,
        leader: int,
        positions: Positions,
        *,
        max_wait_ms: int,
        isolation: Isolation,
        partition_bytes: int,
    ) -> Answers:
        """As ``fetch``, from one broker; when it does not answer, that is each one's answer."""
        fields = fetch_fields(positions, max_wait_ms, isolation, partition_bytes)
        try:
            answer = await self._admin.wire.send(apis.FETCH, fields, node_id=leader)
            whole_error = getattr(answer.message, "error_code", ErrorCode.none)
            raise_if_refused(whole_error, what=f"reading from broker {leader}")
        except KafkaPortError as error:
            for key in positions:
                self.forget_leader(key)
            return dict.fromkeys(positions, error)
        return self._answers(answer.message)

    def _answers(self, message: Any) -> Answers:
        found: Answers = {}
        for topic in message.responses:
            for partition in topic.partitions:
                key = TopicPartition(topic.topic, partition.partition_index)
                code = partition.error_code
                if code in _LEADER_MOVED:
                    self.forget_leader(key)
                elif code is not ErrorCode.none:
                    found[key] = RefusedError(code, what=f"reading {key}")
                else:
                    found[key] = fetched_bytes(partition)
        return found


def is_offset_out_of_range(error: KafkaPortError) -> bool:
    """Whether the log no longer (or not yet) holds the offset."""
    return isinstance(error, RefusedError) and error.code is ErrorCode.offset_out_of_range


def fetched_bytes(partition: Any) -> FetchedBytes:
    """Bytes and offsets that a Fetch answered of a partition."""
    aborted = partition.aborted_transactions
    stable = partition.last_stable_offset
    return FetchedBytes(
        data=bytes(partition.records or b""),
        end_offset=partition.high_watermark,
        stable_offset=partition.high_watermark if stable < 0 else stable,
        log_start_offset=getattr(partition, "log_start_offset", -1),
        aborted=None
        if aborted is None
        else tuple(
            AbortedTransaction(producer_id=it.producer_id, first_offset=it.first_offset)
            for it in aborted
        ),
    )


def fetch_fields(
    positions: Positions, max_wait_ms: int, isolation: Isolation, partition_bytes: int
) -> dict[str, Any]:
    """A Fetch of these partitions, in their order."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for key, offset in positions.items():
        topics.setdefault(key.topic, []).append(
            {
                "partition": key.partition,
                "current_leader_epoch": -1,
                "fetch_offset": offset,
                "last_fetched_epoch": -1,
                "log_start_offset": -1,
                "partition_max_bytes": partition_bytes,
            }
        )
    return {
        "replica_id": -1,
        "max_wait": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": max(FETCH_BYTES_MAX, partition_bytes),
        "isolation_level": int(isolation is Isolation.READ_COMMITTED),
        "session_id": 0,
        "session_epoch": -1,
        "topics": tuple({"topic": t, "partitions": tuple(p)} for t, p in topics.items()),
        "forgotten_topics_data": (),
        "rack_id": "",
    }
