"""The bus dies under commands that wait, and those that begin: one line each, and its status."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.contract.operations_rig import ExecutorProcess
from tests.contract.operations_site import Site
from tests.support.cases import case
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.command_line import CommandLine
from tests.support.kafka_eyes import KafkaEyes
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

UNREACHABLE: Final = 4
WORDS_MAX: Final = 80
BEFORE: Final = {0: (101, 102), 1: (101, 102)}
AFTER: Final = {0: (103, 102), 1: (103, 102)}


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "bus", brokers=2) as bus:
        yield bus


@pytest.fixture
def site(tmp_path: Path, bus: LocalCluster) -> Iterator[Site]:
    with ExitStack() as stack:
        cluster = LocalCluster(tmp_path / "cluster", overrides=NOBODY_DIES)
        stack.enter_context(cluster)
        executor = ExecutorProcess(
            bus=bus.bootstrap, watched=cluster.bootstrap, log=tmp_path / "executor.log"
        )
        stack.enter_context(executor).wait_until_said("ready")
        cli = CommandLine(bootstrap=cluster.bootstrap, bus=bus.bootstrap, folder=tmp_path)
        stack.callback(cli.close)
        eyes = KafkaEyes(cluster.bootstrap)
        yield Site(cluster=cluster, cli=cli, executor=executor, eyes=eyes)


def test_a_command_says_in_one_line_that_the_bus_is_gone(site: Site, bus: LocalCluster) -> None:
    topic = site.topic("moved", BEFORE, partition_bytes=8 << 20)
    plan = site.plan_by_hand(topic, AFTER)
    slow = ("--throttle", "50KiB", "--spread", "none", "--partitions-per-wave", "1")
    commands = {"reassign": site.cli.start("reassign", plan, *slow, "--yes", "--reason", "dies")}
    move = site.cli.wait_until_moving(1, reason="dies")
    commands["watch"] = site.cli.start("moves", "watch", move)
    commands["watch --json"] = site.cli.start("moves", "watch", move, "--json")
    for broker in bus.ids:
        bus.kill(broker)
    for words in (("cancel", move), ("rollback", move), ("pause", move), ()):
        commands[" ".join(("moves", *words[:1]))] = site.cli.start("moves", *words)
    for name, process in commands.items():
        with case(name):
            _, said = process.communicate(timeout=WAIT_S * 5)
            last = said.strip().rpartition("partiscope: ")[2]
            assert process.returncode == UNREACHABLE, said
            assert "Traceback" not in said
            assert not lacking(last, "did not answer", "Next:")
            assert len(last.splitlines()) == 1
            assert len(last.split()) < WORDS_MAX
