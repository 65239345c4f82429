"""A file that cannot be read costs its own partition an error, and nobody else anything."""

import errno
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.faulty_disk import FaultyDisk
from tests.unit.broker.server.nodes import (
    create_topic,
    fetch,
    produce,
    replica,
    running,
    until,
)

KAFKA_STORAGE_ERROR: Final = 56
READING: Final = frozenset({"open", "pread", "sendfile"})


def _values(answer: Any) -> bytes:
    return bytes(answer.records or b"")


async def test_a_consumer_gets_all_but_the_partition_that_cannot_be_read(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        for topic in ("bad", "good"):
            await create_topic([node], topic)
            await produce(node, topic, topic.encode())
        with FaultyDisk(tmp_path / "101" / "bad-0", errno.EIO, calls=READING) as disk:
            # The first time its bytes were promised already: only the connection can end.
            with pytest.raises(ConnectionError):
                await fetch(node, "bad", "good")
            for _ in range(2):
                answers = await fetch(node, "bad", "good")
                assert int(answers["bad"].error_code) == KAFKA_STORAGE_ERROR
                assert int(answers["good"].error_code) == 0
                assert b"good" in _values(answers["good"])
        assert disk.met
        assert b"bad" in _values((await fetch(node, "bad"))["bad"])


async def test_a_follower_goes_on_with_all_but_the_partition_that_its_leader_cannot_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, 2) as nodes:
        leader, follower = nodes
        for topic in ("bad", "good"):
            await create_topic(nodes, topic)
            assert (await produce(leader, topic, b"in sync")).error is None
        with FaultyDisk(tmp_path / "101" / "bad-0", errno.EIO, calls=READING) as disk:
            await produce(leader, "bad", b"unread", acks=1)
            await until(lambda: disk.met)
            for _ in range(20):
                assert (await produce(leader, "good", b"acknowledged by both")).error is None
            assert replica(follower, "bad").log.log_end_offset == 1
            assert replica(follower, "good").log.log_end_offset == 21
        await until(lambda: replica(follower, "bad").log.log_end_offset == 2)
        said = [each for each in caplog.messages if "bad-0" in each and "Input/output" in each]
        assert 1 <= len(said) <= 3, caplog.text
