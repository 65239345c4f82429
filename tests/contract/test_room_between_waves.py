"""A wave counts on room that Kafka frees only after file.delete.delay.ms: it waits for it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.contract.operations_rig import ExecutorProcess
from tests.contract.operations_site import Site
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.command_line import CommandLine
from tests.support.kafka_eyes import KafkaEyes
from tests.support.phrases import lacking

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

SMALL: Final = 102
MIB: Final = 1 << 20
DELAY_MS: Final = 25_000


class SmallDiskCluster(LocalCluster):
    """The directory of one broker is a file system of its own."""

    def prepare_node(self, node_id: int) -> None:
        if node_id == SMALL:
            path = self.log_dir(node_id)
            path.mkdir()
            mount = ("mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", path)
            done = subprocess.run(mount, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"a small file system cannot be mounted: {done.stderr.strip()}")
        super().prepare_node(node_id)

    def stop(self) -> None:
        super().stop()
        subprocess.run(("umount", "-l", self.log_dir(SMALL)), capture_output=True, check=False)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    delay = {**NOBODY_DIES, "log.segment.delete.delay.ms": str(DELAY_MS)}
    with ExitStack() as stack:
        cluster = SmallDiskCluster(tmp_path / "cluster", overrides=delay)
        bus = stack.enter_context(cluster).bootstrap
        executor = ExecutorProcess(bus=bus, log=tmp_path / "executor.log")
        stack.enter_context(executor).wait_until_said("ready")
        cli = CommandLine(bootstrap=bus, bus=bus, folder=tmp_path)
        stack.callback(cli.close)
        yield Site(cluster=cluster, cli=cli, executor=executor, eyes=KafkaEyes(bus))


def test_a_wave_waits_until_the_files_of_what_left_are_gone(site: Site) -> None:
    """32 MiB leave a disk of 80, then 56 come."""
    leaves = site.topic("leaves", {0: (SMALL,)}, partition_bytes=32 * MIB)
    comes = site.topic("comes", {0: (101,)}, partition_bytes=56 * MIB)
    plans = {leaves: {0: (101,)}, comes: {0: (SMALL,)}}
    moves = [
        {"topic": topic, "partition": number, "replicas": list(replicas)}
        for topic, placement in plans.items()
        for number, replicas in placement.items()
    ]
    both = "both.json"
    (site.folder / both).write_text(json.dumps({"version": 1, "partitions": moves}))
    waves = ("--partitions-per-wave", "1", "--spread", "none", "--throttle", "none")
    said = site.cli.run("reassign", both, *waves, "--yes")
    (move,) = site.cli.moves()
    assert move["outcome"] == "done", said
    waited = [note for note in move["notes"] if "waits for room" in note]
    assert len(waited) == 1, move
    assert not lacking(waited[0], f"broker {SMALL}", "file.delete.delay.ms")
    for topic, placement in plans.items():
        site.check_settled(topic, placement)
