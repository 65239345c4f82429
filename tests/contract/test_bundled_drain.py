"""A bundled broker is drained to the end by one command; it comes back only when it is asked to."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.watched_cluster import WatchedCluster
from control.operations.broker_stop_client import SOCKET_FILE
from control.operations.catalogue.brokers.drain import Drain
from control.operations.operation_session import OperationSession
from control.operations.reassignment.draining import DrainStep
from tests.contract.operations_rig import ExecutorProcess, topic_with_data
from tests.support.bundled_cluster import BundledCluster
from tests.support.patience import WAIT_S
from tests.support.settle import eventually, wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(240)]
DRAINED = 103


@pytest.fixture
def running(tmp_path: Path) -> Iterator[BundledCluster]:
    """Four founders: each of them votes."""
    with BundledCluster(tmp_path / "data", brokers=4) as running:
        yield running


@pytest.fixture
async def session(running: BundledCluster, tmp_path: Path) -> AsyncIterator[OperationSession]:
    at, socket_file = running.bootstrap, str(running.data / SOCKET_FILE)
    watched = WatchedCluster(bootstrap=at, outages=socket_file)
    with ExecutorProcess(bus=at, log=tmp_path / "executor.err") as executor:
        await asyncio.to_thread(executor.wait_until_said, "ready")
        async with OperationSession(watched, bus=at, who="tester") as opened:
            yield opened


async def test_one_command_drains_a_bundled_broker_and_no_start_brings_it_back(
    running: BundledCluster, session: OperationSession, tmp_path: Path
) -> None:
    await topic_with_data(session.admin, {0: (DRAINED, 101), 1: (102, DRAINED)}, records=50)
    log = tmp_path / "drain.log"

    killed = _drain(running, log)
    retired = f"broker {DRAINED} is stopped for good"
    await asyncio.to_thread(
        wait_until, lambda: retired in running.said(), retired, timeout_s=120, story=log.read_text
    )
    killed.kill()
    killed.wait()
    assert DRAINED in (await session.admin.registered_brokers() or ())
    await eventually(lambda: _step(session, DRAINED), DrainStep.UNREGISTER)
    killed = _drain(running, log)
    while DRAINED in (await session.admin.registered_brokers() or ()):
        assert killed.poll() is None, log.read_text()
    killed.kill()
    assert killed.wait() == -signal.SIGKILL, "it had ended: nobody was killed while unregistering"
    assert f"broker {DRAINED} is unregistered" not in log.read_text()
    assert await asyncio.to_thread(_drain(running, log).wait, WAIT_S) == 0, log.read_text()
    assert log.read_text().endswith("it is drained\n")
    assert "ended" not in running.said()

    running.stop()
    running.start()
    assert re.search(rf"broker {DRAINED} .*not started .*--rejoin {DRAINED}\b", running.said())
    assert running.alive() == {101, 102, 104}
    running.stop()
    running.start("--rejoin", str(DRAINED))
    await eventually(lambda: asyncio.to_thread(running.alive), {101, 102, 103, 104})
    async with KafkaAdmin.to(running.bootstrap) as admin:
        (cordoned,) = {log_dir.is_cordoned for log_dir in await admin.log_dirs([DRAINED])}
    assert cordoned
    assert json.loads((running.data / "cluster.json").read_text())["drained"] == []


async def _step(session: OperationSession, broker: int) -> DrainStep:
    command = (await session.preview(Drain(broker=broker))).effect.command
    assert isinstance(command, Drain)
    return command.step


def _drain(running: BundledCluster, log: Path) -> subprocess.Popen[bytes]:
    command = ("brokers", "drain", str(DRAINED), "--yes", "--data", str(running.data))
    with log.open("ab") as out:
        return subprocess.Popen(
            (sys.executable, "-m", "partiscope", *command), stdout=out, stderr=out
        )
