"""Offsets of partitions: ListOffsets and DeleteRecords, one request per leader."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kio.schema.errors import ErrorCode

from control.kafka.connection import apis
from control.kafka.connection.retry import retry_passing
from control.kafka.connection.together import together
from control.kafka.connection.wire import Api, KafkaWire
from control.kafka.errors import (
    IncompleteAnswerError,
    NoTimesError,
    RefusedError,
    raise_if_refused,
)
from control.kafka.ports import OffsetAt, OffsetSpec, TopicMetadata
from control.model.ids import TopicPartition


class _Metadata(Protocol):
    async def topics(self, names: Iterable[str] | None = None) -> tuple[TopicMetadata, ...]:
        """Topics by name."""


class KafkaOffsets:
    """Reads and trims offsets, grouped by leader."""

    def __init__(self, wire: KafkaWire, metadata: _Metadata) -> None:
        self._wire = wire
        self._metadata = metadata

    async def list_offsets(
        self,
        partitions: Iterable[TopicPartition],
        at: int = OffsetSpec.LATEST,
        *,
        is_committed: bool = False,
    ) -> dict[TopicPartition, OffsetAt]:
        """The offset of each partition at a time in ms or an OffsetSpec.

        LATEST is the high watermark, or with `is_committed` the last stable offset. For a time
        later than every record the offset is -1.

        :raises NoTimesError: a time is asked for, and the records of a partition have none.
        :raises RefusedError: a partition is unknown or stays without a leader.
        """
        wanted = sorted(set(partitions))
        extra = {"current_leader_epoch": -1, "timestamp": int(at)}
        base = {"replica_id": -1, "isolation_level": int(is_committed)}
        found: dict[TopicPartition, OffsetAt] = {}

        def take(key: TopicPartition, result: Any) -> None:
            stamp = getattr(result, "timestamp", None)
            found[key] = OffsetAt(offset=result.offset, timestamp_ms=_milliseconds(stamp))

        try:
            await self._by_leader(apis.LIST_OFFSETS, wanted, (base, extra), take)
        except RefusedError as error:
            if error.code is ErrorCode.unsupported_for_message_format:
                raise NoTimesError(error.what) from error
            raise
        return found

    async def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Move the log start offset up to the given offset; answers the low watermarks.

        :raises RefusedError: an offset is outside the log.
        """
        low: dict[TopicPartition, int] = {}

        def take(key: TopicPartition, result: Any) -> None:
            low[key] = result.low_watermark

        for key, offset in sorted(before.items()):
            base = {"timeout": self._wire.settings.request_timeout_ms}
            await self._by_leader(apis.DELETE_RECORDS, [key], (base, {"offset": offset}), take)
        return low

    async def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Current leaders.

        :raises RefusedError: a topic or partition is unknown, or has no leader.
        """
        wanted = set(partitions)
        topics = await self._metadata.topics(sorted({key.topic for key in wanted}))
        known = {p.key: p.leader for topic in topics for p in topic.partitions}
        for key in sorted(wanted):
            if key not in known:
                raise RefusedError(ErrorCode.unknown_topic_or_partition, what=f"partition {key}")
            if known[key] < 0:
                raise RefusedError(ErrorCode.leader_not_available, what=f"partition {key}")
        return {key: known[key] for key in wanted}

    async def _by_leader(
        self,
        api: Api,
        partitions: list[TopicPartition],
        fields: tuple[Mapping[str, Any], Mapping[str, Any]],
        take: Any,
    ) -> None:
        base, extra = fields

        async def ask_leader(leader: int, keys: list[TopicPartition]) -> None:
            request = {**base, "topics": _topics(keys, extra)}
            answer = await self._wire.send(api, request, node_id=leader)
            told = {
                TopicPartition(topic.name, partition.partition_index): partition
                for topic in answer.message.topics
                for partition in topic.partitions
            }
            for key in keys:
                if key not in told:
                    raise IncompleteAnswerError(f"partition {key}")
                raise_if_refused(told[key].error_code, what=f"partition {key}")
                take(key, told[key])

        async def ask_all() -> None:
            leaders = await self.leaders(partitions)
            by_leader: dict[int, list[TopicPartition]] = {}
            for key in partitions:
                by_leader.setdefault(leaders[key], []).append(key)
            async with together() as group:
                for leader, keys in sorted(by_leader.items()):
                    group.create_task(ask_leader(leader, keys))

        await retry_passing(ask_all)


def _topics(keys: list[TopicPartition], extra: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for key in keys:
        topics.setdefault(key.topic, []).append({"partition_index": key.partition, **extra})
    return tuple({"name": name, "partitions": tuple(ids)} for name, ids in topics.items())


def _milliseconds(stamp: Any) -> int:
    if stamp is None:
        return -1
    return int(stamp) if isinstance(stamp, int) else round(stamp.timestamp() * 1000)
