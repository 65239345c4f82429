"""flush.messages on a slow disk: acknowledgements wait for it, and nobody else does."""

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.log.errors import ForceFailedError
from tests.support.faulty_disk import FaultyDisk
from tests.support.settle import TIMEOUT_S, turns, until
from tests.unit.broker.replication.rig import Rig, records


class SlowDisk:
    """Holds every fsync of a segment of topic t up until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked, self._may_go = threading.Event(), threading.Event()
        self._fsync = os.fsync
        self.place = "/t-0/"
        monkeypatch.setattr(os, "fsync", self._force)

    def _force(self, fd: int) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if self.place in path and path.endswith(".log"):
            self.is_asked.set()
            assert self._may_go.wait(TIMEOUT_S)
        self._fsync(fd)

    def let_go(self) -> None:
        self._may_go.set()


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    disk = SlowDisk(monkeypatch)
    yield disk
    disk.let_go()


@pytest.mark.parametrize("acks", [1, -1])
async def test_an_acknowledgement_waits_for_the_disk_and_other_partitions_do_not(
    rig: Rig, slow_disk: SlowDisk, acks: int
) -> None:
    rig.create(1, flush_messages="2")
    rig.create(1, topic="other")
    node = rig.nodes[1]
    assert (await node.append("below the count", acks=acks)).error is None
    waiting = [asyncio.create_task(node.append(value, acks=acks)) for value in "ab"]
    await until(slow_disk.is_asked.is_set)
    other = node.replicas.append_and_wait("other", 0, records("x"))
    assert (await asyncio.wait_for(other, TIMEOUT_S)).error is None
    assert not any(task.done() for task in waiting)
    assert node.partition().log.recovery_point == 0
    slow_disk.let_go()
    results = await asyncio.wait_for(asyncio.gather(*waiting), TIMEOUT_S)
    assert [(each.error, each.base_offset) for each in results] == [(None, 1), (None, 2)]
    assert node.partition().log.recovery_point == 3


async def test_a_follower_acknowledges_what_its_disk_has(rig: Rig, slow_disk: SlowDisk) -> None:
    slow_disk.place = "/2/t-0/"
    rig.create(1, 2, flush_messages="1")
    waiting = asyncio.create_task(rig.nodes[1].append("a"))
    await until(slow_disk.is_asked.is_set)
    assert rig.nodes[2].partition().log.log_end_offset == 1
    await turns()
    assert rig.nodes[1].partition().follower_end_offsets() == {2: 0}
    assert not waiting.done()
    slow_disk.let_go()
    assert (await asyncio.wait_for(waiting, TIMEOUT_S)).error is None
    assert (await asyncio.wait_for(rig.nodes[1].append("b"), TIMEOUT_S)).error is None


async def test_a_leader_that_resigned_meanwhile_promises_nothing(
    rig: Rig, slow_disk: SlowDisk
) -> None:
    rig.create(1, 2, flush_messages="1")
    rig.cut = {frozenset({1, 2})}
    waiting = asyncio.create_task(rig.nodes[1].append("a"))
    await until(slow_disk.is_asked.is_set)
    rig.change(leader=2)
    slow_disk.let_go()
    result = await asyncio.wait_for(waiting, TIMEOUT_S)
    assert type(result.error).__name__ == "NotLeaderError"


async def test_a_file_that_cannot_be_opened_is_tried_again(rig: Rig, tmp_path: Path) -> None:
    rig.create(1, flush_messages="1")
    assert (await rig.nodes[1].append("a")).error is None
    with FaultyDisk(tmp_path, errno.EMFILE, calls={"open"}, times=1) as disk:
        result = await asyncio.wait_for(rig.nodes[1].append("b", acks=1), TIMEOUT_S)
    assert disk.met
    assert result.error is None
    assert rig.nodes[1].partition().log.recovery_point == 2


async def test_of_a_disk_that_hangs_a_bounded_number_is_waited_for(
    rig: Rig, slow_disk: SlowDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.replication.flush_by_count.WAITING_MAX", 3)
    rig.create(1, flush_messages="1")
    waiting = [asyncio.create_task(rig.nodes[1].append("a", acks=1))]
    await until(slow_disk.is_asked.is_set)
    waiting += [asyncio.create_task(rig.nodes[1].append("b", acks=1)) for _ in range(10)]
    await until(lambda: sum(task.done() for task in waiting) == 7)
    assert rig.nodes[1].partition().log.log_end_offset == 4
    slow_disk.let_go()
    results = await asyncio.wait_for(asyncio.gather(*waiting), TIMEOUT_S)
    assert [type(each.error).__name__ for each in results].count("NotEnoughReplicasError") == 7


async def test_a_failed_fsync_is_told_and_final(rig: Rig, tmp_path: Path) -> None:
    rig.create(1, flush_messages="1")
    with FaultyDisk(tmp_path, errno.EIO, calls={"fsync"}):
        result = await asyncio.wait_for(rig.nodes[1].append("a", acks=1), TIMEOUT_S)
    assert isinstance(result.error, ForceFailedError)
    assert rig.nodes[1].logs.disk.failure is result.error
