"""A quorum in one process under a seeded scheduler: lost, slow and doubled messages, partitions,
crashes that lose unflushed data, restarts. Invariants are checked after each event."""

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from broker.raft.config import QuorumConfig, Voter
from broker.raft.errors import NotLeaderError
from broker.raft.events import (
    ConnectionLost,
    Effect,
    Event,
    FlushBegun,
    FlushDue,
    Flushed,
    FlushNeeded,
    Reply,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    Send,
    SnapshotFetched,
    SnapshotForced,
    Tick,
    VoteChanged,
    VoteWritten,
)
from broker.raft.messages import Request
from broker.raft.states.leader import Leader
from broker.raft.vote import Vote
from broker.raft.voter import RaftCore
from tests.simulation.raft_log import Entry, MemoryLog

REQUEST_TIMEOUT_MS = 1_500
STORY_EVENTS = 60


class MemoryVotes:
    """A vote that survives crashes."""

    def __init__(self) -> None:
        self.vote = Vote()

    def read(self) -> Vote:
        return self.vote

    def write(self, vote: Vote) -> None:
        assert vote.epoch >= self.vote.epoch, "MonotonicEpoch: the durable epoch went back"
        self.vote = vote


@dataclass
class Node:
    """What survives a crash, and the core while it runs."""

    id: int
    log: MemoryLog = field(default_factory=MemoryLog)
    votes: MemoryVotes = field(default_factory=MemoryVotes)
    core: RaftCore | None = None
    incarnation: int = 0


class Cluster:
    """So many voters, and observers after them; `run` advances simulated time."""

    def __init__(self, seed: int, voters_count: int = 3, observers_count: int = 0) -> None:
        self.dice = random.Random(seed)
        self.now_ms = 0
        ids = range(101, 101 + voters_count + observers_count)
        self.nodes = {id_: Node(id_) for id_ in ids}
        self.voter_ids = tuple(ids[:voters_count])
        self.observer_ids = tuple(ids[voters_count:])
        self.loss_percent = 0
        self.delay_ms_max = 10
        self.cut: set[frozenset[int]] = set()
        self.leaders: dict[int, int] = {}
        self.committed: list[Entry] = []
        self.appended_count = 0
        self.acknowledged: set[bytes] = set()
        self.told: deque[tuple[int, int, Event]] = deque(maxlen=STORY_EVENTS)
        self._pending: dict[bytes, tuple[int, int]] = {}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._high_watermarks: dict[tuple[int, int], int] = {}
        self._epochs: dict[tuple[int, int], int] = {}
        self._wake_ms: dict[tuple[int, int], int] = {}
        self._disk_free_ms: dict[int, int] = {}
        self._tokens: dict[int, Callable[[Reply], None]] = {}
        self._resets: dict[int, list[Callable[[], None]]] = {}

    # --- life of the nodes ----------------------------------------------------------------

    def config(self, node_id: int) -> QuorumConfig:
        voters = tuple(Voter(id=id_, host="memory", port=id_) for id_ in self.voter_ids)
        return QuorumConfig(node_id=node_id, voters=voters)

    def start(self, node_id: int) -> None:
        node = self.nodes[node_id]
        node.incarnation += 1
        latest = node.log.latest_snapshot_id
        node.core = RaftCore(
            config=self.config(node_id),
            log=node.log,
            vote=node.votes.read(),
            dice=self.dice,
            now_ms=self.now_ms,
            committed_offset=0 if latest is None else latest.end_offset,
        )
        self._handle(node_id, Tick())

    def start_all(self) -> None:
        for node_id in self.nodes:
            self.start(node_id)

    def crash(self, node_id: int) -> None:
        node = self.nodes[node_id]
        node.core = None
        node.log.crash()
        for other in self.nodes:
            self._deliver(other, ConnectionLost(peer=node_id), 1)
        for reset in self._resets.pop(node_id, []):
            self._at(self.now_ms + 1, reset)

    def damage(self, node_id: int) -> None:
        """A voter that is down loses records to its disk, if all others have theirs."""
        node = self.nodes[node_id]
        others = [each.log for each in self.nodes.values() if each is not node]
        if node.core is None and all(
            log.lost_end <= (log.last_epoch, log.end_offset) for log in others
        ):
            latest = node.log.latest_snapshot_id
            first = max(node.log.start_offset, 0 if latest is None else latest.end_offset)
            if first < node.log.end_offset:
                node.log.lose(self.dice.randrange(first, node.log.end_offset))

    def resign(self, node_id: int) -> None:
        self._handle(node_id, ResignRequested())

    def snapshot(self, node_id: int) -> None:
        """The node writes down what it has replayed, and deletes the log that it needs no more."""
        node = self.nodes[node_id]
        if node.core is not None and node.core.high_watermark > 0:
            node.log.take_snapshot(node.core.high_watermark)
            self._check()

    def leader(self) -> int | None:
        """The leader of the highest epoch among running nodes."""
        leaders = [
            (node.core.epoch, id_)
            for id_, node in self.nodes.items()
            if node.core is not None and isinstance(node.core.state, Leader)
        ]
        return max(leaders)[1] if leaders else None

    def append(self) -> None:
        """A client of the leader appends a record and hears when it is committed."""
        leader = self.leader()
        if leader is None:
            return
        core = self.nodes[leader].core
        assert core is not None
        self.appended_count += 1
        value = b"%d" % self.appended_count
        try:
            offset, effects = core.append([value], self.now_ms)
        except NotLeaderError:
            return
        self._pending[value] = (leader, offset)
        self._run_effects(leader, effects)
        self._check()

    # --- time -------------------------------------------------------------------------------

    def run(self, until_ms: int) -> None:
        """Handle everything that is due up to `until_ms`."""
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
        self.now_ms = until_ms

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> int:
        """Advance until the condition holds; returns the milliseconds it took."""
        start_ms = self.now_ms
        while not condition():
            assert self.now_ms - start_ms <= within_ms, f"not within {within_ms} ms"
            self.run(self.now_ms + 5)
        return self.now_ms - start_ms

    def _at(self, at_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (at_ms, next(self._order), action))

    # --- messages ---------------------------------------------------------------------------

    def _handle(self, node_id: int, event: Event) -> None:
        core = self.nodes[node_id].core
        if core is None:
            return
        self.told.append((self.now_ms, node_id, event))
        self._run_effects(node_id, core.handle(event, self.now_ms))
        self._check()

    def _run_effects(self, node_id: int, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Send(peer=peer, request=request):
                    self._send(node_id, peer, request)
                case Reply(token=token):
                    self._tokens.pop(token)(effect)
                case FlushNeeded():
                    self._deliver(node_id, FlushDue(), self.dice.randrange(5))
                case FlushBegun(flush=flush):
                    self._deliver(node_id, Flushed(flush=flush), self._disk_ms(node_id))
                case SnapshotFetched(snapshot=snapshot):
                    forced = SnapshotForced(snapshot=snapshot)
                    self._deliver(node_id, forced, self._disk_ms(node_id))
                case VoteChanged(vote=vote):
                    self._write_vote(node_id, vote)
        self._arm(node_id)

    def _write_vote(self, node_id: int, vote: Vote) -> None:
        """A crash before loses it; one right after leaves a vote that nobody was told of."""
        node, delay_ms = self.nodes[node_id], self._disk_ms(node_id)
        incarnation = node.incarnation

        def write() -> None:
            if node.incarnation == incarnation and node.core is not None:
                node.votes.write(vote)

        self._at(self.now_ms + delay_ms, write)
        self._deliver(node_id, VoteWritten(vote=vote), delay_ms + self.dice.randrange(3))

    def _disk_ms(self, node_id: int) -> int:
        """When the disk has done one thing more: one after the other; some take long."""
        free_ms = max(self._disk_free_ms.get(node_id, 0), self.now_ms)
        took_ms = self.dice.randrange(200 if self.dice.randrange(20) == 0 else 5)
        self._disk_free_ms[node_id] = free_ms + took_ms
        return free_ms + took_ms - self.now_ms

    def _arm(self, node_id: int) -> None:
        node = self.nodes[node_id]
        if node.core is None or node.core.deadline_ms is None:
            return
        key = (node_id, node.incarnation)
        wake_ms = max(node.core.deadline_ms, self.now_ms)
        if self._wake_ms.get(key, -1) <= self.now_ms or wake_ms < self._wake_ms[key]:
            self._wake_ms[key] = wake_ms
            self._deliver(node_id, Tick(), wake_ms - self.now_ms)

    def _deliver(self, node_id: int, event: Event, delay_ms: int) -> None:
        """To this incarnation only: a restarted node gets nothing meant for the old one."""
        incarnation = self.nodes[node_id].incarnation

        def arrive() -> None:
            if self.nodes[node_id].incarnation == incarnation:
                self._handle(node_id, event)

        self._at(self.now_ms + delay_ms, arrive)

    def _is_lost(self, one: int, other: int) -> bool:
        return frozenset((one, other)) in self.cut or self.dice.randrange(100) < self.loss_percent

    def _delay_ms(self) -> int:
        return self.dice.randrange(self.delay_ms_max + 1)

    def _send(self, sender: int, peer: int, request: Request) -> None:
        if self.nodes[peer].core is None:
            failed = RequestFailed(peer=peer, request=request, is_refused=True)
            self._deliver(sender, failed, 1)
            return
        answered: list[bool] = []
        failed = RequestFailed(peer=peer, request=request)
        incarnation = self.nodes[sender].incarnation

        def time_out() -> None:
            if not answered and self.nodes[sender].incarnation == incarnation:
                answered.append(True)
                self._handle(sender, failed)

        self._at(self.now_ms + REQUEST_TIMEOUT_MS, time_out)
        self._resets.setdefault(peer, []).append(time_out)
        if self._is_lost(sender, peer):
            return
        token = next(self._order)

        def reply(effect: Reply) -> None:
            if self._is_lost(sender, peer):
                return
            response = ResponseReceived(peer=peer, request=request, response=effect.response)

            def arrive() -> None:
                if not answered and self.nodes[sender].incarnation == incarnation:
                    answered.append(True)
                    self._handle(sender, response)

            self._at(self.now_ms + self._delay_ms(), arrive)

        self._tokens[token] = reply
        self._deliver(peer, RequestReceived(token=token, request=request), self._delay_ms())

    def story(self) -> str:
        """The last events, by time and node."""
        return "\n".join(f"{at_ms} ms, node {node}: {event}" for at_ms, node, event in self.told)

    # --- invariants ---------------------------------------------------------------------------

    def _check(self) -> None:
        for node_id, node in self.nodes.items():
            if node.core is not None:
                node.core.check_invariants()
                self._check_monotonic_epoch(node_id, node)
                self._check_single_leader(node_id, node)
                self._check_monotonic_high_watermark(node_id, node)
                self._check_committed_never_lost(node)
                self._check_counted_is_durable(node_id, node)
        self._note_acknowledged()

    def _check_monotonic_epoch(self, node_id: int, node: Node) -> None:
        assert node.core is not None
        key = (node_id, 0)
        assert node.core.epoch >= self._epochs.get(key, 0), "MonotonicEpoch"
        self._epochs[key] = node.votes.vote.epoch

    def _check_single_leader(self, node_id: int, node: Node) -> None:
        assert node.core is not None
        if isinstance(node.core.state, Leader):
            assert node_id in self.voter_ids, "an observer leads"
            leader = self.leaders.setdefault(node.core.epoch, node_id)
            assert leader == node_id, f"SingleLeader: {leader} and {node_id}"

    def _check_monotonic_high_watermark(self, node_id: int, node: Node) -> None:
        assert node.core is not None
        key = (node_id, node.incarnation)
        assert node.core.high_watermark >= self._high_watermarks.get(key, 0), (
            "MonotonicHighWatermark"
        )
        self._high_watermarks[key] = node.core.high_watermark

    def _check_committed_never_lost(self, node: Node) -> None:
        """What any node ever called committed stays, the same on all."""
        assert node.core is not None
        known = node.log.entries[: node.core.high_watermark]
        shared = min(len(known), len(self.committed))
        assert known[:shared] == self.committed[:shared], "CommittedNeverLost"
        self.committed += known[shared:]

    def _check_counted_is_durable(self, node_id: int, node: Node) -> None:
        """What the newest leader counts a voter has on its disk."""
        assert node.core is not None
        state, epoch = node.core.state, max(each.votes.vote.epoch for each in self.nodes.values())
        if not isinstance(state, Leader) or node.core.epoch != epoch:
            return
        counted = {peer: progress.end_offset for peer, progress in state.progress.items()}
        for peer, offset in {**counted, node_id: state.flushed_offset}.items():
            log = self.nodes[peer].log
            assert offset <= max(log.flushed_count, log.lost_end[1]), "CountedIsDurable"

    def _note_acknowledged(self) -> None:
        for value, (leader, offset) in list(self._pending.items()):
            core = self.nodes[leader].core
            if core is None or not isinstance(core.state, Leader):
                del self._pending[value]
            elif core.high_watermark > offset:
                self.acknowledged.add(value)
                del self._pending[value]
