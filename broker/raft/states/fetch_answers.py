"""Answers of a leader to a follower's fetch."""

from broker.raft.messages import (
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RpcError,
)
from broker.raft.snapshot_id import SnapshotId
from broker.raft.states.context import RaftContext


def has_news(core: RaftContext, request: FetchRequest) -> bool:
    """Whether the follower lacks records, or knowledge of what is committed."""
    return (
        request.fetch_offset < core.log.end_offset or request.high_watermark < core.high_watermark
    )


def build_answer(core: RaftContext, request: FetchRequest) -> FetchResponse:
    """Records from the fetch offset on, if there are any."""
    records = b""
    if request.fetch_offset < core.log.end_offset:
        records = core.log.read(request.fetch_offset, bytes_max=core.config.fetch_bytes_max)
    return _response(core, records=records)


def build_divergence(core: RaftContext, diverging: EpochEnd) -> FetchResponse:
    """Where the follower's log parts from the leader's."""
    return _response(core, diverging=diverging)


def find_divergence(core: RaftContext, request: FetchRequest) -> EpochEnd | None:
    """Where the follower's log parts from ours, or None when it is a prefix of ours.

    It is one when our log, too, has the follower's last epoch and reaches at least as far in it
    (KafkaRaftClient.validateFetchOffsetAndEpoch).
    """
    if request.fetch_offset == 0:
        return None
    end = core.log.end_offset_for_epoch(request.last_fetched_epoch)
    if end.epoch != request.last_fetched_epoch or end.end_offset < request.fetch_offset:
        return end
    return None


def find_snapshot(core: RaftContext, request: FetchRequest) -> SnapshotId | None:
    """The snapshot that a follower has to fetch, or None when our log reaches back far enough.

    Before its start the log is known by the snapshot alone: what a follower has there is a
    prefix of ours only if its last epoch is the snapshot's, or a later one
    (KafkaRaftClient.validateOffsetAndEpoch).

    Example: our log starts at 100, behind records of epoch 3. A follower that ends at 120 in
    epoch 2 must not be asked to cut back to 100: what it has below that never was committed.
    """
    start = core.log.start_snapshot_id
    if start is None:
        return None
    offset, epoch = request.fetch_offset, request.last_fetched_epoch
    is_known = offset > start.end_offset or (offset == start.end_offset and epoch == start.epoch)
    if is_known and epoch >= start.epoch:
        return None
    return core.log.latest_snapshot_id


def build_snapshot_hint(core: RaftContext, snapshot: SnapshotId) -> FetchResponse:
    """Which snapshot to fetch before anything else."""
    return _response(core, snapshot=snapshot)


def build_snapshot_answer(
    core: RaftContext, request: FetchSnapshotRequest
) -> FetchSnapshotResponse:
    """Bytes of a snapshot, or why there are none."""
    bytes_max = max(1, min(request.bytes_max, core.config.fetch_bytes_max))
    part = core.log.read_snapshot(request.snapshot, request.position, bytes_max=bytes_max)
    error = RpcError.NONE
    if part is None:
        error = RpcError.SNAPSHOT_NOT_FOUND
    elif not 0 <= request.position < part.size_bytes:
        error = RpcError.POSITION_OUT_OF_RANGE
    return FetchSnapshotResponse(
        epoch=core.epoch,
        leader_id=core.config.node_id,
        snapshot=request.snapshot,
        position=request.position,
        size_bytes=0 if part is None else part.size_bytes,
        data=b"" if part is None else part.data,
        error=error,
    )


def _response(
    core: RaftContext,
    *,
    records: bytes = b"",
    diverging: EpochEnd | None = None,
    snapshot: SnapshotId | None = None,
) -> FetchResponse:
    return FetchResponse(
        epoch=core.epoch,
        leader_id=core.config.node_id,
        high_watermark=core.high_watermark,
        log_start_offset=core.log.start_offset,
        diverging=diverging,
        snapshot=snapshot,
        records=records,
    )
