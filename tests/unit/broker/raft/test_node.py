"""The shell of one voter that is a quorum by itself."""

import asyncio
import contextlib
import errno
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.log.disk.flush import FlushJob
from broker.log.names import METADATA_TOPIC_ID
from broker.log.partition_log import PartitionLog
from broker.metadata.topic_names import METADATA_TOPIC
from broker.raft.config import QuorumConfig, Voter
from broker.raft.errors import NotLeaderError
from broker.raft.events import Event, RequestFailed
from broker.raft.messages import BeginEpochRequest, VoteRequest
from broker.raft.metadata_log import CommittedBatch, MetadataLog
from broker.raft.network_channel import NetworkChannel
from broker.raft.node import QuorumNode
from broker.raft.ports import Flush, Peer
from broker.raft.snapshot_files import Snapshot
from broker.raft.vote import Vote
from broker.raft.vote_file import VoteFile
from tests.support.patience import patience_s
from tests.support.settle import TIMEOUT_S, turns, until


class Replayed:
    """Notes what is committed and who leads."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.leaders: list[int | None] = []
        self.has_leader = asyncio.Event()

    def handle_committed(self, batch: CommittedBatch) -> None:
        self.values += batch.values

    def prepare_snapshot(self, snapshot: Snapshot) -> Callable[[], None]:
        raise AssertionError(f"who sent {snapshot.id}?")

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        self.leaders.append(leader_id)
        if leader_id is not None:
            self.has_leader.set()

    def handle_voter_gone(self, voter_id: int) -> None:
        raise AssertionError(f"voter {voter_id}?")


class Stubborn:
    """A flush that waits for `disk`, or fails."""

    def __init__(self, log: "FragileLog", real: FlushJob) -> None:
        self._log = log
        self.real = real

    def run(self) -> None:
        if self._log.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._log.is_asked.set()
        assert self._log.disk.wait(TIMEOUT_S)
        self.real.run()


class SlowVotes(VoteFile):
    """Votes on a disk that takes its time."""

    def __init__(self, directory: Path, disk: threading.Event) -> None:
        super().__init__(directory, voters=(1,))
        self._disk = disk

    def write(self, vote: Vote) -> None:
        assert self._disk.wait(TIMEOUT_S)
        super().write(vote)


class FragileLog(MetadataLog):
    """A log on real files whose disk can be made to fail, or to take its time."""

    def __init__(self, log: PartitionLog, clock: SystemClock) -> None:
        super().__init__(log, clock)
        self.is_full = False
        self.is_asked = threading.Event()
        self.disk, self.votes_disk = threading.Event(), threading.Event()
        self.disk.set()
        self.votes_disk.set()

    def begin_flush(self) -> Stubborn | None:  # type: ignore[override]
        real = super().begin_flush()
        return None if real is None else Stubborn(self, real)

    def finish_flush(self, flush: Flush) -> int:
        assert isinstance(flush, Stubborn)
        return super().finish_flush(flush.real)


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
        store=SlowVotes(directory, log.votes_disk),
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


async def test_a_slow_disk_holds_nobody_up_and_commits_in_its_time(tmp_path: Path) -> None:
    node, log, replayed = await started(tmp_path)
    await node.wait_committed(node.append([b"a"]))
    log.disk.clear()
    log.is_asked.clear()
    waiting = asyncio.create_task(node.wait_committed(node.append([b"b"])))
    later = node.append([b"c"])
    await until(log.is_asked.is_set)
    await turns()
    assert not waiting.done()
    assert replayed.values == [b"a"]
    log.disk.set()
    await asyncio.gather(waiting, node.wait_committed(later))
    assert replayed.values == [b"a", b"b", b"c"]
    await node.stop()


async def test_a_vote_on_a_slow_disk_holds_nobody_up_and_counts_in_its_time(
    tmp_path: Path,
) -> None:
    node, log, replayed = make_node(tmp_path)
    log.votes_disk.clear()
    node.start()
    await replayed.has_leader.wait()
    waiting = asyncio.create_task(node.wait_committed(node.append([b"a"])))
    await turns()
    assert not waiting.done()
    assert VoteFile(tmp_path, voters=(1,)).read() == Vote()
    log.votes_disk.set()
    await waiting
    assert VoteFile(tmp_path, voters=(1,)).read().epoch == 1
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


@pytest.mark.parametrize("is_last", [False, True])
async def test_leader_that_cannot_replay_leads_no_longer_and_says_so(
    tmp_path: Path, is_last: bool
) -> None:
    node, _, replayed = await started(tmp_path)
    faults: list[Exception] = []
    node.on_fault = faults.append
    await node.wait_committed(node.append([b"a"]))

    def refuse(batch: CommittedBatch) -> None:
        raise KeyError("topic 7 is unknown")

    replayed.handle_committed = refuse  # type: ignore[method-assign]
    offset = node.append([b"b"])
    if not is_last:
        with contextlib.suppress(NotLeaderError):
            node.append([b"c"])
    with pytest.raises(NotLeaderError):
        await node.wait_committed(offset)
    (fault,) = faults
    for words in ("metadata quorum", "topic 7 is unknown", "others take over"):
        assert words in str(fault)
    assert replayed.leaders[-1] is None
    assert (node.leader_id, node.leader_state) == (None, None)
    with pytest.raises(NotLeaderError):
        node.append([b"d"])
    await node.stop()


async def test_voter_whose_disk_fails_falls_silent_and_says_so(tmp_path: Path) -> None:
    node, log, replayed = await started(tmp_path)
    faults: list[Exception] = []
    node.on_fault = faults.append
    log.is_full = True
    offset = node.append([b"a"])
    with pytest.raises(NotLeaderError):
        await node.wait_committed(offset)
    (fault,) = faults
    assert "No space left on device" in str(fault)
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
    await asyncio.wait([waiting], timeout=patience_s(0.5))
    assert waiting.done()
    waiting.exception()


async def test_a_leader_that_the_properties_lack_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody could say where it listens."""

    def connect(voter: Voter) -> Peer:
        raise AssertionError(voter)

    heard: list[Event] = []
    config = QuorumConfig(node_id=1, voters=(Voter(id=1, host="h", port=1),))
    exchange = NetworkChannel(config=config, cluster_id="c", connect=connect, report=heard.append)
    request = BeginEpochRequest(leader_id=1, epoch=1)
    for _ in range(2):
        exchange.send(7, request)
    await exchange.close(farewell_s=TIMEOUT_S)
    assert heard == 2 * [RequestFailed(peer=7, request=request)]
    (line,) = caplog.messages
    assert "node 7 leads" in line
    assert "controller.quorum.voters lacks it" in line
