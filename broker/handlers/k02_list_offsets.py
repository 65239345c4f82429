"""ListOffsets, versions 1-11.

Behaviour: -1 is the high watermark for consumers (read_committed: the last stable offset; the end
for replicas), -2 the log's start, -3 the newest timestamp (from v7), other timestamps the first
record not older; consumers are told of neither above what they may read. Below v4 leader epochs are
not checked. A leader that does not yet know its high watermark answers OFFSET_NOT_AVAILABLE (before
v5 LEADER_NOT_AVAILABLE), so that "latest" never goes back. A partition named twice is
INVALID_REQUEST, told once.
Notes: without tiered storage -4 (earliest local) equals -2, -5 and -6 are unknown (-1). What lies
below means nothing yet: UNSUPPORTED_VERSION.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.partition_errors import located_error, partition_error_code
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.log.errors import LogError
from broker.metadata.acls import Operation, ResourceKind
from broker.replication.errors import UnknownPartitionError
from broker.replication.leader.fetch_reader import CONSUMER, check_leader
from broker.replication.partition.partition import FetchIsolation, Partition

API_KEY = 2
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
TIERED = (-5, -6)
_FIRST_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}
UNKNOWN = (-1, -1, -1)


@handles(api_key=API_KEY, versions=(1, 11), listener=Listener.CLIENT)
async def handle_list_offsets(request: Request, node: NodeServices) -> LargeAnswer:
    """Offsets by time, for every partition named; others go on in between."""
    message = request.message
    isolation = FetchIsolation.LOG_END
    if message.replica_id == CONSUMER:
        isolation = FetchIsolation.of_consumer(getattr(message, "isolation_level", 0))
    topics: dict[str, dict[int, list[Any]]] = {}
    for topic in message.topics:
        partitions = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            partitions.setdefault(asked.partition_index, []).append(asked)
    refused = await node.authorization.refused(
        request.context, Operation.DESCRIBE, ResourceKind.TOPIC, topics
    )
    slices, answers = Slices(), dict[str, list[dict[str, Any]]]()
    for name, partitions in topics.items():
        rows = answers[name] = []
        for named in partitions.values():
            if name in refused:
                rows.append(_row(named[0], ErrorCode.topic_authorization_failed, UNKNOWN))
            else:
                rows.append(_answer(node, name, named, request.api_version, isolation))
            await slices.pause()
    return LargeAnswer(
        sum(map(len, answers.values())),
        topics=[{"name": name, "partitions": rows} for name, rows in answers.items()],
    )


def _answer(
    node: NodeServices, topic: str, named: list[Any], version: int, isolation: FetchIsolation
) -> dict[str, Any]:
    """The answer for one partition, however often it is named."""
    asked = named[0]
    error, found = ErrorCode.invalid_request, UNKNOWN
    if len(named) == 1:
        error, found = _find(node, topic, asked, version, isolation)
    return _row(asked, error, found)


def _row(asked: Any, error: ErrorCode, found: tuple[int, int, int]) -> dict[str, Any]:
    timestamp, offset, leader_epoch = found
    return {
        "partition_index": asked.partition_index,
        "error_code": error,
        "timestamp": timestamp,
        "offset": offset,
        "leader_epoch": leader_epoch,
    }


def _find(
    node: NodeServices, topic: str, asked: Any, version: int, isolation: FetchIsolation
) -> tuple[ErrorCode, tuple[int, int, int]]:
    partition = node.replicas.partition(topic, asked.partition_index)
    error: Exception | None = UnknownPartitionError()
    if partition is not None:
        error = check_leader(partition, getattr(asked, "current_leader_epoch", -1))
    if partition is None or error is not None:
        image = node.metadata.image
        error = located_error(image, topic, asked.partition_index, error)
        return partition_error_code(error), UNKNOWN
    if version < _FIRST_VERSION.get(asked.timestamp, 0) or asked.timestamp < min(TIERED):
        return ErrorCode.unsupported_version, UNKNOWN
    state = partition.state
    is_behind = state.high_watermark < state.epoch_start_offset
    is_consumer = isolation is not FetchIsolation.LOG_END
    if is_consumer and is_behind and asked.timestamp not in (EARLIEST, EARLIEST_LOCAL):
        early = ErrorCode.offset_not_available if version >= 5 else ErrorCode.leader_not_available
        return early, UNKNOWN
    try:
        return ErrorCode.none, _look_up(partition, asked.timestamp, isolation)
    except LogError as storage:
        return partition_error_code(storage), UNKNOWN


def _look_up(
    partition: Partition, timestamp: int, isolation: FetchIsolation
) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch), each -1 where there is none."""
    log = partition.log
    end = partition.visible_end(isolation)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epochs.epoch_at(log.log_start_offset)
        return -1, log.log_start_offset, -1 if epoch is None else epoch
    if timestamp == LATEST:
        return -1, end, partition.leader_epoch
    if timestamp in TIERED:
        return UNKNOWN
    if timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp()
    else:
        found = log.offset_for_timestamp(timestamp, max_offset=end)
    if found is None or found.offset >= end:
        return UNKNOWN
    return found.timestamp_ms, found.offset, found.leader_epoch
