"""A node as its process runs it: what ends it, and what it says then."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from broker.log.disk import disk_health
from broker.protocol import codec
from broker.server.acceptor import Acceptor
from broker.server.main import EXIT_FAILED, _serve
from tests.support.faulty_disk import FaultyDisk
from tests.support.patience import WAIT_S
from tests.unit.broker.server.nodes import (
    create_topic,
    new_nodes,
    parts,
    produce,
    replica,
    running,
    until,
)

FAILING = frozenset({"open", "stat", "unlink", "rename", "replace", "listdir"})


async def test_a_failed_fsync_ends_the_process_and_nothing_acknowledged_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (node,) = new_nodes(tmp_path)
    serving = asyncio.create_task(_serve(node))
    await until(lambda: "ready" in capsys.readouterr().out)
    await create_topic([node], "orders", flush_ms="1")
    with FaultyDisk(tmp_path / "101" / "orders-0", errno.EIO, calls={"fsync"}) as disk:
        assert (await produce(node, "orders", b"kept")).error is None
        assert await asyncio.wait_for(serving, WAIT_S) == EXIT_FAILED
    assert disk.met
    assert "Forcing" in caplog.messages[-1]
    assert "Check the disk" in caplog.messages[-1]

    async with running(tmp_path) as (again,):
        assert not parts(again).logs.was_clean
        await until(lambda: replica(again, "orders") is not None)
        log = replica(again, "orders").log
        assert b"kept" in log.read_bytes(0, max_bytes=1 << 20, max_offset=log.log_end_offset)


async def test_a_start_that_fails_ends_the_process_instead_of_serving_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Acceptor) -> None:
        if self.sockets[0].getsockname()[1] == node.config.listeners.among_brokers.port:
            raise OSError(errno.EMFILE, "Too many open files")
        start(self)

    (node,) = new_nodes(tmp_path)
    start = Acceptor.start
    monkeypatch.setattr(Acceptor, "start", refuse)
    assert await asyncio.wait_for(_serve(node), WAIT_S) == EXIT_FAILED
    assert "start of the broker" in caplog.messages[-1]
    assert "Too many open files" in caplog.messages[-1]


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO])
async def test_retention_goes_on_after_the_disk_was_unwell(
    tmp_path: Path, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, log_segment_delete_delay_ms="100") as (node,):
        await create_topic([node], "orders", retention_bytes="1", segment_bytes="1048576")
        logs, log = parts(node).logs, replica(node, "orders").log
        await produce(node, "orders", b"old")
        log.roll()
        directory = tmp_path / "101" / "orders-0"
        with FaultyDisk(directory, code, calls=FAILING):
            logs._retention_due_ms = 0
            await until(lambda: "orders-0 is not maintained" in caplog.text)
        assert log.log_start_offset == 0
        logs._retention_due_ms = 0
        await until(lambda: log.log_start_offset == 1)
        await until(lambda: not list(directory.glob("*.deleted")))
        assert node.fault is None


async def test_metadata_that_cannot_be_replayed_ends_the_process_and_its_clients_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node,) = new_nodes(tmp_path)
    serving = asyncio.create_task(_serve(node))
    await until(lambda: node._parts is not None and parts(node).lifecycle._broker_epoch >= 0)
    await create_topic([node], "orders")

    def refuse(*_: object, **__: object) -> None:
        raise KeyError("a record of another version")

    monkeypatch.setattr("broker.controller.controller_channel.replay_batch", refuse)
    with pytest.raises((AssertionError, OSError)):
        await create_topic([node], "poison")
    assert await asyncio.wait_for(serving, WAIT_S) == EXIT_FAILED
    for words in ("stopped by a fault", "metadata quorum", "a record of another version"):
        assert words in caplog.messages[-1]


async def test_a_broker_that_finds_its_disk_full_frees_it_and_then_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would wait for room that only its own retention and deletions can make."""
    monkeypatch.setattr(disk_health, "STEADY_MS", 100)
    async with running(tmp_path, log_segment_delete_delay_ms="100") as (first,):
        await create_topic([first], "orders", retention_bytes="1", segment_bytes="1048576")
        await produce(first, "orders", b"old")
        replica(first, "orders").log.roll()
    directory = tmp_path / "101"
    deleted = directory / "gone-0.1234-delete"
    deleted.mkdir()
    (deleted / "large.log").write_bytes(b"large")

    real = os.posix_fallocate

    def allocate(fd: int, offset: int, size_bytes: int) -> None:
        if deleted.exists() or list((directory / "orders-0").glob("*00.log")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd, offset, size_bytes)

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    monkeypatch.setattr("broker.log.log_manager.RETENTION_INITIAL_DELAY_MS", 0)
    async with running(tmp_path, log_segment_delete_delay_ms="100") as (again,):
        assert not deleted.exists()
        assert replica(again, "orders").log.log_start_offset == 1
        assert (await produce(again, "orders", b"new")).error is None


async def test_a_fetch_whose_client_goes_does_not_wait_on(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        await create_topic([node], "orders")
        host, port = node.address.split(":")
        asked = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]
        message = codec.build_request(
            1,
            11,
            max_wait=2**31 - 1,
            min_bytes=1,
            topics=[{"topic": "orders", "partitions": asked}],
        )
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(codec.encode_request(message, correlation_id=1, client_id="t"))
        partition = replica(node, "orders")
        await until(lambda: len(partition.consumers) == 1)
        writer.close()
        await until(lambda: not partition.consumers)
        assert len(parts(node).replicas._wheel) == 0
