"""The parts of the adapters that need no cluster."""

import struct

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.admin.groups import parse_assignment
from control.kafka.connection.apis import METADATA
from control.kafka.connection.retry import retry_passing
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import Api, negotiate
from control.kafka.errors import RefusedError, UnsupportedApiError, raise_if_refused
from control.model.ids import TopicPartition


def test_addresses() -> None:
    settings = KafkaSettings(bootstrap="a:1, b.example:9092,[::1]:3")
    assert settings.addresses() == (("a", 1), ("b.example", 9092), ("::1", 3))
    with pytest.raises(ValueError, match="HOST:PORT"):
        KafkaSettings(bootstrap="localhost").addresses()


def test_the_highest_common_version_is_taken() -> None:
    api = Api(key=1, name="try", versions=(4, 12))
    assert negotiate(api, (0, 18)) == 12
    assert negotiate(api, (0, 7)) == 7
    for served in (None, (0, 3), (13, 18)):
        with pytest.raises(UnsupportedApiError) as error:
            negotiate(api, served)
        assert "try" in error.value.title
    assert METADATA.versions[1] == 12


def test_refusals_speak_and_advise() -> None:
    raise_if_refused(ErrorCode.none, what="nothing")
    with pytest.raises(RefusedError) as error:
        raise_if_refused(ErrorCode.topic_already_exists, what="creating topic t")
    assert "TOPIC_ALREADY_EXISTS" in str(error.value)
    assert "another name" in error.value.next_step


@pytest.mark.parametrize("code", [ErrorCode.not_controller, ErrorCode.offset_not_available])
async def test_passing_refusals_are_tried_again_and_others_are_not(code: ErrorCode) -> None:
    calls = []

    async def passes() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise RefusedError(code, what="it")
        return 7

    assert await retry_passing(passes) == 7

    async def stays() -> None:
        calls.append(1)
        raise RefusedError(ErrorCode.invalid_config, what="it")

    calls.clear()
    with pytest.raises(RefusedError):
        await retry_passing(stays)
    assert len(calls) == 1


def test_assignments_of_classic_members() -> None:
    name = b"orders"
    data = struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">iii", 2, 0, 5)
    assert parse_assignment(data) == [TopicPartition("orders", 0), TopicPartition("orders", 5)]
    assert parse_assignment(b"") == []
    assert parse_assignment(b"\x00\x01\x00\x00\x00\x09broken") == []
