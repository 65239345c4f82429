"""The shell of one voter that is a quorum by itself."""

import asyncio
import random
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.log.errors import StorageError
from broker.log.names import METADATA_TOPIC, METADATA_TOPIC_ID
from broker.log.partition_log import PartitionLog
from broker.quorum.config import QuorumConfig, Voter
from broker.quorum.errors import NotLeaderError
from broker.quorum.messages import VoteRequest
from broker.quorum.metadata_log import CommittedBatch, MetadataLog
from broker.quorum.node import QuorumNode
from broker.quorum.ports import Peer
from broker.quorum.snapshot_files import Snapshot
from broker.quorum.vote_file import VoteFile

FULL = StorageError("Writing failed", "No space left on device", "Free some space")


class Replayed:
    """Notes what is committed and who leads."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.leaders: list[int | None] = []
        self.has_leader = asyncio.Event()

    def handle_committed(self, batch: CommittedBatch) -> None:
        self.values += batch.values

    def handle_snapshot(self, snapshot: Snapshot) -> None:
        raise AssertionError(f"who sent {snapshot.id}?")

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        self.leaders.append(leader_id)
        if leader_id is not None:
            self.has_leader.set()

    def handle_voter_gone(self, voter_id: int) -> None:
        raise AssertionError(f"voter {voter_id}?")


class FragileLog(MetadataLog):
    """A log on real files whose disk can be made to fail."""

    is_full = False

    def flush(self) -> None:
        if self.is_full:
            raise FULL
        super().flush()


def no_peers(voter: Voter) -> Peer:
    raise AssertionError(f"there is nobody to connect to, not {voter}")


def make_node(directory: Path) -> tuple[QuorumNode, FragileLog, Replayed]:
    partition = PartitionLog.open(
        str(directory), topic=METADATA_TOPIC, partition=0, topic_id=METADATA_TOPIC_ID
    )
    clock = SystemClock()
    log = FragileLog(partition, clock)
    node = QuorumNode(
        config=QuorumConfig(node_id=1, voters=(Voter(id=1, host="h", port=1),)),
        cluster_id="c",
        log=log,
        store=VoteFile(directory, voters=(1,)),
        dice=random.Random(1),
        clock=clock,
        connect=no_peers,
    )
    replayed = Replayed()
    node.listener = replayed
    return node, log, replayed


async def started(directory: Path) -> tuple[QuorumNode, FragileLog, Replayed]:
    node, log, replayed = make_node(directory)
    node.start()
    await replayed.has_leader.wait()
    return node, log, replayed


async def test_appends_of_one_moment_share_a_flush_and_commit_in_order(tmp_path: Path) -> None:
    node, _, replayed = await started(tmp_path)
    offsets = [node.append([b"%d" % number]) for number in range(3)]
    assert replayed.values == []
    await asyncio.gather(*(node.wait_committed(offset) for offset in reversed(offsets)))
    assert replayed.values == [b"0", b"1", b"2"]
    await node.wait_committed(offsets[0])
    await node.stop()


async def test_restart_replays_what_was_committed(tmp_path: Path) -> None:
    node, _, _ = await started(tmp_path)
    await node.wait_committed(node.append([b"a", b"b"]))
    await node.abandon()
    again, _, replayed = await started(tmp_path)
    await again.wait_committed(again.append([b"c"]))
    assert replayed.values == [b"a", b"b", b"c"]
    assert again.core.epoch == 2
    await again.stop()


async def test_voter_whose_disk_fails_falls_silent_and_says_so(tmp_path: Path) -> None:
    node, log, replayed = await started(tmp_path)
    faults: list[Exception] = []
    node.on_fault = faults.append
    log.is_full = True
    offset = node.append([b"a"])
    with pytest.raises(NotLeaderError):
        await node.wait_committed(offset)
    assert faults == [FULL]
    assert replayed.values == []
    assert replayed.leaders[-1] is None
    assert node.leader_id is None
    with pytest.raises(NotLeaderError):
        await node.handle(
            VoteRequest(candidate_id=2, epoch=9, last_epoch=9, last_offset=9, pre_vote=False)
        )
    await node.stop()


async def test_stopped_leader_answers_its_waiters(tmp_path: Path) -> None:
    node, _, _ = await started(tmp_path)
    waiting = asyncio.ensure_future(node.wait_committed(node.append([b"a"])))
    await asyncio.sleep(0)
    await node.abandon()
    await asyncio.wait([waiting], timeout=1)
    assert waiting.done()
    waiting.exception()
