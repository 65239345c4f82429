"""Every request and response survives the codec, with and without tags from the future."""

import io
import struct
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from broker.protocol import codec
from tests.support.cases import case
from tests.unit.broker.protocol.messages import (
    every_version,
    sample,
    write_with_unknown_tags,
)

ALL = sorted(every_version())


def test_request_round_trip() -> None:
    for api_key, version in ALL:
        with case(api_key, version):
            message = sample(codec.request_type(api_key, version))
            frame = codec.encode_request(message, correlation_id=42, client_id="tester")
            assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
            decoded = codec.decode_request(memoryview(frame)[4:])
            assert decoded == codec.DecodedRequest(
                api_key=api_key,
                api_version=version,
                correlation_id=42,
                client_id="tester",
                message=message,
            )


def test_response_round_trip() -> None:
    for api_key, version in ALL:
        with case(api_key, version):
            message = sample(codec.response_type(api_key, version))
            frame = codec.encode_response(api_key, version, 7, message)
            assert codec.decode_response(api_key, version, frame[4:]) == (7, message)


def test_unknown_tags_are_skipped_everywhere() -> None:
    flexible = [key for key in ALL if codec.request_type(*key).__flexible__]
    assert flexible
    for api_key, version in flexible:
        with case(api_key, version), io.BytesIO() as body:
            message = sample(codec.request_type(api_key, version))
            frame = struct.pack(">hhih", api_key, version, 9, -1) + b"\x01\xc8\x01\x02zz"
            write_with_unknown_tags(body, message)
            decoded = codec.decode_request(frame + body.getvalue())
            assert decoded.message == message
            assert decoded.client_id is None


def test_api_versions_response_has_header_v0() -> None:
    for version in range(5):
        response = codec.build_response(18, version, error_code=0)
        frame = codec.encode_response(18, version, 1, response)
        assert frame[8:10] == b"\x00\x00", "the error code follows the correlation id"


def test_unsupported_version_carries_the_header() -> None:
    frame = struct.pack(">hhih3s", 18, 99, 5, 3, b"abc")
    with pytest.raises(codec.UnsupportedVersionError) as caught:
        codec.decode_request(frame)
    header = caught.value.header
    assert (header.api_version, header.correlation_id, header.client_id) == (99, 5, "abc")


@pytest.mark.parametrize(
    "frame",
    [b"", b"\x00\x03", struct.pack(">hhih", 3, 12, 1, 50), struct.pack(">hhih", 3, 1, 1, -1)],
)
def test_short_requests_are_malformed(frame: bytes) -> None:
    with pytest.raises(codec.MalformedRequestError):
        codec.decode_request(frame)


def test_a_length_of_two_billion_is_malformed_not_allocated() -> None:
    with pytest.raises(codec.MalformedRequestError):
        codec.decode_request(struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1))


@pytest.mark.parametrize("version", [7, 8])
def test_a_length_of_two_billion_in_an_answer_is_malformed_not_allocated(version: int) -> None:
    """Also of an array that the native reader decodes as a whole, inside another one."""
    response = codec.build_response(8, version, topics=[{"name": "t", "partitions": []}])
    payload = codec.encode_response(8, version, 1, response)[4:]
    is_flexible = version == 8
    announced, tags = (b"\x01", 2) if is_flexible else (bytes(4), 0)
    position = len(payload) - tags - len(announced)
    assert payload[position:][: len(announced)] == announced
    length = b"\xff\xff\xff\xff\x07" if is_flexible else b"\x7f\xff\xff\xff"
    with pytest.raises(codec.MalformedRequestError, match="exceeds the message"):
        codec.decode_response(8, version, payload[:position] + length + bytes(6))


def test_build_coerces_and_drops() -> None:
    topic: dict[str, Any] = {
        "name": "t",
        "topic_id": UUID(int=0),
        "error_code": 3,
        "partitions": [{"partition_index": 1, "leader_epoch": 4, "replica_nodes": [1, 2]}],
    }
    old = codec.build_response(3, 1, throttle_time=5, topics=[topic], controller_id=1)
    new = codec.build_response(3, 12, throttle_time=5, topics=[topic], controller_id=1)
    assert not hasattr(old, "throttle_time")
    assert new.throttle_time.total_seconds() == 0.005
    assert new.topics[0].topic_id is None
    assert new.topics[0].error_code is ErrorCode.unknown_topic_or_partition
    assert new.topics[0].partitions[0].replica_nodes == (1, 2)
    assert codec.encode_response(3, 1, 1, old) != codec.encode_response(3, 12, 1, new)


def test_build_refuses_a_name_of_no_version() -> None:
    with pytest.raises(TypeError, match="leader_of"):
        codec.build_response(3, 12, topics=[{"leader_of": 3}])


def test_defaults_alone_can_be_written() -> None:
    for api_key, version in ALL:
        with case(api_key, version):
            request = codec.build_request(api_key, version)
            frame = codec.encode_request(request, correlation_id=1, client_id=None)
            assert codec.decode_request(frame[4:]).message == request
            response = codec.build_response(api_key, version)
            payload = codec.encode_response(api_key, version, 1, response)[4:]
            assert codec.decode_response(api_key, version, payload)[1] == response
