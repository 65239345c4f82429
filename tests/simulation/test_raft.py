"""The quorum's core in a simulated cluster; every failure names its seed."""

import pytest

from broker.raft.errors import CommittedTruncationError, IllegalTransitionError
from broker.raft.states.leader import Leader
from tests.simulation.raft_cluster import Cluster
from tests.simulation.raft_log import MemoryLog

SEEDS = range(6)
CHAOS_SEEDS = range(8)
MANY_SEEDS = range(1_000, 1_200)
CHAOS_MS = 40_000
STEP_MS = 250


def commits(cluster: Cluster) -> bool:
    """Append and look whether anything new is acknowledged."""
    before = len(cluster.acknowledged)
    cluster.append()
    cluster.run(cluster.now_ms + 100)
    return len(cluster.acknowledged) > before


def assert_converges(cluster: Cluster) -> None:
    """With the network whole and all nodes up, the cluster commits and all logs agree."""
    cluster.run_until(lambda: commits(cluster), within_ms=10_000)
    cluster.run(cluster.now_ms + 3_000)
    values = [entry.value for entry in cluster.committed if entry.value is not None]
    assert cluster.acknowledged <= set(values)
    logs = [node.log.entries for node in cluster.nodes.values()]
    assert all(log[: len(cluster.committed)] == cluster.committed for log in logs)


def holds_all(cluster: Cluster, log: MemoryLog) -> bool:
    """Whether a log has everything that is committed."""
    return log.entries[: len(cluster.committed)] == cluster.committed


@pytest.mark.parametrize("voters_count", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_initial_leader_is_elected_within_half_a_second(seed: int, voters_count: int) -> None:
    cluster = Cluster(seed, voters_count)
    cluster.start_all()
    cluster.run_until(lambda: cluster.leader() is not None, within_ms=500)
    assert_converges(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_leader_is_replaced_within_a_second(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.start_all()
    cluster.run_until(lambda: commits(cluster), within_ms=2_000)
    killed = cluster.leader()
    assert killed is not None
    cluster.crash(killed)
    cluster.run_until(lambda: cluster.leader() is not None, within_ms=1_000)
    cluster.run_until(lambda: commits(cluster), within_ms=500)
    cluster.start(killed)
    assert_converges(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_frozen_leader_is_replaced_though_its_port_answers(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.start_all()
    cluster.run_until(lambda: commits(cluster), within_ms=2_000)
    frozen = cluster.leader()
    assert frozen is not None
    cluster.cut = {frozenset((frozen, other)) for other in cluster.nodes if other != frozen}
    cluster.run_until(lambda: cluster.leader() not in (None, frozen), within_ms=5_000)
    cluster.run(cluster.now_ms + 4_000)
    core = cluster.nodes[frozen].core
    assert core is not None
    assert not isinstance(core.state, Leader), "a leader without a majority resigns"
    cluster.cut = set()
    assert_converges(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_leader_that_stops_hands_over_at_once(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.start_all()
    cluster.run_until(lambda: commits(cluster), within_ms=2_000)
    leader = cluster.leader()
    assert leader is not None
    cluster.resign(leader)
    took_ms = cluster.run_until(lambda: cluster.leader() not in (None, leader), within_ms=1_000)
    assert took_ms <= 700
    assert_converges(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_returning_voter_does_not_disturb_the_leader(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.start_all()
    cluster.run_until(lambda: commits(cluster), within_ms=2_000)
    leader = cluster.leader()
    assert leader is not None
    follower = next(id_ for id_ in cluster.nodes if id_ != leader)
    cluster.crash(follower)
    cluster.run(cluster.now_ms + 5_000)
    epochs = dict(cluster.leaders)
    cluster.start(follower)
    assert_converges(cluster)
    assert cluster.leaders == epochs, "no further election"


@pytest.mark.parametrize("is_other_lagging", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_voter_whose_disk_lost_what_is_committed_does_not_lead_without_it(
    seed: int, is_other_lagging: bool
) -> None:
    """With another one that lost the same, or that was down and never had it."""
    cluster = Cluster(seed)
    cluster.start_all()
    cluster.run_until(lambda: commits(cluster), within_ms=5_000)
    cluster.run(cluster.now_ms + 1_000)
    whole = cluster.leader()
    damaged, other = [id_ for id_ in cluster.nodes if id_ != whole]
    kept = cluster.nodes[damaged].log.end_offset
    if is_other_lagging:
        cluster.crash(other)
    for _ in range(5):
        cluster.run_until(lambda: commits(cluster), within_ms=5_000)
    cluster.run(cluster.now_ms + 1_000)
    for node_id, node in cluster.nodes.items():
        if node.core is not None:
            cluster.crash(node_id)
            if node_id != whole:
                node.log.lose(kept)
    cluster.start(damaged)
    cluster.start(other)
    cluster.run(cluster.now_ms + 5_000)
    assert cluster.leader() is None, "the two are a majority, and neither has the records"
    assert whole is not None
    cluster.start(whole)
    assert_converges(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_voter_that_lags_behind_the_logs_start_gets_the_snapshot(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.start_all()
    cluster.run_until(lambda: commits(cluster), within_ms=2_000)
    follower = next(id_ for id_ in cluster.nodes if id_ != cluster.leader())
    cluster.crash(follower)
    for _ in range(2):
        for _ in range(5):
            cluster.run_until(lambda: commits(cluster), within_ms=5_000)
        for node_id in cluster.nodes:
            cluster.snapshot(node_id)
    leader = cluster.leader()
    assert leader is not None
    assert cluster.nodes[leader].log.start_offset > cluster.nodes[follower].log.end_offset
    cluster.start(follower)
    assert_converges(cluster)
    log = cluster.nodes[follower].log
    assert log.installed_count == 1
    assert log.start_offset > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_never_committed_does_not_hide_below_a_snapshots_end(seed: int) -> None:
    """A cut-off leader has records of its own where the others have deleted theirs."""
    cluster = Cluster(seed)
    cluster.start_all()
    cluster.run_until(lambda: commits(cluster), within_ms=2_000)
    stale = cluster.leader()
    assert stale is not None
    cluster.cut = {frozenset((stale, other)) for other in cluster.nodes if other != stale}
    for _ in range(30):
        cluster.append()
    cluster.run_until(lambda: cluster.leader() not in (None, stale), within_ms=5_000)
    for _ in range(2):
        for _ in range(5):
            cluster.run_until(lambda: commits(cluster), within_ms=5_000)
        for node_id in cluster.nodes:
            if node_id != stale:
                cluster.snapshot(node_id)
    assert cluster.nodes[stale].log.end_offset > 30
    cluster.cut = set()
    assert_converges(cluster)
    assert cluster.nodes[stale].log.installed_count == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_observers_follow_whoever_leads(seed: int) -> None:
    """Also before there is a leader, after it was killed, and after it was frozen."""
    cluster = Cluster(seed, 3, 2)
    for observer in cluster.observer_ids:
        cluster.start(observer)
    cluster.run(cluster.now_ms + 3_000)
    assert cluster.leader() is None
    for voter in cluster.voter_ids:
        cluster.start(voter)
    assert_converges(cluster)
    killed = cluster.leader()
    assert killed is not None
    cluster.crash(killed)
    cluster.run_until(lambda: commits(cluster), within_ms=2_000)
    cluster.start(killed)
    assert_converges(cluster)
    frozen = cluster.leader()
    assert frozen is not None
    cluster.cut = {frozenset((frozen, other)) for other in cluster.nodes if other != frozen}
    cluster.run_until(lambda: cluster.leader() not in (None, frozen), within_ms=5_000)
    values = cluster.committed[-1:]
    cluster.run_until(lambda: commits(cluster), within_ms=5_000)
    assert cluster.committed[-1:] != values
    for observer in cluster.observer_ids:
        log = cluster.nodes[observer].log
        cluster.run_until(lambda log=log: holds_all(cluster, log), within_ms=3_000)  # type: ignore[misc]
    cluster.cut = set()
    assert_converges(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_observer_counts_for_nothing(seed: int) -> None:
    """One voter of three and two observers are no majority."""
    cluster = Cluster(seed, 3, 2)
    cluster.start_all()
    cluster.run_until(lambda: commits(cluster), within_ms=2_000)
    for voter in [id_ for id_ in cluster.voter_ids if id_ != cluster.leader()]:
        cluster.crash(voter)
    for _ in range(20):
        assert not commits(cluster)
    cluster.run(cluster.now_ms + 5_000)
    assert cluster.leader() is None
    for voter in cluster.voter_ids:
        if cluster.nodes[voter].core is None:
            cluster.start(voter)
    assert_converges(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_observer_gets_the_snapshot(seed: int) -> None:
    cluster = Cluster(seed, 3, 1)
    for voter in cluster.voter_ids:
        cluster.start(voter)
    for _ in range(2):
        for _ in range(5):
            cluster.run_until(lambda: commits(cluster), within_ms=5_000)
        for voter in cluster.voter_ids:
            cluster.snapshot(voter)
    (observer,) = cluster.observer_ids
    leaders = dict(cluster.leaders)
    cluster.start(observer)
    assert_converges(cluster)
    assert cluster.nodes[observer].log.installed_count == 1
    assert cluster.leaders == leaders, "nobody was elected for it"


@pytest.mark.parametrize(("voters_count", "observers_count"), [(3, 0), (5, 0), (3, 2)])
@pytest.mark.parametrize("seed", CHAOS_SEEDS)
def test_chaos_loses_nothing_committed(seed: int, voters_count: int, observers_count: int) -> None:
    cluster = run_chaos(seed, voters_count, observers_count)
    assert len(cluster.acknowledged) > 10


@pytest.mark.soak
@pytest.mark.parametrize(("voters_count", "observers_count"), [(3, 0), (5, 0), (3, 2)])
def test_many_more_seeds(voters_count: int, observers_count: int) -> None:
    for seed in MANY_SEEDS:
        run_chaos(seed, voters_count, observers_count)


def run_chaos(seed: int, voters_count: int, observers_count: int = 0) -> Cluster:
    """A tormented cluster, healed in the end; a failure tells the seed and the last events."""
    cluster = Cluster(seed, voters_count, observers_count)
    where = f"seed {seed}, {voters_count} voters, {observers_count} observers"
    try:
        _live_through(cluster)
    except CommittedTruncationError as error:
        story = f"CommittedNeverLost: {error}\n{where}\n{cluster.story()}"
        raise AssertionError(story) from error
    except (AssertionError, IllegalTransitionError) as error:
        raise AssertionError(f"{error}\n{where}\n{cluster.story()}") from error
    return cluster


def _live_through(cluster: Cluster) -> None:
    cluster.start_all()
    while cluster.now_ms < CHAOS_MS:
        cluster.run(cluster.now_ms + STEP_MS)
        for _ in range(cluster.dice.randrange(4)):
            cluster.append()
        torment(cluster)
    cluster.cut, cluster.loss_percent, cluster.delay_ms_max = set(), 0, 10
    for node_id, node in cluster.nodes.items():
        if node.core is None:
            cluster.start(node_id)
    assert_converges(cluster)


def torment(cluster: Cluster) -> None:
    """One random misfortune, or a relief."""
    dice = cluster.dice
    ids = list(cluster.nodes)
    victim = dice.choice(ids)
    cluster.loss_percent = dice.choice([0, 0, 5, 30])
    cluster.delay_ms_max = dice.choice([2, 10, 400])
    match dice.randrange(10):
        case 0 | 1:
            cluster.crash(victim)
        case 2 | 3 | 4 if cluster.nodes[victim].core is None:
            cluster.start(victim)
        case 5:
            cluster.cut = {frozenset(dice.sample(ids, 2))}
        case 6:
            cluster.cut = {frozenset((victim, other)) for other in ids if other != victim}
        case 7 | 8:
            cluster.cut = set()
        case 9:
            cluster.resign(victim)
    if dice.randrange(3) == 0:
        cluster.snapshot(dice.choice(ids))
    if dice.randrange(6) == 0:
        cluster.damage(victim)
