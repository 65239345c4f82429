"""A model of one partition on several nodes: real PartitionStates, logs as lists, a lossy network.

Everything random comes from one seed, time is a counter, so a failing seed fails again. Metadata
reaches each node in order but late; fetches and ISR changes may be lost on their way there or
back; nodes die and come back with their log (a killed process loses no page cache), an old high
watermark and a new broker epoch.
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from broker.replication.partition.effects import HighWatermarkAdvanced, ProposeIsr
from broker.replication.partition.events import (
    AssignmentChanged,
    EligibleReplicasChanged,
    Event,
    FollowerAppended,
    IsrCommitted,
    IsrRejected,
    IsrScanDue,
    LeaderAppended,
    LogTruncated,
    MinInsyncReplicasChanged,
    ReplicaFetched,
)
from broker.replication.partition.partition_state import PartitionState

LAG_MS = 300
STORY_EVENTS = 60
NODES = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What the controller publishes."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    broker_epochs: dict[int, int]


@dataclass(slots=True)
class Record:
    """One record: who wrote it in which epoch."""

    epoch: int
    value: int


@dataclass
class Node:
    """A replica; `inbox` is metadata on its way."""

    id: int
    state: PartitionState
    log: list[Record] = field(default_factory=list)
    broker_epoch: int = 0
    is_alive: bool = True
    inbox: deque[Metadata] = field(default_factory=deque)

    def last_epoch(self) -> int:
        """The epoch of the last record, -1 in an empty log."""
        return self.log[-1].epoch if self.log else -1

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """(largest epoch up to `epoch`, its end offset); -1 and 0 when all records are newer."""
        older = [r.epoch for r in self.log if r.epoch <= epoch]
        return (older[-1], len(older)) if older else (-1, 0)


class Model:
    """The cluster; `committed` is what clients were promised, by offset."""

    def __init__(self, seed: int, *, min_insync_replicas: int) -> None:
        self.dice = random.Random(seed)
        self.now_ms = 0
        self.min_insync_replicas = min_insync_replicas
        self.committed: dict[int, int] = {}
        self.next_value = 0
        self.loss = 0.2
        self.pending: deque[tuple[int, Callable[[], None]]] = deque()
        self.metadata = Metadata(
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            isr=NODES,
            broker_epochs=dict.fromkeys(NODES, 0),
        )
        self.nodes = {n: Node(n, self._fresh_state(n, 0, 0)) for n in NODES}
        self.told: deque[tuple[int, int, Event]] = deque(maxlen=STORY_EVENTS)
        self._held = dict.fromkeys(NODES, 0)
        self._leaders: dict[int, int] = {}
        self._publish(self.metadata)

    def _fresh_state(self, node_id: int, end: int, high_watermark: int) -> PartitionState:
        state = PartitionState(
            node_id=node_id,
            log_end_offset=end,
            log_start_offset=0,
            high_watermark=high_watermark,
            lag_time_ms_max=LAG_MS,
        )
        state.handle(
            MinInsyncReplicasChanged(min_insync_replicas=self.min_insync_replicas, now_ms=0)
        )
        return state

    # Events ------------------------------------------------------------------------------

    def handle(self, node: Node, event: Event) -> None:
        """One event to one node, and what follows from it."""
        self.told.append((self.now_ms, node.id, event))
        effects = node.state.handle(event)
        node.state.check_invariants()
        for effect in effects:
            if isinstance(effect, HighWatermarkAdvanced) and node.state.is_leader:
                self._promise(node, effect.high_watermark)
            if isinstance(effect, ProposeIsr):
                self._propose(node, effect)
        self.check()

    def check(self) -> None:
        """The invariants that hold after every step; a failure begins with the name of one."""
        for node in self.nodes.values():
            self._check_prefix(node)
            if node.is_alive and node.state.is_leader:
                epoch = node.state.leader_epoch
                leader = self._leaders.setdefault(epoch, node.id)
                assert leader == node.id, f"OneLeaderPerEpoch: {leader} and {node.id} in {epoch}"
                is_newest = epoch == self.metadata.leader_epoch
                is_whole = self._held[node.id] == len(self.committed)
                assert not is_newest or is_whole, f"AcknowledgedReadable: not by leader {node.id}"
        behind = [n for n in self.metadata.isr if self._held[n] < len(self.committed)]
        assert not behind, f"IsrHoldsCommitted: {behind} of {self.metadata.isr}"

    def _check_prefix(self, node: Node) -> None:
        """How much of what is committed the node holds; that never shrinks."""
        held = self._held[node.id]
        assert len(node.log) >= held, f"CommittedNeverTruncated: {node.id} at {len(node.log)}"
        while held < len(node.log) and self.committed.get(held) == node.log[held].value:
            held += 1
        self._held[node.id] = held

    def _promise(self, node: Node, high_watermark: int) -> None:
        isr, least = node.state.isr, self.min_insync_replicas
        assert len(isr) >= least, f"MinIsrBeforePromise: {isr} of {node.id}"
        for offset in range(high_watermark):
            value = node.log[offset].value
            promised = self.committed.setdefault(offset, value)
            assert promised == value, f"offset {offset} was {promised}, {node.id} says {value}"

    def later(self, action: Callable[[], None]) -> None:
        """Some time from now, unless it is lost."""
        if self.dice.random() >= self.loss:
            self.pending.append((self.now_ms + self.dice.randrange(60), action))

    def step(self) -> None:
        """One turn: time passes, messages arrive, someone does something."""
        self.now_ms += self.dice.randrange(1, 15)
        due = [entry for entry in self.pending if entry[0] <= self.now_ms]
        for entry in due:
            self.pending.remove(entry)
            entry[1]()
        for node in self.nodes.values():
            if node.is_alive and node.inbox and self.dice.random() < 0.5:
                self._replay(node, node.inbox.popleft())
        node = self.nodes[self.dice.choice(NODES)]
        if not node.is_alive:
            return
        if node.state.is_leader:
            self.dice.choice((self._append, self._append, self._scan))(node)
        else:
            self._fetch(node)

    def _append(self, node: Node) -> None:
        if not node.state.has_enough_replicas:
            return
        self.next_value += 1
        node.log.append(Record(node.state.leader_epoch, self.next_value))
        self.handle(node, LeaderAppended(len(node.log), self.now_ms))

    def _scan(self, node: Node) -> None:
        self.handle(node, IsrScanDue(now_ms=self.now_ms))

    def _fetch(self, node: Node) -> None:
        leader = self.nodes.get(node.state.leader)
        if leader is None or leader is node:
            return
        asked = (node.state.leader_epoch, len(node.log), node.last_epoch(), node.broker_epoch)
        incarnation = node.state
        self.later(lambda: self._serve(leader, node.id, asked, incarnation))

    def _serve(
        self, leader: Node, replica: int, asked: tuple[int, int, int, int], incarnation: object
    ) -> None:
        leader_epoch, offset, last_epoch, broker_epoch = asked
        state = leader.state
        if not leader.is_alive or not state.is_leader or state.leader_epoch != leader_epoch:
            return
        epoch, end = leader.epoch_end(last_epoch) if last_epoch >= 0 else (-1, offset)
        node = self.nodes[replica]
        if last_epoch >= 0 and (epoch < last_epoch or end < offset):
            parting = (offset, last_epoch, epoch, end)
            self.later(lambda: self._truncate(node, leader_epoch, parting, incarnation))
            return
        if offset > len(leader.log):
            return
        event = ReplicaFetched(replica, offset, 0, broker_epoch, self.now_ms)
        self.handle(leader, event)
        records = [replace(r) for r in leader.log[offset : offset + 5]]
        answer = (offset, records, state.high_watermark)
        self.later(lambda: self._receive(node, leader_epoch, answer, incarnation))

    def _is_current(self, node: Node, leader_epoch: int, incarnation: object) -> bool:
        is_same = node.is_alive and node.state is incarnation
        return is_same and node.state.leader_epoch == leader_epoch and not node.state.is_leader

    def _truncate(
        self, node: Node, leader_epoch: int, parting: tuple[int, int, int, int], incarnation: object
    ) -> None:
        """An answer to a request from another position is old, as the fetcher judges, too."""
        *position, epoch, end = parting
        is_current = self._is_current(node, leader_epoch, incarnation)
        if not is_current or position != [len(node.log), node.last_epoch()]:
            return
        own_epoch, own_end = node.epoch_end(epoch)
        target = min(own_end, end) if own_epoch == epoch else own_end
        del node.log[target:]
        self.handle(node, LogTruncated(len(node.log)))

    def _receive(
        self,
        node: Node,
        leader_epoch: int,
        answer: tuple[int, list[Record], int],
        incarnation: object,
    ) -> None:
        offset, records, high_watermark = answer
        if not self._is_current(node, leader_epoch, incarnation) or offset != len(node.log):
            return
        node.log.extend(records)
        self.handle(node, FollowerAppended(len(node.log), high_watermark))

    # The controller ----------------------------------------------------------------------

    def _publish(self, metadata: Metadata) -> None:
        self.metadata = metadata
        for node in self.nodes.values():
            if node.is_alive:
                node.inbox.append(metadata)

    def _replay(self, node: Node, metadata: Metadata) -> None:
        self.handle(
            node,
            EligibleReplicasChanged(broker_epochs=metadata.broker_epochs, now_ms=self.now_ms),
        )
        event = AssignmentChanged(
            leader=metadata.leader,
            leader_epoch=metadata.leader_epoch,
            partition_epoch=metadata.partition_epoch,
            replicas=NODES,
            isr=metadata.isr,
            now_ms=self.now_ms,
        )
        self.handle(node, event)

    def _propose(self, node: Node, proposal: ProposeIsr) -> None:
        """Retried for as long as the state waits, as AlterPartitionManager does."""
        incarnation = node.state

        def retry() -> None:
            if node.is_alive and node.state is incarnation and node.state.proposed is proposal:
                self.later(lambda: self._alter(node, proposal, incarnation))
                self.pending.append((self.now_ms + 100, retry))

        retry()

    def _alter(self, node: Node, proposal: ProposeIsr, incarnation: object) -> None:
        now = self.metadata
        if (proposal.leader_epoch, proposal.partition_epoch) != (
            now.leader_epoch,
            now.partition_epoch,
        ):
            return
        is_eligible = all(
            now.broker_epochs.get(r) == proposal.broker_epochs[r] for r in proposal.isr
        )
        answer: Event = IsrRejected(partition_epoch=proposal.partition_epoch, now_ms=self.now_ms)
        if is_eligible:
            epoch = now.partition_epoch + 1
            self._publish(replace(now, isr=proposal.isr, partition_epoch=epoch))
            answer = IsrCommitted(
                isr=proposal.isr,
                leader_epoch=now.leader_epoch,
                partition_epoch=epoch,
                now_ms=self.now_ms,
            )

        def respond() -> None:
            if node.is_alive and node.state is incarnation:
                self.handle(node, answer)

        self.later(respond)

    def _elect(self, metadata: Metadata) -> Metadata:
        """The first live member of the ISR leads; a leader that lives stays."""
        live = metadata.broker_epochs
        leader = metadata.leader if metadata.leader in live else -1
        if leader == -1:
            leader = next((n for n in NODES if n in live and n in metadata.isr), -1)
        isr = tuple(n for n in metadata.isr if n in live) or metadata.isr
        if leader == metadata.leader and isr == metadata.isr:
            return metadata
        epoch = metadata.leader_epoch + (leader != metadata.leader)
        return replace(
            metadata,
            leader=leader,
            isr=isr,
            leader_epoch=epoch,
            partition_epoch=metadata.partition_epoch + 1,
        )

    def kill(self, node_id: int) -> None:
        """kill -9; the controller fences the broker."""
        node = self.nodes[node_id]
        node.is_alive = False
        node.inbox.clear()
        epochs = {n: e for n, e in self.metadata.broker_epochs.items() if n != node_id}
        self._publish(self._elect(replace(self.metadata, broker_epochs=epochs)))

    def restart(self, node_id: int) -> None:
        """Back with its log, an older high watermark, and a new broker epoch."""
        node = self.nodes[node_id]
        checkpoint = self.dice.randint(0, node.state.high_watermark)
        node.state = self._fresh_state(node_id, len(node.log), checkpoint)
        node.broker_epoch += 1
        node.is_alive = True
        epochs = {**self.metadata.broker_epochs, node_id: node.broker_epoch}
        self._publish(self._elect(replace(self.metadata, broker_epochs=epochs)))

    def heal(self) -> None:
        """Everyone lives and nothing is lost; run until all agree."""
        self.loss = 0.0
        for node in self.nodes.values():
            if not node.is_alive:
                self.restart(node.id)
        for _ in range(4000):
            self.step()
            if set(self.metadata.isr) == set(NODES) and self._all_equal():
                return
        story = [(n.id, len(n.log), n.state.story()) for n in self.nodes.values()]
        raise AssertionError(f"no agreement: {self.metadata} {story}")

    def story(self) -> str:
        """The last events, by time and node."""
        return "\n".join(f"{at_ms} ms, node {node}: {event}" for at_ms, node, event in self.told)

    def _all_equal(self) -> bool:
        logs = [[(r.epoch, r.value) for r in node.log] for node in self.nodes.values()]
        return logs[0] == logs[1] == logs[2]
