"""One broker of the watched cluster: what it is asked, and what its answers mean."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from control.collector.groups import CLASSIC, SHARE, GroupImages
from control.collector.image import BrokerLogs, ClusterImage, PartitionState
from control.collector.load import LoadMeter
from control.collector.log_times import LogTimes
from control.collector.readable_ends import FETCH_BYTES, ReadableEnds
from control.collector.rights import Gap, Gaps
from control.kafka.acl import NO_BITS
from control.kafka.admin.groups import (
    classic_description,
    consumer_description,
    known_share_offsets,
    listed_group,
    read_commits,
    share_description,
    streams_description,
)
from control.kafka.admin.reassignments import log_dir_of
from control.kafka.connection import apis
from control.kafka.connection.wire import Answer, Api, Fields, KafkaWire, PreparedRequest
from control.kafka.errors import UnsupportedApiError
from control.kafka.ports import GroupDescription, OffsetSpec
from control.kafka.records.fetching import fetch_fields, fetched_bytes
from control.kafka.records.record import Isolation
from control.model.ids import TopicPartition
from control.model.log_dirs import file_systems

GROUPS_PER_REQUEST: Final = 200
GROUPS_JUDGED: Final = 50
"""So many groups without members are asked at a time what we may do with them."""
PARTITIONS_PER_REQUEST: Final = 20_000
READ_COMMITTED: Final = 1
"""Isolation level by which ListOffsets answers the last stable offset as the latest."""
_DESCRIBING: Final[Mapping[str, tuple[Api, str, Callable[[Any], GroupDescription]]]] = {
    CLASSIC: (apis.DESCRIBE_GROUPS, "groups", classic_description),
    "consumer": (apis.CONSUMER_GROUP_DESCRIBE, "group_ids", consumer_description),
    SHARE: (apis.SHARE_GROUP_DESCRIBE, "group_ids", share_description),
    "streams": (apis.STREAMS_GROUP_DESCRIBE, "group_ids", streams_description),
}
"""By type of group: the request, its field for the groups, how an answer is read."""
_DENIED: Final = (ErrorCode.group_authorization_failed, ErrorCode.topic_authorization_failed)


def wall_ms() -> int:
    """The clock that samples carry."""
    return time.time_ns() // 1_000_000


class BrokerSource:
    """Requests to one broker. Errors of the connection are the caller's."""

    def __init__(self, broker: int, wire: KafkaWire, image: ClusterImage, gaps: Gaps) -> None:
        self.broker = broker
        self.groups = GroupImages()
        self.meter = LoadMeter()
        self.is_stale = False
        """An answer showed that leadership is not what the image says."""
        self.commits_asked = 0
        """Groups and their offsets in the last turn: those that stand still come by turns."""
        self._wire = wire
        self._image = image
        self._gaps = gaps
        self._prepared: dict[int, tuple[int, list[PreparedRequest]]] = {}
        self._has_many = True

    async def read_groups(self) -> None:
        """List the groups coordinated here, then read the offsets and members that are due."""
        answer = await self._send(apis.LIST_GROUPS, {}, rows=0)
        now_ms = wall_ms()
        if answer.message.error_code is not ErrorCode.none:
            return
        self.groups.take_listed(map(listed_group, answer.message.groups), now_ms)
        for kind in _DESCRIBING:
            await self._describe(kind)
        due, shared = (
            self.groups.due_offsets(now_ms),
            self.groups.due_offsets(now_ms, of_share=True),
        )
        for some in _chunks(due, GROUPS_PER_REQUEST):
            await self._read_commits(some)
        for some in _chunks(shared, GROUPS_PER_REQUEST):
            await self._read_starts_of_share_groups(some)
        self.commits_asked = self._commits_of((*due, *shared))

    async def read_rights(self) -> None:
        """Reads our rights on groups without members: some of them, by turns."""
        for kind, (api, field, _) in _DESCRIBING.items():
            due = self.groups.due_rights(kind=kind, most=GROUPS_JUDGED)
            if due:
                fields = {field: tuple(due), "include_authorized_operations": True}
                answer = await self._send(api, fields, rows=len(due))
                for group in answer.message.groups:
                    self.groups.take_rights(group.group_id, _bits_of(group), wall_ms())

    async def read_ends(self) -> dict[TopicPartition, int]:
        """High watermarks of the partitions led here; the image takes them."""
        asked_ms = wall_ms()
        found = await self._list_offsets(OffsetSpec.LATEST)
        self._image.take_offsets(found, asked_ms)
        return found

    async def read_starts(self) -> None:
        """Log start offsets of the partitions led here; the image takes them."""
        self._image.take_starts(await self._list_offsets(OffsetSpec.EARLIEST))

    async def read_times(self, moments: Mapping[TopicPartition, int], times: LogTimes) -> None:
        """The first record at or after these moments, of partitions led here."""
        request = offset_fields(
            [(self._image.partitions[key], moment) for key, moment in moments.items()]
        )
        answer = await self._send(apis.LIST_OFFSETS, request, rows=len(moments))
        for key, found in _found(answer):
            if found.error_code is ErrorCode.none and key in self._image.partitions:
                end = self._image.partitions[key].high_watermark
                times.take(key, moments[key], (found.offset, found.timestamp), end)

    async def read_tails(self, offsets: Mapping[TopicPartition, int], ends: ReadableEnds) -> None:
        """Reads what a consumer gets at these offsets; without the right to read, up to where
        transactions have ended."""
        fields = fetch_fields(offsets, 0, Isolation.READ_COMMITTED, FETCH_BYTES)
        answer = await self._send(apis.FETCH, fields, rows=len(offsets))
        denied: list[tuple[PartitionState, int]] = []
        for topic in answer.message.responses:
            for partition in topic.partitions:
                key = TopicPartition(topic.topic, partition.partition_index)
                if partition.error_code is ErrorCode.none:
                    ends.take(key, fetched_bytes(partition), wall_ms())
                elif partition.error_code in _DENIED and key in self._image.partitions:
                    denied.append((self._image.partitions[key], int(OffsetSpec.LATEST)))
        if denied:
            request = {**offset_fields(denied), "isolation_level": READ_COMMITTED}
            answer = await self._send(apis.LIST_OFFSETS, request, rows=len(denied))
            for key, found in _found(answer):
                if found.error_code is ErrorCode.none:
                    ends.take_stable(key, found.offset, wall_ms())

    async def read_logs(self) -> BrokerLogs | None:
        """Sizes of all replicas here, and the disk; None where we may not ask."""
        held = len(self._image.replicas_of(self.broker))
        answer = await self._send(apis.DESCRIBE_LOG_DIRS, {"topics": None}, rows=held)
        whole_error = getattr(answer.message, "error_code", ErrorCode.none)
        results = answer.message.results
        # Without the right, versions before 3 answer with nothing, later ones with an error.
        if whole_error is ErrorCode.cluster_authorization_failed or not results:
            self._gaps.open(Gap.LOG_DIRS)
            return None
        self._gaps.close(Gap.LOG_DIRS)
        logs = _broker_logs(self.broker, results)
        self._image.logs[self.broker] = logs
        return logs

    async def _send(self, api: Api, fields: Fields, *, rows: int) -> Answer:
        answer = await self._wire.send(api, fields, node_id=self.broker)
        self.meter.count(
            rows=rows, sent_bytes=answer.sent_bytes, received_bytes=answer.received_bytes
        )
        return answer

    async def _describe(self, kind: str) -> None:
        api, field, read = _DESCRIBING[kind]
        due = self.groups.due_descriptions(wall_ms(), kind=kind)
        for some in _chunks(due, GROUPS_PER_REQUEST):
            fields = {field: tuple(some), "include_authorized_operations": True}
            answer = await self._send(api, fields, rows=len(some))
            now_ms = wall_ms()
            for group in answer.message.groups:
                self.groups.take_rights(group.group_id, _bits_of(group), now_ms)
                if group.error_code is ErrorCode.none:
                    self.groups.take_description(read(group), now_ms)
                elif group.error_code in _DENIED:
                    self.groups.take_denied(group.group_id, now_ms)

    async def _read_commits(self, group_ids: Sequence[str]) -> None:
        if self._has_many:
            wanted = tuple({"group_id": group_id, "topics": None} for group_id in group_ids)
            try:
                answer = await self._send(
                    apis.OFFSET_FETCH_MANY, {"groups": wanted}, rows=self._commits_of(group_ids)
                )
            except UnsupportedApiError:
                self._has_many = False
            else:
                for group in answer.message.groups:
                    self._take_commits(group.group_id, group)
                return
        for group_id in group_ids:
            fields = {"group_id": group_id, "topics": None}
            answer = await self._send(apis.OFFSET_FETCH, fields, rows=self._commits_of([group_id]))
            self._take_commits(group_id, answer.message)

    async def _read_starts_of_share_groups(self, group_ids: Sequence[str]) -> None:
        """Start offsets, in the place of commits, and the lags that the broker tells."""
        wanted = tuple({"group_id": group_id, "topics": None} for group_id in group_ids)
        answer = await self._send(
            apis.DESCRIBE_SHARE_GROUP_OFFSETS,
            {"groups": wanted},
            rows=self._commits_of(group_ids),
        )
        now_ms = wall_ms()
        for group in answer.message.groups:
            if group.error_code in _DENIED:
                self.groups.take_denied(group.group_id, now_ms)
            elif group.error_code is ErrorCode.none:
                told = known_share_offsets(group)
                starts = {key: it.start for key, it in told.items() if it.start is not None}
                lags = {key: it.lag for key, it in told.items() if it.lag is not None}
                self.groups.take_offsets(group.group_id, starts, now_ms, lags)

    def _take_commits(self, group_id: str, answer: Any) -> None:
        now_ms = wall_ms()
        code = getattr(answer, "error_code", ErrorCode.none)
        if code in _DENIED:
            self.groups.take_denied(group_id, now_ms)
        elif code is ErrorCode.none:
            offsets, unknown = read_commits(answer.topics)
            known = self.groups.groups.get(group_id)
            before = {} if known is None else known.offsets
            offsets |= {key: before[key] for key in unknown if key in before}
            self.groups.take_offsets(group_id, offsets, now_ms)

    def _commits_of(self, group_ids: Iterable[str]) -> int:
        known = (self.groups.groups.get(group_id) for group_id in group_ids)
        return sum(1 + len(group.held) for group in known if group is not None)

    async def _list_offsets(self, at: OffsetSpec) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        led = self._image.led_by(self.broker)
        for request in self._requests(at, led):
            answer = await self._send(apis.LIST_OFFSETS, request, rows=len(led))
            for key, partition in _found(answer):
                if partition.error_code is ErrorCode.none:
                    found[key] = partition.offset
                else:
                    self.is_stale = True
        return found

    def _requests(self, at: OffsetSpec, led: Sequence[PartitionState]) -> list[PreparedRequest]:
        version, requests = self._prepared.get(at, (-1, []))
        if version != self._image.version:
            # One that leads nothing is asked all the same: its round says that it answers.
            requests = [
                PreparedRequest(offset_fields([(state, int(at)) for state in some]))
                for some in (list(_chunks(led, PARTITIONS_PER_REQUEST)) or [()])
            ]
            self._prepared[at] = (self._image.version, requests)
        return requests


def _bits_of(group: Any) -> int:
    """Our rights on a described group; NO_BITS where the broker does not tell."""
    if group.error_code in _DENIED:
        return 0
    bits: int = getattr(group, "authorized_operations", NO_BITS)
    return bits if group.error_code is ErrorCode.none else NO_BITS


def _found(answer: Answer) -> Iterator[tuple[TopicPartition, Any]]:
    for topic in answer.message.topics:
        name = topic.name
        for partition in topic.partitions:
            yield TopicPartition(name, partition.partition_index), partition


def offset_fields(wanted: Iterable[tuple[PartitionState, int]]) -> Mapping[str, Any]:
    """ListOffsets for partitions, each with a moment or an ``OffsetSpec``."""
    topics: dict[str, list[dict[str, int]]] = {}
    for state, moment in wanted:
        topics.setdefault(state.key.topic, []).append(
            {
                "partition_index": state.key.partition,
                # The leader tells when ours is not the newest word on who leads.
                "current_leader_epoch": state.leader_epoch,
                "timestamp": moment,
            }
        )
    return {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": tuple({"name": t, "partitions": tuple(p)} for t, p in topics.items()),
    }


def _broker_logs(broker: int, results: Iterable[Any]) -> BrokerLogs:
    log_dirs = [log_dir_of(broker, result) for result in results]
    directories = tuple(log_dir.sample for log_dir in log_dirs)
    disks = file_systems(directories)
    totals, usable = [it.total_bytes for it in disks], [it.usable_bytes for it in disks]
    is_told = bool(disks) and None not in totals and None not in usable
    return BrokerLogs(
        sizes={
            TopicPartition(replica.topic, replica.partition): replica.size_bytes
            for log_dir in log_dirs
            for replica in log_dir.replicas
            if not replica.is_future
        },
        total_bytes=sum(it or 0 for it in totals) if is_told else None,
        usable_bytes=sum(it or 0 for it in usable) if is_told else None,
        directories=directories,
        read_ms=wall_ms(),
    )


def _chunks(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))
