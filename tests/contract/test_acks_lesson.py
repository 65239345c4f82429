"""The lesson of acks on a cluster as `partiscope cluster` runs it; the broker always comes back."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from control.operations.broker_stop_client import SOCKET_FILE
from partiscope.layout import LOCK_FILE
from tests.contract.operations_rig import terminal_on
from tests.support.bundled_cluster import BundledCluster
from tests.support.patience import WAIT_S
from tests.support.settle import settle, wait_until
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tui.screens.dialogs.confirm import ConfirmScreen
from tui.screens.dialogs.operation import OperationScreen

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(240)]
BROKER = 102


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BundledCluster]:
    with BundledCluster(tmp_path_factory.mktemp("lesson") / "data") as running:
        yield running


def lesson(running: BundledCluster, *flags: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "partiscope", "brokers", "acks-lesson", str(BROKER), *flags]
    told = subprocess.run(
        [*words, "--data", str(running.data)] if "--bootstrap" not in flags else words,
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    return told


def test_what_acks_0_1_and_all_are_worth(running: BundledCluster) -> None:
    told = lesson(running, "--seconds", "2", "--yes", "--json")

    assert told.returncode == 0, told.stderr
    (words,) = json.loads(told.stdout)["done"]
    found = {it[0]: [int(n.replace(",", "")) for n in it[1:]] for it in re.findall(
        r"acks (\w+): ([\d,]+) sent, ([\d,]+) acknowledged, ([\d,]+) survived", words)}  # fmt: skip
    lost = {part.split(":")[0]: "are lost" in part for part in words.split(" · ")[1:]}
    assert lost == {"acks 0": True, "acks 1": True, "acks all": False}, words
    sent, acknowledged, survived = found["all"]
    assert sent >= survived >= acknowledged > 0
    assert running.alive() == {101, 102, 103}
    topics = (
        AdminClient({"bootstrap.servers": running.bootstrap}).list_topics(timeout=WAIT_S).topics
    )
    assert not [name for name in topics if name.startswith("acks-lesson-")]


async def test_the_terminal_keeps_the_result_until_it_is_closed(
    running: BundledCluster, tmp_path: Path
) -> None:
    at_ms = time.time_ns() // 1_000_000
    StoreBuilder(tmp_path).write(synthetic_rows(SyntheticSizes(topics=1, groups=1), at_ms=at_ms))
    socket_file = str(running.data / SOCKET_FILE)
    with terminal_on(
        running.bootstrap, tmp_path, path=f"brokers/{BROKER}", outages=socket_file
    ) as app:

        def shows(kind: type, words: str = "") -> bool:
            told = app.screen.query("#operation-outcome") if words else ()
            return isinstance(app.screen, kind) and all(words in str(it.render()) for it in told)

        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot, lambda: bool(app.screen.query("#table")), "the broker")
            await pilot.press("A")
            await settle(pilot, lambda: shows(OperationScreen), "the form")
            await pilot.press("ctrl+s")
            await settle(pilot, lambda: shows(ConfirmScreen), "the question")
            await pilot.press("y")
            taught = "acks all: "
            await settle(pilot, lambda: shows(OperationScreen, taught), "results", timeout_s=120)
            await pilot.press("escape")
            await settle(pilot, lambda: not shows(OperationScreen), "it is closed")


def test_the_broker_comes_back_when_who_stopped_it_is_killed(running: BundledCluster) -> None:
    code = (
        "import asyncio; from pathlib import Path\n"
        "from control.operations.broker_stop_client import outage\n"
        "async def run():\n"
        f"    async with outage(Path({str(running.data / SOCKET_FILE)!r}), {BROKER}):\n"
        "        print('stopped', flush=True); await asyncio.sleep(60)\n"
        "asyncio.run(run())"
    )
    backs = running.said().count("is back")
    asker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert asker.stdout is not None
    assert asker.stdout.readline() == b"stopped\n"
    assert "another broker is stopped" in answer_of(running, 103)
    assert running.said().count("is back") == backs
    os.kill(asker.pid, signal.SIGKILL)
    asker.communicate()
    wait_until(lambda: running.said().count("is back") > backs, "it is back")
    wait_until(lambda: running.alive() == {101, 102, 103}, "all run")


def test_it_is_refused_where_no_supervisor_of_ours_runs_the_broker(running: BundledCluster) -> None:
    told = lesson(running, "--yes", "--bootstrap", running.bootstrap)

    assert told.returncode != 0
    assert "only the brokers that" in told.stderr
    assert "runs no broker 999" in answer_of(running, 999)
    assert oct((running.data / SOCKET_FILE).stat().st_mode)[-3:] == "600"
    assert (running.data / LOCK_FILE).exists()


def answer_of(running: BundledCluster, broker: int) -> str:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(running.data / SOCKET_FILE))
        asking.sendall(f"stop {broker}\n".encode())
        return asking.recv(200).decode()
