"""Disks that flip bits or are full: a clear story, others go on, nothing acknowledged is lost."""

import errno
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from broker.protocol import codec
from tests.support.cluster import LocalCluster
from tests.support.ledger import TOPIC, SteadyProducer, check_ledger, consume_all
from tests.support.patience import patience_s
from tests.support.settle import wait_until

pytestmark = pytest.mark.thorough

VICTIM: Final = 101
DISK_BYTES: Final = 16 * 1024 * 1024
SILENCE_S_MAX: Final = patience_s(10.0)


def _create(cluster: LocalCluster, **configs: str) -> None:
    """The topic on all three brokers, led by the victim."""
    named = [{"name": name.replace("_", "."), "value": v} for name, v in configs.items()]
    topic = {
        "name": TOPIC,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": cluster.ids}],
        "configs": [{"name": "min.insync.replicas", "value": "2"}, *named],
    }
    message = codec.build_request(19, 7, topics=[topic], timeout=10_000, validate_only=False)
    (answer,) = cluster.ask(VICTIM, 19, 7, message).topics
    assert int(answer.error_code) == 0, answer


def _partition(cluster: LocalCluster) -> Any:
    alive = next(iter(cluster.processes))
    (topic,) = [t for t in cluster.metadata(alive).topics if t.name == TOPIC]
    return topic.partitions[0]


def _wait_in_sync(cluster: LocalCluster, *brokers: int) -> None:
    wait_until(
        lambda: set(_partition(cluster).isr_nodes) == set(brokers),
        f"{brokers} are in sync",
        story=cluster.story,
    )


def _lead(cluster: LocalCluster, broker_id: int) -> None:
    """Have the preferred leader elected."""
    topics = [{"topic": TOPIC, "partitions": (0,)}]
    message = codec.build_request(43, 2, election_type=0, topic_partitions=topics, timeout=10_000)
    cluster.ask(broker_id, 43, 2, message)
    wait_until(lambda: _partition(cluster).leader_id == broker_id, f"{broker_id} leads")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path, overrides={"log.index.interval.bytes": "512"}) as running:
        yield running


@pytest.mark.timeout(180)
def test_a_damaged_segment_is_cut_and_fetched_again(cluster: LocalCluster) -> None:
    """Twice: in the middle of the log, and in its last segment."""
    _create(cluster, segment_bytes="20000")
    producer = SteadyProducer(cluster.bootstrap)
    directory = cluster.log_dir(VICTIM) / f"{TOPIC}-0"
    try:
        for slot in (1, -1):
            wait_until(lambda: len(list(directory.glob("*.log"))) > 4, "there are some segments")
            producer.wait_acknowledged(500)
            cluster.kill(VICTIM)
            # Without it all of the log is checked, as after a power failure.
            (cluster.log_dir(VICTIM) / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
            path = _damage(directory, slot)
            cluster.restart(VICTIM)
            _wait_in_sync(cluster, *cluster.ids)
            _check_story(cluster.story(10_000), path)
            producer.wait_acknowledged(500)
    finally:
        producer.stop()
    _lead(cluster, VICTIM)
    found = consume_all(cluster.bootstrap, len(producer.acknowledged))
    check_ledger(producer, found)


def _damage(directory: Path, slot: int) -> Path:
    """Flip bytes in the middle of a segment."""
    path = sorted(each for each in directory.glob("*.log") if each.stat().st_size)[slot]
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    for position in range(middle, middle + 8):
        content[position] ^= 0xFF
    path.write_bytes(content)
    return path


def _check_story(story: str, path: Path) -> None:
    said = story.splitlines()
    lines = [line for line in said if f" {path}: " in line and "behind the damage" not in line]
    assert lines, story[-3000:]
    found = re.search(
        rf"{path}: .* position (\d+) .* offset (\d+) .* (\d+) bytes .*set aside in (\S+)\. ",
        lines[-1],
    )
    assert found is not None, lines[-1]
    base_offset = int(path.stem)
    assert int(found[2]) >= base_offset
    assert Path(found[4]).stat().st_size == int(found[3])
    assert "Traceback" not in story


class SmallDiskCluster(LocalCluster):
    """The victim's data directory is a file system of its own, of 16 MiB."""

    def prepare_node(self, node_id: int) -> None:
        super().prepare_node(node_id)
        if node_id == VICTIM:
            self.log_dir(node_id).mkdir()
            done = subprocess.run(
                (
                    "mount",
                    "-t",
                    "tmpfs",
                    "-o",
                    f"size={DISK_BYTES}",
                    "tmpfs",
                    self.log_dir(node_id),
                ),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")

    def stop(self) -> None:
        super().stop()
        subprocess.run(("umount", "-l", self.log_dir(VICTIM)), capture_output=True, check=False)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[LocalCluster]:
    with SmallDiskCluster(tmp_path) as running:
        yield running


def _fill(directory: Path) -> Path:
    """Take every byte that is left."""
    path = directory / "filler"
    with path.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    return path


@pytest.mark.timeout(180)
def test_a_broker_with_a_full_disk_steps_back_until_there_is_room(
    small: LocalCluster,
) -> None:
    _create(small)
    producer = SteadyProducer(small.bootstrap)
    try:
        producer.wait_acknowledged(500)
        _lead(small, VICTIM)
        filler = _fill(small.log_dir(VICTIM))
        filled = time.monotonic()
        wait_until(
            lambda: _partition(small).leader_id != VICTIM, "another leads", story=small.story
        )
        producer.wait_acknowledged(1000)
        assert producer.longest_gap_s(filled) < SILENCE_S_MAX
        assert set(_partition(small).isr_nodes) == set(small.ids) - {VICTIM}
        story = small.story(10_000)
        refusals = [line for line in story.splitlines() if "refuses writes" in line]
        assert len(refusals) == 1, story
        for words in (str(small.log_dir(VICTIM)), os.strerror(errno.ENOSPC)):
            assert words in refusals[0]
        filler.unlink()
        _wait_in_sync(small, *small.ids)
        _lead(small, VICTIM)
        producer.wait_acknowledged(300)
        assert "takes writes again" in small.story(10_000)
        assert "Traceback" not in small.story(10_000)
    finally:
        producer.stop()
    check_ledger(producer, consume_all(small.bootstrap, len(producer.acknowledged)))
