"""Another tool changes what a run has set, or relies on, while it goes on."""

from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.errors import RefusedError
from control.kafka.ports import ConfigResource, ConfigScope, LogDir
from control.model.ids import TopicPartition
from control.move.events import EventKind, Outcome
from control.move.journal_lines import lines_of_state
from control.move.state import OperationState, Phase
from control.move.throttle import (
    ALL_REPLICAS,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
    REPLICA_LISTS,
)
from control.operations.executor.debounce import LASTING_READINGS, LASTING_S
from control.operations.executor.interference import CordonWatch
from control.operations.executor.run import ReassignRun
from control.operations.executor.throttles.throttle_guard import ThrottleGuard
from control.operations.reassignment.calibration import Calibration
from planner.proposal import PartitionChange
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.conftest import PassS
from tests.unit.control.operations.executor.test_throttle_of_move import RATE, rates_on
from tests.unit.control.operations.fake_cluster import (
    ELSEWHERE,
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    idle,
    run,
)

A, B, C = change("a"), change("b"), change("c")
ALL = {1: {str(RATE)}, 2: {str(RATE)}, 3: {str(RATE)}}


def scene(**known: Any) -> tuple[FakeCluster, FakeContext]:
    """Three partitions, one a wave."""
    cluster = FakeCluster({it.key: FROM for it in (A, B, C)})
    return cluster, FakeContext(command_of(A, B, C, throttle=RATE, **known))


def set_rates(cluster: FakeCluster, value: str | None, *, brokers: tuple[int, ...]) -> None:
    for broker in brokers:
        now = cluster.configs[ConfigResource(scope=ConfigScope.BROKER, name=str(broker))]
        for name in RATES:
            now.pop(name, None)
            if value is not None:
                now[name] = value


def verify(cluster: FakeCluster) -> Callable[[], None]:
    """`kafka-reassign-partitions --verify`: every throttle of the cluster goes."""

    def clear() -> None:
        for configs in cluster.configs.values():
            for name in (*RATES, *REPLICA_LISTS):
                configs.pop(name, None)

    return clear


def shown(cluster: FakeCluster) -> dict[int, set[str | None]]:
    return {broker: rates_on(cluster, broker) for broker in (1, 2, 3)}


def lists_of(cluster: FakeCluster, topic: str) -> set[str]:
    return cluster.configs[ConfigResource(scope=ConfigScope.TOPIC, name=topic)].keys() & set(
        REPLICA_LISTS
    )


async def test_a_throttle_that_another_tool_removes_is_set_again_and_told() -> None:
    cluster, context = scene()
    seen: list[Any] = []

    def look() -> None:
        seen.append((shown(cluster), lists_of(cluster, "a")))
        cluster.arrive()

    ended = await run(cluster, context, verify(cluster), look, cluster.arrive, cluster.arrive)
    assert seen == [(ALL, set(REPLICA_LISTS))]
    (told,) = context.said(EventKind.INTERFERED)
    assert not lacking(
        told, "another tool", "brokers 1, 2, 3", "1.0 MiB/s → removed", "topic a", "set again"
    )
    assert told in ended.notes
    assert [line.what for line in lines_of_state(ended)[1:]] == [f"mv-1 {told}"]
    assert (ended.outcome, cluster.shown()) == (Outcome.DONE, {}), "and its own goes at the end"


async def test_no_wave_begins_without_the_throttle_that_another_tool_removed_before_it() -> None:
    cluster: Any
    cluster, context = scene()
    rates: list[Any] = []
    begin = cluster.begin

    def watched(*asked: Any) -> None:
        rates.append(shown(cluster))
        begin(*asked)

    cluster.begin = watched

    def arrive_cleared() -> None:
        cluster.arrive()
        verify(cluster)()

    await run(cluster, context, arrive_cleared, cluster.arrive, cluster.arrive)
    assert rates == [ALL, ALL, ALL]


async def test_removed_for_the_second_time_the_move_stops_and_a_resume_goes_on() -> None:
    cluster, context = scene()
    states: list[OperationState] = []

    def look() -> None:
        states.append(context.state())
        assert shown(cluster) == ALL, "what is in flight is throttled all the same"
        cluster.arrive()

    def held() -> None:
        states.append(context.state())
        assert (cluster.targets, len(cluster.asked)) == ({}, 1)
        verify(cluster)()

    def resume() -> None:
        assert shown(cluster) != ALL, "nothing is copied, so nobody is fought"
        context.script.is_paused = False

    steps = (idle, verify(cluster), idle, verify(cluster), look, held, resume)
    ended = await run(cluster, context, *steps, cluster.arrive, cluster.arrive)
    assert [state.phase for state in states] == [Phase.PAUSING, Phase.PAUSED]
    for state in states:
        assert not lacking(state.message, "another tool", "second time", "moves resume mv-1")
    assert len(context.said(EventKind.INTERFERED)) == 2
    assert (ended.outcome, ended.stopped_for) == (Outcome.DONE, "")
    assert cluster.shown() == {}


async def test_a_rate_that_another_tool_changes_is_set_again_once_and_then_stays() -> None:
    cluster, context = scene()
    raised = str(10 * RATE)

    def other() -> None:
        set_rates(cluster, raised, brokers=(2,))

    def once() -> None:
        assert shown(cluster) == ALL
        other()

    def stopped() -> None:
        assert rates_on(cluster, 2) == {raised}, "somebody means it"
        cluster.arrive()

    def resume() -> None:
        context.script.is_paused = False

    ended = await run(
        cluster, context, other, once, idle, stopped, resume, cluster.arrive, cluster.arrive
    )
    for told in context.said(EventKind.INTERFERED):
        assert not lacking(told, "broker 2", "1.0 MiB/s → 10.0 MiB/s")
    assert any("throttle set again" in note for note in ended.notes)
    assert (ended.outcome, cluster.shown()) == (Outcome.DONE, {})


async def test_the_second_half_of_one_clean_up_is_not_a_second_change() -> None:
    """The tool goes from broker to broker, and to the topics last."""
    cluster, context = scene()
    topic = ConfigResource(scope=ConfigScope.TOPIC, name="a")
    steps = [
        lambda: set_rates(cluster, None, brokers=(1,)),
        lambda: set_rates(cluster, None, brokers=(2, 3)),
        lambda: cluster.configs[topic].clear(),
        cluster.arrive,
        cluster.arrive,
        cluster.arrive,
    ]
    ended = await run(cluster, context, *steps)
    assert len(context.said(EventKind.INTERFERED)) == 3
    assert context.said(EventKind.PAUSED) == []
    assert ended.outcome is Outcome.DONE


async def test_many_topics_are_compared_in_turns_and_set_again_all_together(
    monkeypatch: pytest.MonkeyPatch, pass_s: PassS
) -> None:
    monkeypatch.setattr(f"{ThrottleGuard.__module__}.TOPICS_AT_A_TIME", 1)
    names = ("a", "b", "c")
    changes = [change(name, size_bytes=1 << 30) for name in names]
    cluster = FakeCluster({it.key: FROM for it in changes})
    command = command_of(*changes, throttle=RATE, waves=WaveRules(partitions=3))
    context = FakeContext(command)

    def clear_lists() -> None:
        for name in names:
            cluster.configs[ConfigResource(scope=ConfigScope.TOPIC, name=name)].clear()

    def look() -> None:
        assert [lists_of(cluster, name) for name in names] == [set(REPLICA_LISTS)] * 3
        cluster.configs[ConfigResource(scope=ConfigScope.TOPIC, name="c")].clear()

    def resume() -> None:
        context.script.is_paused = False

    begun = (pass_s(60), idle, cluster.arrive)
    steps = (idle, clear_lists, look, *[idle] * 3, resume, *begun * 3)
    await run(cluster, context, *steps)
    first, second = context.said(EventKind.INTERFERED)
    assert not lacking(first, "topics a, b, c", "set again")
    assert not lacking(second, "second time", "topic c")


async def test_what_others_add_to_a_list_is_no_change_of_ours() -> None:
    cluster, context = scene()
    topic = ConfigResource(scope=ConfigScope.TOPIC, name="a")

    def add() -> None:
        cluster.configs[topic][LEADER_REPLICAS] += ",7:1"
        cluster.configs[topic][FOLLOWER_REPLICAS] = ALL_REPLICAS

    await run(cluster, context, add, idle, cluster.arrive, cluster.arrive, cluster.arrive)
    assert context.said(EventKind.INTERFERED) == []


async def test_a_topic_that_was_created_anew_has_lost_no_throttle() -> None:
    cluster, context = scene(waves=WaveRules(partitions=3))

    def anew() -> None:
        cluster.create_anew("a", {0: FROM})
        cluster.configs[ConfigResource(scope=ConfigScope.TOPIC, name="a")] = {}

    await run(cluster, context, anew, cluster.arrive)
    assert context.said(EventKind.INTERFERED) == []


async def test_a_broker_that_does_not_tell_has_not_lost_its_throttle() -> None:
    cluster, context = scene()

    def dies() -> None:
        cluster.alive.discard(1)

    await run(cluster, context, dies, idle, cluster.arrive, cluster.arrive, cluster.arrive)
    assert context.said(EventKind.INTERFERED) == []


async def test_an_operators_throttle_is_no_interference() -> None:
    cluster, context = scene()

    def faster() -> None:
        context.script.throttle = 5 * RATE

    await run(cluster, context, faster, idle, cluster.arrive, cluster.arrive, cluster.arrive)
    assert context.said(EventKind.INTERFERED) == []


async def test_what_was_measured_without_a_throttle_is_not_learned_from() -> None:
    cluster, context = scene()
    context.script.steps += [idle, verify(cluster), idle, cluster.arrive, cluster.arrive,
                             cluster.arrive]  # fmt: skip
    known: Any = cluster
    await ReassignRun(known, context.command, context, Calibration()).run()
    ended = context.state()
    assert ended.misses is not None
    assert ended.misses.foreseen is None


async def test_a_partition_that_is_retargeted_in_flight_is_told_as_such() -> None:
    cluster, context = scene()
    ended = await run(
        cluster,
        context,
        lambda: cluster.begin(A.key, ELSEWHERE),
        cluster.arrive,
        cluster.arrive,
    )
    assert ended.outcome is Outcome.FAILED
    (told,) = context.said(EventKind.INTERFERED)
    assert not lacking(told, "a-0", "re-targeted to [4, 2]", "another tool")
    assert "cancelled" not in ended.message


async def test_a_partition_that_had_arrived_and_is_moved_on_is_told(pass_s: PassS) -> None:
    cluster, context = scene()

    def move_on() -> None:
        cluster.placed[A.key] = ELSEWHERE

    steps = [pass_s(LASTING_S / LASTING_READINGS)] * (LASTING_READINGS + 1)
    ended = await run(
        cluster, context, cluster.arrive, move_on, *steps, cluster.arrive, cluster.arrive
    )
    assert ended.outcome is Outcome.FAILED
    assert not lacking(ended.message, "a-0", "had arrived", "[4, 2]", "another tool")


async def test_an_order_that_another_tool_changes_is_set_again_once(pass_s: PassS) -> None:
    """It arrives on the right brokers, with the wrong preferred leader."""
    cluster, context = scene(waves=WaveRules(partitions=3))
    lasting = [pass_s(LASTING_S / LASTING_READINGS)] * (LASTING_READINGS + 1)

    def disorder() -> None:
        cluster.placed[A.key] = A.after[::-1]
        cluster.targets.pop(A.key, None)

    def again() -> None:
        assert cluster.placed[A.key] == A.after
        disorder()

    ended = await run(cluster, context, disorder, *lasting, again, *lasting, cluster.arrive)
    assert ended.outcome is Outcome.FAILED
    assert not lacking(ended.message, "a-0", "[2, 3]", "second time")
    first, _ = context.said(EventKind.INTERFERED)
    assert not lacking(first, "a-0", "order [2, 3]", "[3, 2] is set again")
    assert cluster.placed[A.key] == (2, 3), "somebody means it"


@pytest.mark.parametrize("emptied", [(), (1,)], ids=["target", "drained"])
def test_cordons_that_matter_are_told_once(emptied: tuple[int, ...]) -> None:
    watch = CordonWatch()
    for is_so in (False, True, False):
        watch.read([_dir(is_cordoned=is_so), _dir(is_failed=True)], emptied)
    told = watch.take_news()
    assert watch.take_news() == []
    assert len(told) == 1
    wanted = "uncordoned" if emptied else "was cordoned"
    assert not lacking(told[0], "broker 1", wanted)


async def test_a_target_that_is_cordoned_between_waves_is_told() -> None:
    """Nothing moves to it then, and Kafka refuses what is asked next."""
    cluster, context = scene()
    cluster.logs = (_dir(broker=3),)

    def cordon() -> None:
        cluster.arrive()
        cluster.logs = (_dir(broker=3, is_cordoned=True),)
        refused = RefusedError(ErrorCode.invalid_replica_assignment, what="moving")
        cluster.refusals |= dict.fromkeys((B.key, C.key), refused)

    ended = await run(cluster, context, cordon, idle, idle)
    assert ended.outcome is Outcome.FAILED
    (told,) = context.said(EventKind.INTERFERED)
    assert not lacking(told, "broker 3", "was cordoned")


def _dir(*, broker: int = 1, **known: bool) -> LogDir:
    return LogDir(
        broker=broker,
        path="/d",
        total_bytes=None,
        usable_bytes=None,
        replicas=(),
        **known,
    )


def test_both_rates_are_compared() -> None:
    assert RATES == (LEADER_RATE, FOLLOWER_RATE)


def fewer() -> tuple[FakeCluster, FakeContext]:
    """Two partitions, one a wave; the later and larger one goes from three replicas to two."""
    first = PartitionChange(topic="a", partition=0, before=(1, 2), after=(3, 2), size_bytes=0)
    second = PartitionChange(topic="b", partition=0, before=(1, 2, 3), after=(4, 1), size_bytes=1)
    cluster = FakeCluster({first.key: first.before, second.key: second.before})
    return cluster, FakeContext(command_of(first, second, allows_replication_factor_change=True))


async def test_a_min_isr_that_another_tool_raises_in_between_keeps_a_later_wave_from_it() -> None:
    cluster, context = fewer()

    def raise_it() -> None:
        topic = ConfigResource(scope=ConfigScope.TOPIC, name="b")
        cluster.configs[topic] = {"min.insync.replicas": "3"}
        cluster.arrive()

    ended = await run(cluster, context, raise_it)
    assert cluster.placed[TopicPartition("b", 0)] == (1, 2, 3)
    (told,) = context.said(EventKind.INTERFERED)
    assert not lacking(told, "b-0", "min.insync.replicas 3", "left as it is")
    assert ended.outcome is Outcome.FAILED


async def test_a_later_wave_drops_no_replica_that_alone_is_in_sync_by_now() -> None:
    cluster, context = fewer()

    def lag() -> None:
        cluster.isr[TopicPartition("b", 0)] = (3,)
        cluster.arrive()

    ended = await run(cluster, context, lag)
    assert cluster.placed[TopicPartition("b", 0)] == (1, 2, 3)
    (told,) = context.said(EventKind.INTERFERED)
    assert not lacking(told, "b-0", "keeps 1", "drops 3")
    assert ended.outcome is Outcome.FAILED


async def test_a_later_wave_goes_on_where_nothing_is_lost() -> None:
    cluster, context = fewer()
    ended = await run(cluster, context, cluster.arrive, cluster.arrive)
    assert (ended.outcome, cluster.placed[TopicPartition("b", 0)]) == (Outcome.DONE, (4, 1))
