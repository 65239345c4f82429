"""A snapshot is taken in beside the event loop, and nothing is replayed before it stands."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from broker.raft.snapshot_files import Snapshot
from broker.raft.snapshot_id import SnapshotId
from broker.raft.snapshot_install import SnapshotInstaller
from tests.support.settle import TIMEOUT_S


class Scene:
    """What was read, put in place and told; `gates` let the thread go on, one for each read."""

    def __init__(self, *gates: threading.Event) -> None:
        self.story: list[str] = []
        self.failures: list[Exception] = []
        self.newest = 1
        self.told = asyncio.Semaphore(0)
        self._gates = iter(gates)
        self.installer = SnapshotInstaller(
            read=self._read,
            prepare=self._prepare,
            on_installed=self._installed,
            on_failure=lambda _, error: self._fail(error),
        )

    def _read(self) -> Snapshot:
        assert threading.current_thread() is not threading.main_thread()
        end_offset = self.newest
        assert next(self._gates).wait(TIMEOUT_S)
        if end_offset < self.newest:
            raise FileNotFoundError(end_offset)
        return Snapshot(id=SnapshotId(end_offset=end_offset, epoch=1), values=())

    def _prepare(self, snapshot: Snapshot) -> Callable[[], None]:
        return lambda: self.story.append(f"put in place {snapshot.id.end_offset}")

    def _installed(self, end_offset: int) -> None:
        assert not self.installer.is_busy
        self.story.append(f"replay from {end_offset}")
        self.told.release()

    def _fail(self, error: Exception) -> None:
        self.failures.append(error)
        self.told.release()

    async def until_told(self) -> None:
        await asyncio.wait_for(self.told.acquire(), TIMEOUT_S)


async def test_the_event_loop_goes_on_while_a_snapshot_is_read() -> None:
    gate = threading.Event()
    scene = Scene(gate)
    scene.installer.begin()
    for _ in range(10):
        await asyncio.sleep(0)
    assert scene.installer.is_busy
    assert scene.story == []
    gate.set()
    await scene.until_told()
    assert scene.story == ["put in place 1", "replay from 1"]


@pytest.mark.parametrize("is_gone", [False, True])
async def test_of_two_snapshots_only_the_newer_one_is_put_in_place(is_gone: bool) -> None:
    first, second = threading.Event(), threading.Event()
    scene = Scene(first, second)
    scene.installer.begin()
    await asyncio.sleep(0)
    if is_gone:
        scene.newest = 2
    scene.installer.begin()
    second.set()
    first.set()
    await scene.until_told()
    end = 2 if is_gone else 1
    assert scene.story == [f"put in place {end}", f"replay from {end}"]
    assert scene.failures == []


async def test_a_snapshot_that_cannot_be_read_is_told() -> None:
    gate = threading.Event()
    gate.set()
    scene = Scene(gate)
    scene.newest = 0
    scene._read = scene.installer._read = lambda: 1 // 0  # type: ignore[method-assign,assignment,return-value]
    scene.installer.begin()
    await scene.until_told()
    assert [type(error) for error in scene.failures] == [ZeroDivisionError]
    assert scene.installer.is_busy, "nothing may be replayed"
