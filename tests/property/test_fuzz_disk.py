"""Files of a data directory, changed at random as a failing disk would: opened or refused by name.

`make soak` takes more seeds.
"""

import random
import shutil
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from broker.log.config import LogConfig
from broker.log.dump_log import (
    iter_batches,
    list_segments,
    read_index,
    read_time_index,
)
from broker.log.errors import LogError, RecordsRejectedError, StorageError
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.protocol.errors import ProtocolError
from broker.protocol.records import (
    NewRecord,
    build_batch,
    compute_crc,
    iter_batch_headers,
    iter_records,
)
from broker.raft.snapshot_files import SnapshotFiles
from broker.raft.snapshot_id import SnapshotId
from broker.raft.vote import Vote
from broker.raft.vote_file import VoteFile, VoteFileError
from tests.property.test_compaction import compact
from tests.support.cases import case
from tests.support.mutations import mutated
from tests.unit.broker.log.helpers import NOW_MS, FakeClock, append, read_all, sequenced

SEEDS: Final = [
    range(1, 2),
    *(pytest.param(range(n, n + 10), marks=pytest.mark.soak) for n in range(2, 42, 10)),
]
OPENINGS: Final = 25
APPENDS: Final = 300
TOPIC_ID: Final = UUID(int=5)
SMALL: Final = LogConfig(segment_bytes=500, index_interval_bytes=64, segment_index_bytes=480)


def manager(directory: Path) -> LogManager:
    """The logs of node 1."""
    return LogManager.open(
        str(directory), node_id=1, cluster_id="c", clock=FakeClock(), defaults=SMALL
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a log of several segments, and all files that belong to it."""
    directory = tmp_path_factory.mktemp("sound")
    logs = manager(directory)
    log = logs.create_log("orders", 0, TOPIC_ID, SMALL)
    for number in range(30):
        append(log, sequenced(2 * number, 2), epoch=number // 8)
    log.increment_log_start_offset(3)
    logs.shutdown(True)
    return directory


def copied(sound: Path, target: Path) -> list[Path]:
    """Its files, in another place."""
    shutil.copytree(sound, target)
    return sorted(path for path in target.rglob("*") if path.is_file())


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_a_directory_with_a_changed_file_is_opened_or_refused(
    sound: Path, tmp_path: Path, seeds: range
) -> None:
    names = {path.relative_to(tmp_path / "x").name for path in copied(sound, tmp_path / "x")}
    assert {"00000000000000000000.log", "leader-epoch-checkpoint", "meta.properties"} <= names
    for seed, is_clean in product(seeds, (True, False)):
        with case(seed, is_clean):
            _open_changed(
                sound, tmp_path / "changed", random.Random(f"{seed} {is_clean}"), is_clean
            )


def _open_changed(sound: Path, directory: Path, dice: random.Random, is_clean: bool) -> None:
    for _ in range(OPENINGS):
        files = copied(sound, directory)
        if not is_clean:
            (directory / ".kafka_cleanshutdown").unlink()
        victim = dice.choice([path for path in files if path.exists()])
        victim.write_bytes(mutated(dice, victim.read_bytes()))
        try:
            logs = manager(directory)
        except LogError:
            shutil.rmtree(directory)
            continue
        try:
            log = logs.create_log("orders", 0, TOPIC_ID, SMALL)
            read_all(log)
            log.offset_for_timestamp(NOW_MS, max_offset=log.log_end_offset)
            append(log, sequenced(60, 2), epoch=9)
            log.truncate_to(log.log_end_offset - 1)
        except (LogError, ProtocolError):
            pass  # a damaged batch is served as it lies; who reads it meets the damage
        finally:
            logs.shutdown(False)
        shutil.rmtree(directory)


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("compression", ["producer", "zstd"])
@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_a_changed_batch_is_appended_or_rejected_and_harms_no_other(
    tmp_path: Path, seeds: range, compression: str, policy: str
) -> None:
    for seed in seeds:
        with case(seed):
            dice = random.Random(f"{seed} {compression} {policy}")
            _append_changed(tmp_path / str(seed), dice, compression, policy)


def _append_changed(directory: Path, dice: random.Random, compression: str, policy: str) -> None:
    config = LogConfig(compression_type=compression, cleanup_policy=frozenset({policy}))
    log = PartitionLog.open(
        str(directory), topic="orders", partition=0, config=config, clock=FakeClock()
    )
    records = [NewRecord(key=b"k%d" % n, value=b"v" * 20, timestamp=NOW_MS) for n in range(3)]
    good = memoryview(build_batch(records))
    for _ in range(APPENDS):
        batch = bytearray(mutated(dice, build_batch(records, codec=dice.randrange(5))))
        if len(batch) >= 61 and dice.random() < 0.8:
            batch[17:21] = compute_crc(bytes(batch)).to_bytes(4, "big")
        try:
            append(log, memoryview(bytes(batch)))
        except RecordsRejectedError:
            continue
    appended = append(log, good)
    if config.is_compacted:
        log.roll()
        with suppress(StorageError):  # a batch that cannot be opened is named
            compact(log, log.log_end_offset)
        assert log.log_end_offset == appended.last_offset + 1
    log.close()
    again = PartitionLog.open(
        str(directory), topic="orders", partition=0, config=config, clock=FakeClock()
    )
    assert again.log_end_offset == appended.last_offset + 1
    header, position = list(iter_batch_headers(content := read_all(again)))[-1]
    last = content[position : position + header.size_bytes]
    assert [record.value for record in iter_records(last)] == [b"v" * 20] * 3


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
async def test_changed_snapshots_and_votes_are_read_or_refused(
    tmp_path: Path, seeds: range
) -> None:
    files, id_ = SnapshotFiles(tmp_path), SnapshotId(end_offset=9, epoch=2)
    await files.write(id_, [b"one", b"two"], now_ms=NOW_MS)
    votes = VoteFile(tmp_path, voters=(1, 2, 3))
    votes.write(Vote(epoch=3, leader_id=None, voted_id=2))
    path, vote = tmp_path / id_.file_name, tmp_path / "quorum-state"
    snapshot_bytes, vote_bytes = path.read_bytes(), vote.read_bytes()
    for seed in seeds:
        dice = random.Random(seed)
        for _ in range(APPENDS):
            with case(seed), suppress(VoteFileError):
                path.write_bytes(mutated(dice, snapshot_bytes))
                found = files.read_latest(offset_max=9)
                assert found is None or found.values == (b"one", b"two")
                vote.write_bytes(mutated(dice, vote_bytes))
                votes.read()


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_the_explorer_tells_of_a_changed_segment(sound: Path, tmp_path: Path, seeds: range) -> None:
    files = [p for p in copied(sound, tmp_path / "x") if p.parent.name == "orders-0"]
    for seed in seeds:
        with case(seed):
            _explore_changed(files, random.Random(seed))


def _explore_changed(files: list[Path], dice: random.Random) -> None:
    for _ in range(OPENINGS):
        victim = dice.choice(files)
        content = victim.read_bytes()
        victim.write_bytes(mutated(dice, content))
        _explore(str(victim.parent))
        victim.write_bytes(content)


def _explore(directory: str) -> None:
    for look in (read_index, read_time_index, iter_batches):
        with suppress(LogError, ProtocolError):
            for segment in list_segments(directory):
                list(look(directory, segment.base_offset))
