"""Logs behind a scripted cluster: its brokers answer ListOffsets and Fetch from them."""

from dataclasses import dataclass, field
from typing import Any, Final

from broker.protocol.records import NewRecord, build_batch
from control.kafka.connection import apis
from control.model.ids import TopicPartition
from tests.unit.control.kafka.scripted_cluster import Asked, Partitions, ScriptedCluster

TOPIC: Final = "orders"


@dataclass
class Log:
    """A partition's log: bytes by the offset that they begin at."""

    batches: dict[int, bytes] = field(default_factory=dict)
    first: int = 0
    end: int = 0
    stable: int | None = None
    """Last stable offset; None: the end."""
    error: int = 0
    """Code that a Fetch of it gets."""

    def append(self, *values: bytes, timestamp: int = 0) -> None:
        """One batch of these."""
        records = [NewRecord(value=value, timestamp=timestamp) for value in values]
        self.batches[self.end] = build_batch(records, base_offset=self.end)
        self.end += len(values)

    def at(self, offset: int) -> bytes:
        """All batches from the one on that holds the offset."""
        starts = sorted(self.batches)
        after = next((n for n, start in enumerate(starts) if start > offset), len(starts))
        return b"".join(self.batches[start] for start in starts[max(0, after - 1) :])


class ScriptedLogs(ScriptedCluster):
    """A cluster with one topic; ``logs`` by number of the partition."""

    def __init__(self, *leaders: int, ids: tuple[int, ...] = (1, 2)) -> None:
        super().__init__(ids=ids)
        self.logs = {number: Log() for number in range(len(leaders))}
        self.lead(*leaders)
        self.on(apis.LIST_OFFSETS, self.list_offsets)
        self.on(apis.FETCH, self.fetched)

    @property
    def keys(self) -> list[TopicPartition]:
        """All partitions."""
        return [TopicPartition(TOPIC, number) for number in self.logs]

    def lead(self, *leaders: int) -> None:
        """Leaders of the partitions from now on; 0: none."""
        partitions: Partitions = {
            number: (leader,) if leader else () for number, leader in enumerate(leaders)
        }
        self.topics[TOPIC] = partitions

    def leads(self, broker: int, partition: int) -> bool:
        """Whether it is the leader."""
        return self.topics.get(TOPIC, {}).get(partition, ()) == (broker,)

    def list_offsets(self, asked: Asked) -> dict[str, Any]:
        """Earliest, latest, or the first offset for any time."""

        def told(it: Any) -> dict[str, Any]:
            log = self.logs[it.partition_index]
            if not self.leads(asked.broker, it.partition_index):
                return {"error_code": 6, "offset": -1}
            is_committed = int(asked.message.isolation_level) == 1
            stable = log.end if log.stable is None or not is_committed else log.stable
            return {"error_code": 0, "offset": {-1: stable, -2: log.first}.get(it.timestamp, 0)}

        partitions = tuple(
            {"partition_index": it.partition_index, "timestamp": -1, **told(it)}
            for topic in asked.message.topics
            for it in topic.partitions
        )
        return {"topics": ({"name": TOPIC, "partitions": partitions},)}

    def fetched(self, asked: Asked) -> dict[str, Any]:
        """What there is from the offsets on."""
        partitions = tuple(
            self._partition(asked.broker, it) for topic in asked.message.topics
            for it in topic.partitions
        )  # fmt: skip
        return {"error_code": 0, "responses": ({"topic": TOPIC, "partitions": partitions},)}

    def _partition(self, broker: int, it: Any) -> dict[str, Any]:
        log = self.logs[it.partition]
        code = 0 if self.leads(broker, it.partition) else 6
        if not code and not log.first <= it.fetch_offset <= log.end:
            code = 1
        code = code or log.error
        data = b"" if code or it.fetch_offset == log.end else log.at(it.fetch_offset)
        return {
            "partition_index": it.partition,
            "error_code": code,
            "high_watermark": -1 if code else log.end,
            "last_stable_offset": log.end if log.stable is None else log.stable,
            "log_start_offset": log.first,
            "aborted_transactions": None,
            "records": data[: it.partition_max_bytes],
        }
