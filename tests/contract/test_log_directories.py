"""A broker of real Kafka with two log directories of 150 and 300 MiB: full, cordoned, failed."""

import asyncio
import errno
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic
from control.model.ids import TopicPartition
from control.move.check import Check, Verdict
from control.operations.reassignment.facts import read_facts, topology_of
from control.operations.reassignment.preflight import preflight
from planner.proposal import proposal_of
from tests.contract.operations_rig import add_data, unique
from tests.support.collecting import becomes, collecting
from tests.support.kafka_oracle import KAFKA_TODAY, KafkaCluster
from tests.support.phrases import lacking
from tests.support.settle import eventually

pytestmark = pytest.mark.kafka_oracle

SMALL: Final = 102
MIB: Final = 1 << 20
SIZES_MIB: Final = (150, 300)
CORDONS: Final = ConfigResource(scope=ConfigScope.BROKER, name=str(SMALL))
RECORDS: Final = 80 * MIB // 1000


class SmallDisksCluster(KafkaCluster):
    """The directories of one broker are file systems of their own; the metadata log is on the
    smaller one."""

    def prepare_node(self, node_id: int) -> None:
        if node_id == SMALL:
            for path, size in zip(self.directories(node_id), SIZES_MIB, strict=True):
                path.mkdir()
                mount = ("mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", path)
                done = subprocess.run(mount, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    pytest.skip(f"a small file system cannot be mounted: {done.stderr.strip()}")
        super().prepare_node(node_id)

    def stop(self) -> None:
        super().stop()
        for path in self.directories(SMALL):
            subprocess.run(("umount", "-l", path), capture_output=True, check=False)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    folder = tmp_path / "kafka"
    with SmallDisksCluster(folder, brokers=2, version=KAFKA_TODAY, log_dirs=2) as running:
        yield running


@pytest.fixture
async def admin(cluster: KafkaCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin.to(cluster.bootstrap) as opened:
        yield opened


async def _paths_of(admin: KafkaAdmin, topic: str) -> dict[int, str]:
    """Where the replicas on the small broker lie."""
    return {
        replica.partition: log_dir.path
        for log_dir in await admin.log_dirs([SMALL])
        for replica in log_dir.replicas
        if replica.topic == topic
    }


async def _check(admin: KafkaAdmin, topic: str, *partitions: int) -> Check:
    """Pre-flight's verdict on disks where these move to the small broker."""
    facts = await read_facts(admin)
    targets = {TopicPartition(topic, number): (SMALL,) for number in partitions}
    changes = proposal_of("x", topology_of(facts), targets).changes
    checks = preflight(facts, changes, throttle_bytes_per_s=None)
    (disk,) = [check for check in checks if check.name == "disk"]
    return disk


async def _move(admin: KafkaAdmin, topic: str, number: int) -> str:
    """Move one partition there; the directory that it got."""
    targets: Mapping[TopicPartition, tuple[int, ...]] = {TopicPartition(topic, number): (SMALL,)}
    assert await admin.alter_reassignments(targets) == {}

    async def is_there() -> bool:
        (told,) = await admin.topics([topic])
        return told.partitions[number].replicas == (SMALL,)

    await eventually(is_there, True)
    return (await _paths_of(admin, topic))[number]


async def _cordon(admin: KafkaAdmin, *paths: str) -> None:
    await admin.alter_configs(CORDONS, {"cordoned.log.dirs": ",".join(paths) or None})

    async def told() -> list[str]:
        return [it.path for it in await admin.log_dirs([SMALL]) if it.is_cordoned]

    await eventually(told, list(paths))


def _fill(directory: Path) -> None:
    with (directory / "filler").open("wb", buffering=0) as file:
        size = MIB
        while size:
            try:
                file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2


@pytest.mark.timeout(300)
async def test_moves_are_judged_by_the_directory_that_kafka_takes(
    cluster: KafkaCluster, admin: KafkaAdmin
) -> None:
    small, large = map(str, cluster.directories(SMALL))
    await _cordon(admin, small)
    held = unique("held")
    await admin.create_topic(NewTopic(name=held, assignment=dict.fromkeys(range(2), (SMALL,))))
    await eventually(lambda: _paths_of(admin, held), dict.fromkeys(range(2), large))
    topic = unique("moved")
    await admin.create_topic(NewTopic(name=topic, assignment=dict.fromkeys(range(4), (101,))))
    for number in range(4):
        await add_data(admin, TopicPartition(topic, number), records=RECORDS)

    both = await _check(admin, topic, 0, 1)
    assert both.verdict is Verdict.OK, both
    four = await _check(admin, topic, 0, 1, 2, 3)
    assert four.verdict is Verdict.FAIL, "the cordoned one is no place"
    assert large in four.reason

    await _cordon(admin)
    both = await _check(admin, topic, 0, 1)
    assert both.verdict is Verdict.FAIL
    assert not lacking(both.reason, f"broker {SMALL}", small, "2 of 2", "MiB free", "fewest")
    assert (await _check(admin, topic, 0)).verdict is Verdict.OK
    assert await _move(admin, topic, 0) == small, "Kafka takes the one with the fewest replicas"
    await _cordon(admin, small)
    assert (await _check(admin, topic, 1)).verdict is Verdict.OK
    assert await _move(admin, topic, 1) == large

    _fill(Path(large))

    async def failed() -> list[str]:
        return [it.path for it in await admin.log_dirs([SMALL]) if it.is_failed]

    unheard = asyncio.create_task(add_data(admin, TopicPartition(topic, 1), records=5_000))
    await eventually(failed, [large])
    unheard.cancel()
    await asyncio.gather(unheard, return_exceptions=True)
    facts = await read_facts(admin)
    assert facts.cordoned == {SMALL}, "the only live one is cordoned: Kafka refuses the broker"
    await _cordon(admin)
    refused = await _check(admin, topic, 2)
    assert refused.verdict is Verdict.FAIL
    assert not lacking(refused.reason, small, "1 of 1")
    async with collecting(KafkaSettings(bootstrap=cluster.bootstrap)) as (_, collected):

        def told() -> list[tuple[str, bool]]:
            rows = (it for records in collected.rounds.values() for it in records)
            samples = (it for record in rows for it in record.brokers)
            own = [it.directories for it in samples if it.id == SMALL and it.directories]
            return [(it.path, it.is_failed) for found in own[:1] for it in found]

        await becomes(lambda: sorted(told()), [(small, False), (large, True)])
