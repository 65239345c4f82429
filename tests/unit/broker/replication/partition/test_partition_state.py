"""The rules of one partition's role, each by itself."""

from typing import Any

import pytest

from broker.replication.errors import IllegalTransitionError
from broker.replication.partition.effects import (
    BecameLeader,
    Effect,
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
from broker.replication.partition.partition_state import PartitionState, Role

LAG_MS = 1000
EPOCHS = {1: 11, 2: 12, 3: 13}


class Driver:
    """Node 1's state, checked after every event."""

    def __init__(self, *, end: int = 0, high_watermark: int = 0) -> None:
        self.state = PartitionState(
            node_id=1,
            log_end_offset=end,
            log_start_offset=0,
            high_watermark=high_watermark,
            lag_time_ms_max=LAG_MS,
        )
        self.now_ms = 0
        self.partition_epoch = -1
        self.handle(EligibleReplicasChanged(broker_epochs=EPOCHS, now_ms=0))

    def handle(self, event: Event) -> list[Effect]:
        effects = self.state.handle(event)
        self.state.check_invariants()
        return list(effects)

    def assign(
        self, leader: int, *, epoch: int = 0, isr: tuple[int, ...] = (1, 2, 3)
    ) -> list[Effect]:
        self.partition_epoch += 1
        return self.handle(
            AssignmentChanged(
                leader=leader,
                leader_epoch=epoch,
                partition_epoch=self.partition_epoch,
                replicas=(1, 2, 3),
                isr=isr,
                now_ms=self.now_ms,
            )
        )

    def append(self, end: int) -> list[Effect]:
        return self.handle(LeaderAppended(end, self.now_ms))

    def fetch(self, replica: int, offset: int, *, start: int = 0, **other: Any) -> list[Effect]:
        epoch = other.get("epoch", EPOCHS[replica])
        return self.handle(ReplicaFetched(replica, offset, start, epoch, self.now_ms))

    def scan(self) -> list[Effect]:
        return self.handle(IsrScanDue(now_ms=self.now_ms))

    def commit(self, *isr: int) -> list[Effect]:
        self.partition_epoch += 1
        return self.handle(
            IsrCommitted(
                isr=isr,
                leader_epoch=self.state.leader_epoch,
                partition_epoch=self.partition_epoch,
                now_ms=self.now_ms,
            )
        )


@pytest.fixture
def leader() -> Driver:
    """Leads replicas 1, 2, 3, all in sync, with an empty log."""
    driver = Driver()
    driver.assign(1)
    for replica in (2, 3):
        driver.fetch(replica, 0)
    return driver


def proposed(effects: list[Effect]) -> tuple[int, ...] | None:
    """The ISR that the effects ask for."""
    return next((e.isr for e in effects if isinstance(e, ProposeIsr)), None)


def test_roles_follow_the_assignment() -> None:
    driver = Driver(end=5, high_watermark=3)
    assert driver.assign(2) == [FollowLeader(leader=2, leader_epoch=0)]
    assert driver.assign(2, isr=(1, 2)) == [], "the same leader and epoch: just go on"
    assert driver.assign(2, epoch=1) == [FollowLeader(leader=2, leader_epoch=1)]
    assert driver.assign(1, epoch=2) == [
        StopFollowing(),
        BecameLeader(leader_epoch=2, start_offset=5),
    ]
    assert driver.assign(3, epoch=3) == [
        Resigned(leader=3),
        FollowLeader(leader=3, leader_epoch=3),
    ]
    assert driver.assign(-1, epoch=4) == [StopFollowing()]
    assert driver.state.role is Role.OFFLINE
    assert driver.state.high_watermark == 3


def test_old_metadata_is_ignored(leader: Driver) -> None:
    leader.assign(1, epoch=5)
    stale = AssignmentChanged(
        leader=2, leader_epoch=4, partition_epoch=99, replicas=(1, 2, 3), isr=(2,), now_ms=0
    )
    assert leader.handle(stale) == []
    assert leader.state.is_leader


def test_the_high_watermark_is_the_lowest_end_of_the_isr(leader: Driver) -> None:
    assert leader.append(10) == []
    assert leader.fetch(2, 10) == []
    assert leader.fetch(3, 4) == [HighWatermarkAdvanced(4)]
    assert leader.fetch(3, 10) == [HighWatermarkAdvanced(10)]
    assert leader.fetch(3, 10) == []


def test_alone_the_leader_commits_at_once() -> None:
    driver = Driver()
    driver.assign(1, isr=(1,))
    assert driver.append(3) == [HighWatermarkAdvanced(3)]


def test_the_high_watermark_stands_below_min_insync_replicas(leader: Driver) -> None:
    leader.handle(MinInsyncReplicasChanged(min_insync_replicas=2, now_ms=0))
    leader.assign(1, isr=(1,))
    assert leader.append(3) == []
    assert not leader.state.has_enough_replicas
    lowered = leader.handle(MinInsyncReplicasChanged(min_insync_replicas=1, now_ms=LAG_MS + 1))
    assert lowered == [HighWatermarkAdvanced(3)]


def test_min_insync_replicas_beyond_the_assignment_means_all_of_it(leader: Driver) -> None:
    leader.handle(MinInsyncReplicasChanged(min_insync_replicas=9, now_ms=0))
    assert leader.state.has_enough_replicas


def test_a_lagging_follower_leaves(leader: Driver) -> None:
    leader.append(5)
    leader.fetch(2, 5)
    leader.now_ms = LAG_MS
    assert leader.scan() == []
    leader.now_ms = LAG_MS + 1
    effects = leader.scan()
    assert proposed(effects) == (1, 2)
    assert leader.state.high_watermark == 0, "until the controller agrees"
    assert leader.scan() == [], "one proposal at a time"
    assert leader.commit(1, 2) == [HighWatermarkAdvanced(5)]


def test_an_idle_follower_at_the_end_never_lags(leader: Driver) -> None:
    leader.append(5)
    for replica in (2, 3):
        leader.fetch(replica, 5)
    leader.now_ms = 100 * LAG_MS
    assert leader.scan() == []


def test_an_append_after_a_silence_finds_idle_followers_in_sync(leader: Driver) -> None:
    """Their fetch sessions did not name the partition for all that time."""
    leader.now_ms = 60 * LAG_MS
    leader.append(1)
    leader.now_ms += 1
    assert leader.scan() == []
    leader.fetch(2, 1)
    leader.now_ms += LAG_MS - 1
    assert leader.scan() == []
    leader.now_ms += 1
    assert proposed(leader.scan()) == (1, 2), "3 is cut off: its time ran from the append on"


def test_appends_one_after_the_other_give_a_lost_follower_no_more_time(leader: Driver) -> None:
    leader.now_ms = 60 * LAG_MS
    for end in range(1, 12):
        leader.append(end)
        leader.fetch(2, end)
        leader.now_ms += LAG_MS // 10
    assert proposed(leader.scan()) == (1, 2)


def test_a_follower_back_at_the_end_during_a_shrink_joins_with_its_answer(leader: Driver) -> None:
    leader.append(5)
    leader.fetch(2, 5)
    leader.now_ms = LAG_MS + 1
    assert proposed(leader.scan()) == (1, 2)
    assert proposed(leader.fetch(3, 5)) is None, "one proposal at a time"
    assert proposed(leader.commit(1, 2)) == (1, 2, 3)


def test_a_lost_follower_at_the_high_watermark_stays_out_until_it_fetches(leader: Driver) -> None:
    """Below min.insync.replicas the high watermark stands, and so never passes it."""
    leader.handle(MinInsyncReplicasChanged(min_insync_replicas=3, now_ms=0))
    leader.append(5)
    leader.fetch(2, 5)
    leader.now_ms = LAG_MS + 1
    assert proposed(leader.scan()) == (1, 2)
    assert proposed(leader.commit(1, 2)) is None
    assert proposed(leader.scan()) is None
    assert proposed(leader.fetch(3, 0)) == (1, 2, 3)


def test_a_steady_follower_one_fetch_behind_is_caught_up(leader: Driver) -> None:
    for turn in range(1, 40):
        leader.now_ms = turn * 100
        leader.append(turn)
        leader.fetch(2, turn)
        leader.fetch(3, turn - 1)
        assert proposed(leader.scan()) is None


def test_a_follower_joins_at_the_high_watermark(leader: Driver) -> None:
    leader.assign(1, isr=(1, 2))
    leader.append(5)
    leader.now_ms = LAG_MS + 1
    leader.fetch(2, 5)
    assert leader.state.high_watermark == 5
    assert proposed(leader.fetch(3, 4)) is None
    assert proposed(leader.fetch(3, 5)) == (1, 2, 3)


def test_a_follower_joins_not_before_the_start_of_the_epoch() -> None:
    driver = Driver(end=10, high_watermark=4)
    driver.assign(1, epoch=3, isr=(1,))
    driver.handle(MinInsyncReplicasChanged(min_insync_replicas=2, now_ms=0))
    assert driver.state.epoch_start_offset == 10
    assert proposed(driver.fetch(2, 9)) is None
    assert proposed(driver.fetch(2, 10)) == (1, 2)


def test_a_follower_of_an_old_broker_epoch_may_not_join(leader: Driver) -> None:
    leader.assign(1, isr=(1, 2))
    assert proposed(leader.fetch(3, 0, epoch=EPOCHS[3] - 1)) is None
    assert proposed(leader.fetch(3, 0)) == (1, 2, 3)


def test_a_follower_that_idles_at_the_end_joins_when_it_is_unfenced(leader: Driver) -> None:
    leader.assign(1, isr=(1, 2))
    leader.handle(EligibleReplicasChanged(broker_epochs={1: 11, 2: 12}, now_ms=0))
    assert proposed(leader.fetch(3, 0)) is None
    event = EligibleReplicasChanged(broker_epochs=EPOCHS, now_ms=1)
    assert proposed(leader.handle(event)) == (1, 2, 3)


def test_members_being_added_hold_the_high_watermark(leader: Driver) -> None:
    """The controller may have accepted them already, and may elect them."""
    leader.assign(1, isr=(1, 2))
    leader.fetch(2, 0)
    leader.fetch(3, 0)
    leader.append(5)
    leader.now_ms = 10 * LAG_MS
    assert leader.fetch(2, 5) == []
    assert leader.state.maximal_isr == (1, 2, 3)
    rejected = IsrRejected(partition_epoch=leader.partition_epoch, now_ms=leader.now_ms)
    assert leader.handle(rejected) == [HighWatermarkAdvanced(5)]


def test_a_caught_up_replica_about_to_join_holds_the_high_watermark(leader: Driver) -> None:
    leader.assign(1, isr=(1, 2))
    leader.append(5)
    leader.fetch(3, 5)
    leader.handle(IsrRejected(partition_epoch=leader.partition_epoch, now_ms=0))
    leader.append(6)
    assert leader.fetch(2, 6) == [HighWatermarkAdvanced(5)]
    leader.now_ms = LAG_MS + 1
    assert leader.fetch(2, 6) == [HighWatermarkAdvanced(6)], "it has had its time"


def test_rejections_of_older_proposals_are_ignored(leader: Driver) -> None:
    leader.assign(1, isr=(1, 2))
    leader.fetch(3, 0)
    leader.handle(IsrRejected(partition_epoch=leader.partition_epoch - 1, now_ms=0))
    assert leader.state.proposed is not None


def test_newer_metadata_ends_a_proposal(leader: Driver) -> None:
    leader.assign(1, isr=(1, 2))
    leader.fetch(3, 0)
    assert leader.state.proposed is not None
    leader.assign(1, isr=(1, 2, 3))
    assert leader.state.proposed is None
    stale = IsrCommitted(isr=(1,), leader_epoch=0, partition_epoch=1, now_ms=0)
    assert leader.handle(stale) == []
    assert leader.state.isr == (1, 2, 3)


def test_an_answer_that_metadata_overtook_does_not_end_the_next_proposal(leader: Driver) -> None:
    leader.assign(1, isr=(1,))
    leader.append(5)
    leader.fetch(2, 5)
    leader.assign(1, isr=(1, 2))
    assert proposed(leader.fetch(3, 5)) == (1, 2, 3)
    leader.append(6)
    leader.now_ms = LAG_MS + 1
    late = IsrCommitted(
        isr=(1, 2),
        leader_epoch=leader.state.leader_epoch,
        partition_epoch=leader.partition_epoch,
        now_ms=leader.now_ms,
    )
    assert leader.handle(late) == []
    assert leader.fetch(2, 6) == [], "3 may be in sync already, and lacks the last record"


def test_a_follower_takes_the_leaders_high_watermark_as_far_as_its_log_goes() -> None:
    driver = Driver()
    driver.assign(2)
    assert driver.handle(FollowerAppended(5, 9)) == [HighWatermarkAdvanced(5)]
    assert driver.handle(FollowerAppended(7, 3)) == []
    assert driver.handle(FollowerAppended(8, 6)) == [HighWatermarkAdvanced(6)]
    driver.handle(LogTruncated(4))
    assert (driver.state.log_end_offset, driver.state.high_watermark) == (4, 4)


def test_the_low_watermark_is_the_latest_start_of_all_live_replicas(leader: Driver) -> None:
    leader.append(5)
    leader.fetch(2, 5)
    leader.fetch(3, 5)
    assert leader.handle(LogStartMoved(4)) == []
    assert leader.fetch(2, 5, start=4) == []
    assert leader.fetch(3, 5, start=4) == [LowWatermarkAdvanced(4)]


@pytest.mark.parametrize(
    "event", [LeaderAppended(1, 0), ReplicaFetched(2, 0, 0, 12, 0), IsrScanDue(now_ms=0)]
)
def test_followers_refuse_what_is_for_leaders(event: Event) -> None:
    driver = Driver()
    driver.assign(2)
    with pytest.raises(IllegalTransitionError, match="follower leader=2"):
        driver.handle(event)


def test_leaders_refuse_what_is_for_followers(leader: Driver) -> None:
    with pytest.raises(IllegalTransitionError, match="leader=1"):
        leader.handle(FollowerAppended(1, 1))
    leader.append(5)
    with pytest.raises(IllegalTransitionError, match="shrank"):
        leader.append(4)
