"""A node as its process runs it: what ends it, and what it says then."""

import asyncio
import errno
from pathlib import Path

import pytest

from broker.server.main import EXIT_FAILED, _serve
from tests.support.faulty_disk import FaultyDisk
from tests.unit.broker.server.nodes import (
    WAIT_S,
    create_topic,
    new_nodes,
    parts,
    produce,
    replica,
    running,
    until,
)


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
