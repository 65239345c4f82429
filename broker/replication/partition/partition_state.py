"""The role of one replica on this node: pure `handle(event) -> effects`.

Transitions (any event not listed for a role raises IllegalTransitionError with the story):

    from       event                            to         effects
    any        AssignmentChanged, we lead       LEADER     StopFollowing, BecameLeader
    any        AssignmentChanged, other leads   FOLLOWER   Resigned if we led, FollowLeader
    any        AssignmentChanged, nobody leads  OFFLINE    Resigned if we led, StopFollowing
    LEADER     LeaderAppended                   LEADER     HighWatermarkAdvanced if ISR is just us
    LEADER     ReplicaFetched                   LEADER     HighWatermarkAdvanced, ProposeIsr
    LEADER     IsrScanDue                       LEADER     ProposeIsr (shrink)
    LEADER     IsrCommitted                     LEADER     HighWatermarkAdvanced, ProposeIsr
    LEADER     IsrRejected                      LEADER     HighWatermarkAdvanced
    FOLLOWER   FollowerAppended, LogTruncated   FOLLOWER   HighWatermarkAdvanced

Rules, named after Kafka's Partition.scala:
- high watermark = min end offset over the *maximal* ISR (ISR plus members being added), also
  over eligible replicas that are caught up and about to join; it never goes back on a leader and
  does not move while the ISR is below min.insync.replicas.
- a follower leaves the ISR when it was last caught up more than replica.lag.time.max.ms ago; one
  whose end offset equals the leader's never lags, so an append finds it caught up until then.
- it joins when its end offset reaches the high watermark and the start of the leader's epoch, it
  is eligible, and it fetched under its current broker epoch.
- one ISR proposal is in flight at a time; only the controller's answer or newer metadata ends it.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from broker.replication.errors import IllegalTransitionError
from broker.replication.partition.effects import (
    NOTHING,
    BecameLeader,
    Effects,
    FollowLeader,
    HighWatermarkAdvanced,
    LowWatermarkAdvanced,
    ProposeIsr,
    Resigned,
    StopFollowing,
)
from broker.replication.partition.events import (
    AssignmentChanged,
    EligibleReplicasChanged,
    Event,
    FollowerAppended,
    IsrCommitted,
    IsrRejected,
    IsrScanDue,
    LeaderAppended,
    LogStartMoved,
    LogTruncated,
    MinInsyncReplicasChanged,
    ReplicaFetched,
)
from broker.replication.partition.follower_progress import FollowerProgress

NO_LEADER = -1


class Role(Enum):
    """This node's role in the partition."""

    OFFLINE = "offline"
    FOLLOWER = "follower"
    LEADER = "leader"


class PartitionState:
    """State of one replica; see the module for its rules."""

    def __init__(
        self,
        *,
        node_id: int,
        log_end_offset: int,
        log_start_offset: int,
        high_watermark: int,
        lag_time_ms_max: int,
    ) -> None:
        self.node_id = node_id
        self.lag_time_ms_max = lag_time_ms_max
        self.role = Role.OFFLINE
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.proposed: ProposeIsr | None = None
        self.log_end_offset = log_end_offset
        self.log_start_offset = log_start_offset
        self.high_watermark = min(max(high_watermark, log_start_offset), log_end_offset)
        self.epoch_start_offset = -1
        self.min_insync_replicas = 1
        self.followers: dict[int, FollowerProgress] = {}
        self.broker_epochs: Mapping[int, int] = {}

    def handle(self, event: Event) -> Effects:
        """Take one event; the state is consistent afterwards."""
        roles, handler = _HANDLERS[type(event)]
        if self.role not in roles:
            raise IllegalTransitionError(f"{event} as {self.story()}")
        return handler(self, event)

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the partition."""
        return self.role is Role.LEADER

    @property
    def has_enough_replicas(self) -> bool:
        """Whether acks=all may be promised: the ISR has min.insync.replicas members."""
        return len(self.isr) >= min(self.min_insync_replicas, len(self.replicas))

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """Everyone who may count as in sync once proposals are answered."""
        if self.proposed is None:
            return self.isr
        return self.isr + tuple(r for r in self.proposed.isr if r not in self.isr)

    def waits_for(self, replica: int, now_ms: int) -> bool:
        """Whether producers with acks=all wait for a follower: it counts as in sync, or has been at
        the leader's end and is about to."""
        if replica in self.maximal_isr:
            return True
        follower = self.followers.get(replica)
        return follower is not None and _is_about_to_join(self, replica, follower, now_ms)

    @property
    def low_watermark(self) -> int:
        """The latest log start offset over eligible replicas; -1 while one is unknown."""
        starts = [self.log_start_offset]
        starts += (f.log_start_offset for r, f in self.followers.items() if r in self.broker_epochs)
        return min(starts)

    @property
    def needs_scan(self) -> bool:
        """Whether an ISR scan can change anything: uncommitted records, or replicas outside."""
        return self.role is Role.LEADER and (
            self.high_watermark < self.log_end_offset or len(self.isr) < len(self.replicas)
        )

    def story(self) -> str:
        """Everything, for an exception."""
        return (
            f"{self.role.value} leader={self.leader} epoch={self.leader_epoch}/"
            f"{self.partition_epoch} replicas={self.replicas} isr={self.isr} "
            f"proposed={self.proposed} start={self.log_start_offset} hw={self.high_watermark} "
            f"end={self.log_end_offset} followers={self.followers}"
        )

    def check_invariants(self) -> None:
        """Checks what holds after every event; run by tests and simulations."""
        assert 0 <= self.log_start_offset <= self.log_end_offset, self.story()
        assert self.log_start_offset <= self.high_watermark <= self.log_end_offset, self.story()
        assert set(self.isr) <= set(self.replicas), self.story()
        assert (self.role is Role.LEADER) == (self.leader == self.node_id), self.story()
        if self.role is not Role.LEADER:
            assert self.proposed is None, self.story()
            assert not self.followers, self.story()
            return
        assert self.node_id in self.isr, self.story()
        assert set(self.followers) == set(self.replicas) - {self.node_id}, self.story()
        if self.proposed is not None:
            assert set(self.proposed.isr) <= set(self.replicas), self.story()
            assert self.proposed.leader_epoch == self.leader_epoch, self.story()


def _assignment_changed(state: PartitionState, event: AssignmentChanged) -> Effects:
    if event.leader_epoch < state.leader_epoch or event.partition_epoch < state.partition_epoch:
        return NOTHING
    was_leader = state.role is Role.LEADER
    is_new_epoch = event.leader_epoch != state.leader_epoch
    followed = state.leader if state.role is Role.FOLLOWER else NO_LEADER
    if event.partition_epoch > state.partition_epoch or is_new_epoch:
        state.proposed = None
    state.leader, state.leader_epoch = event.leader, event.leader_epoch
    state.partition_epoch = event.partition_epoch
    state.replicas, state.isr = event.replicas, event.isr
    if event.leader == state.node_id:
        return _lead(state, event, is_new_epoch or not was_leader)
    state.followers = {}
    resigned: Effects = (Resigned(leader=event.leader),) if was_leader else NOTHING
    if event.leader == NO_LEADER:
        state.role = Role.OFFLINE
        return (*resigned, StopFollowing())
    state.role = Role.FOLLOWER
    if followed == event.leader and not is_new_epoch:
        return resigned
    return (*resigned, FollowLeader(leader=event.leader, leader_epoch=event.leader_epoch))


def _lead(state: PartitionState, event: AssignmentChanged, is_new: bool) -> Effects:
    state.role = Role.LEADER
    kept = {} if is_new else state.followers
    state.followers = {
        replica: kept.get(replica)
        or FollowerProgress(last_caught_up_ms=event.now_ms if replica in event.isr else -1)
        for replica in event.replicas
        if replica != state.node_id
    }
    if not is_new:
        return _maybe_advance_high_watermark(state, event.now_ms)
    state.epoch_start_offset = state.log_end_offset
    became = BecameLeader(leader_epoch=state.leader_epoch, start_offset=state.log_end_offset)
    return (StopFollowing(), became, *_maybe_advance_high_watermark(state, event.now_ms))


def _eligible_replicas_changed(state: PartitionState, event: EligibleReplicasChanged) -> Effects:
    state.broker_epochs = event.broker_epochs
    if not state.is_leader:
        return NOTHING
    return _maybe_expand_and_advance(state, event.now_ms)


def _min_insync_replicas_changed(state: PartitionState, event: MinInsyncReplicasChanged) -> Effects:
    state.min_insync_replicas = event.min_insync_replicas
    return _maybe_advance_high_watermark(state, event.now_ms) if state.is_leader else NOTHING


def _leader_appended(state: PartitionState, event: LeaderAppended) -> Effects:
    if event.log_end_offset < state.log_end_offset:
        raise IllegalTransitionError(f"a leader's log shrank to {event}: {state.story()}")
    for follower in state.followers.values():
        follower.leader_appended(state.log_end_offset, event.now_ms)
    state.log_end_offset = event.log_end_offset
    if len(state.isr) > 1:
        return NOTHING  # a follower that has not got these records yet holds it back
    return _maybe_advance_high_watermark(state, event.now_ms)


def _replica_fetched(state: PartitionState, event: ReplicaFetched) -> Effects:
    follower = state.followers.get(event.replica)
    if follower is None:
        return NOTHING
    has_new_start = event.log_start_offset != follower.log_start_offset
    low_before = state.low_watermark if has_new_start else 0
    follower.fetched(event, state.log_end_offset)
    effects = (
        *_maybe_expand_isr(state, event.replica, follower),
        *_maybe_advance_high_watermark(state, event.now_ms),
    )
    if has_new_start and state.low_watermark > low_before:
        return (*effects, LowWatermarkAdvanced(state.low_watermark))
    return effects


def _isr_scan_due(state: PartitionState, event: IsrScanDue) -> Effects:
    if state.proposed is not None:
        return _maybe_advance_high_watermark(state, event.now_ms)
    lagging = {
        replica
        for replica, follower in state.followers.items()
        if replica in state.isr and not _is_caught_up(state, follower, event.now_ms)
    }
    if lagging:
        return _propose(state, tuple(r for r in state.isr if r not in lagging))
    return _maybe_expand_and_advance(state, event.now_ms)


def _isr_committed(state: PartitionState, event: IsrCommitted) -> Effects:
    is_stale = event.partition_epoch < state.partition_epoch
    if is_stale or event.leader_epoch != state.leader_epoch or not state.is_leader:
        return NOTHING
    state.isr, state.partition_epoch = event.isr, event.partition_epoch
    if state.proposed is not None and state.proposed.partition_epoch < event.partition_epoch:
        state.proposed = None  # else metadata overtook this answer, and the proposal is the next
    return _maybe_expand_and_advance(state, event.now_ms)


def _isr_rejected(state: PartitionState, event: IsrRejected) -> Effects:
    if state.proposed is None or state.proposed.partition_epoch != event.partition_epoch:
        return NOTHING
    state.proposed = None
    return _maybe_advance_high_watermark(state, event.now_ms)


def _follower_appended(state: PartitionState, event: FollowerAppended) -> Effects:
    state.log_end_offset = event.log_end_offset
    high_watermark = min(event.leader_high_watermark, state.log_end_offset)
    if high_watermark <= state.high_watermark:
        return NOTHING
    state.high_watermark = high_watermark
    return (HighWatermarkAdvanced(high_watermark),)


def _log_truncated(state: PartitionState, event: LogTruncated) -> Effects:
    state.log_end_offset = event.log_end_offset
    state.high_watermark = min(state.high_watermark, event.log_end_offset)
    state.log_start_offset = min(state.log_start_offset, event.log_end_offset)
    return NOTHING


def _log_start_moved(state: PartitionState, event: LogStartMoved) -> Effects:
    low_before = state.low_watermark
    state.log_start_offset = event.log_start_offset
    state.log_end_offset = max(state.log_end_offset, event.log_start_offset)
    state.high_watermark = max(state.high_watermark, event.log_start_offset)
    low = state.low_watermark
    return (LowWatermarkAdvanced(low),) if state.is_leader and low > low_before else NOTHING


def _is_caught_up(state: PartitionState, follower: FollowerProgress, now_ms: int) -> bool:
    return follower.is_caught_up(state.log_end_offset, now_ms, state.lag_time_ms_max)


def _may_join(state: PartitionState, replica: int, follower: FollowerProgress) -> bool:
    return state.broker_epochs.get(replica, -2) == follower.broker_epoch


def _maybe_expand(state: PartitionState, now_ms: int) -> Effects:
    """Look at the replicas outside the ISR that are caught up: one that idles at the end does not
    fetch anew, and one that arrived while a proposal was in flight was not asked for. Others ask
    by their fetches: one that is cut off just above the high watermark would come and go.
    """
    for replica, follower in state.followers.items():
        if not _is_caught_up(state, follower, now_ms):
            continue
        effects = _maybe_expand_isr(state, replica, follower)
        if effects:
            return effects
    return NOTHING


def _maybe_expand_and_advance(state: PartitionState, now_ms: int) -> Effects:
    return (*_maybe_expand(state, now_ms), *_maybe_advance_high_watermark(state, now_ms))


def _maybe_expand_isr(state: PartitionState, replica: int, follower: FollowerProgress) -> Effects:
    if state.proposed is not None or replica in state.isr:
        return NOTHING
    end = follower.log_end_offset
    if end < state.high_watermark or end < state.epoch_start_offset:
        return NOTHING
    if not _may_join(state, replica, follower):
        return NOTHING
    return _propose(state, (*state.isr, replica))


def _propose(state: PartitionState, isr: tuple[int, ...]) -> Effects:
    epochs = {r: f.broker_epoch for r, f in state.followers.items() if r in isr}
    epochs[state.node_id] = state.broker_epochs.get(state.node_id, -1)
    state.proposed = ProposeIsr(
        isr=isr,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        broker_epochs=epochs,
    )
    return (state.proposed,)


def _maybe_advance_high_watermark(state: PartitionState, now_ms: int) -> Effects:
    if not state.has_enough_replicas:
        return NOTHING
    lowest = state.log_end_offset
    for replica, follower in state.followers.items():
        end = follower.log_end_offset
        if end < lowest and state.waits_for(replica, now_ms):
            lowest = end
    if lowest <= state.high_watermark:
        return NOTHING
    state.high_watermark = lowest
    return (HighWatermarkAdvanced(lowest),)


def _is_about_to_join(
    state: PartitionState, replica: int, follower: FollowerProgress, now_ms: int
) -> bool:
    return _may_join(state, replica, follower) and _is_caught_up(state, follower, now_ms)


_Handler = Callable[[PartitionState, Any], Effects]
_ANY = frozenset(Role)
_LEADER = frozenset({Role.LEADER})
_NOT_LEADER = frozenset({Role.FOLLOWER, Role.OFFLINE})


_HANDLERS: dict[type[Any], tuple[frozenset[Role], _Handler]] = {
    AssignmentChanged: (_ANY, _assignment_changed),
    EligibleReplicasChanged: (_ANY, _eligible_replicas_changed),
    MinInsyncReplicasChanged: (_ANY, _min_insync_replicas_changed),
    LeaderAppended: (_LEADER, _leader_appended),
    ReplicaFetched: (_LEADER, _replica_fetched),
    IsrScanDue: (_LEADER, _isr_scan_due),
    IsrCommitted: (_ANY, _isr_committed),
    IsrRejected: (_ANY, _isr_rejected),
    FollowerAppended: (_NOT_LEADER, _follower_appended),
    LogTruncated: (_NOT_LEADER, _log_truncated),
    LogStartMoved: (_ANY, _log_start_moved),
}
