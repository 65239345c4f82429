import pytest

from broker.protocol import codec
from broker.raft.messages import (
    BeginEpochRequest,
    BeginEpochResponse,
    EndEpochRequest,
    EndEpochResponse,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
    RpcError,
    VoteRequest,
    VoteResponse,
)
from broker.raft.snapshot_id import SnapshotId
from broker.raft.wire import (
    API_KEYS,
    VERSIONS,
    WireError,
    from_request,
    from_response,
    to_request,
    to_response,
)

VOTE = VoteRequest(candidate_id=101, epoch=3, last_epoch=2, last_offset=40, pre_vote=True)
BEGIN = BeginEpochRequest(leader_id=102, epoch=4)
END = EndEpochRequest(leader_id=102, epoch=4, preferred_successors=(103, 101))
FETCH = FetchRequest(
    replica_id=103, epoch=4, fetch_offset=9, last_fetched_epoch=3, high_watermark=8, wait_ms_max=500
)
SNAPSHOT = SnapshotId(end_offset=700, epoch=3)
FETCH_SNAPSHOT = FetchSnapshotRequest(
    replica_id=103, epoch=4, snapshot=SNAPSHOT, position=4096, bytes_max=1000
)


@pytest.mark.parametrize("request_", [VOTE, BEGIN, END, FETCH, FETCH_SNAPSHOT])
def test_requests_survive_the_wire(request_: Request) -> None:
    frame = codec.encode_request(
        to_request(request_, cluster_id="c"), correlation_id=1, client_id="101"
    )
    decoded = codec.decode_request(frame[4:])
    assert decoded.api_key == API_KEYS[type(request_)]
    assert from_request(decoded.api_key, decoded.message) == request_


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (VOTE, VoteResponse(epoch=3, leader_id=None, vote_granted=True)),
        (
            VOTE,
            VoteResponse(
                epoch=9, leader_id=103, vote_granted=False, error=RpcError.FENCED_LEADER_EPOCH
            ),
        ),
        (BEGIN, BeginEpochResponse(epoch=4, leader_id=102)),
        (END, EndEpochResponse(epoch=4, leader_id=None)),
        (FETCH, FetchResponse(epoch=4, leader_id=102, high_watermark=9, records=b"batches")),
        (
            FETCH,
            FetchResponse(
                epoch=4, leader_id=102, high_watermark=9, diverging=EpochEnd(epoch=2, end_offset=5)
            ),
        ),
        (FETCH, FetchResponse(epoch=4, leader_id=102, high_watermark=9, snapshot=SNAPSHOT)),
        (
            FETCH_SNAPSHOT,
            FetchSnapshotResponse(
                epoch=4,
                leader_id=102,
                snapshot=SNAPSHOT,
                position=4096,
                size_bytes=5000,
                data=b"half a batch",
            ),
        ),
        (
            FETCH_SNAPSHOT,
            FetchSnapshotResponse(
                epoch=4, leader_id=102, snapshot=SNAPSHOT, error=RpcError.SNAPSHOT_NOT_FOUND
            ),
        ),
        (
            FETCH,
            FetchResponse(epoch=5, leader_id=None, error=RpcError.NOT_LEADER_OR_FOLLOWER),
        ),
    ],
)
def test_responses_survive_the_wire(request_: Request, response: Response) -> None:
    api_key = API_KEYS[type(request_)]
    frame = codec.encode_response(api_key, VERSIONS[api_key], 1, to_response(response))
    _, message = codec.decode_response(api_key, VERSIONS[api_key], frame[4:])
    assert from_response(request_, message) == response


def test_fetch_of_another_topic_is_refused() -> None:
    message = codec.build_request(1, 18, topics=[{"topic_id": None, "partitions": []}])
    with pytest.raises(WireError, match="topic id"):
        from_request(1, message)


def test_answer_with_a_foreign_error_is_refused() -> None:
    message = codec.build_response(52, 2, error_code=35, topics=[])
    with pytest.raises(WireError, match="refused"):
        from_response(VOTE, message)
