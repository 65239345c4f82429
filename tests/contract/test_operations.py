"""Operations end to end on real clusters: on ours, and on Kafka, which says what is right."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition
from control.move.commands import OPERATIONS_TOPIC, ControlAction
from control.move.events import Outcome
from control.move.state import OperationState, Phase
from control.operations.bus.client import OperationsClient, wait_for
from control.operations.bus.topics import COMMANDS
from control.operations.executor.ownership import GROUP_ID
from control.operations.reassignment.planning import Planning
from control.operations.reassignment.preflight import Verdict
from control.operations.reassignment.preview import preview_rollback
from planner.goals import Goal, PlanRequest
from planner.proposal import PartitionChange, Proposal
from planner.waves import WaveRules
from tests.contract.operations_rig import (
    ExecutorProcess,
    end_offsets,
    leaders_of,
    placement_of,
    throttles,
    topic_with_data,
    two_executors,
    watch_until,
)
from tests.support.command_line import CommandLine
from tests.support.settle import eventually

RATE = 1_000_000
FROM = (101, 102)
TO = (103, 102)
HERE = [
    pytest.param("our_cluster", id="ours"),
    pytest.param("kafka_cluster", id="kafka", marks=(pytest.mark.kafka_oracle, pytest.mark.soak)),
]
"""In `make test` on ours alone. On Kafka the successor of a killed executor, the members of
test_groups and the controls of test_catalogue show the parts of it."""


@pytest.fixture
async def client(bootstrap: str) -> AsyncIterator[OperationsClient]:
    async with OperationsClient(bootstrap, who="tester") as opened:
        yield opened


async def proposal_to(admin: KafkaAdmin, topic: str, target: tuple[int, ...]) -> Proposal:
    keys = await placement_of(admin, topic)
    targets = {TopicPartition(topic, partition): target for partition in keys}
    return await Planning(admin).proposal(targets)


def one_move(topic: str, *, before: tuple[int, ...], after: tuple[int, ...]) -> Proposal:
    change = PartitionChange(topic=topic, partition=0, before=before, after=after, size_bytes=1)
    return Proposal(name="by hand", changes=(change,))


async def submit(
    client: OperationsClient, proposal: Proposal, bootstrap: str, *, rate: int = RATE
) -> str:
    return await client.submit_reassign(
        proposal, bootstrap=bootstrap, throttle=rate, waves=WaveRules(partitions=1), reason="a test"
    )


async def test_plan_preview_run_and_roll_back(
    bootstrap: str, admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    topic = await topic_with_data(admin, dict.fromkeys(range(4), FROM), records=300)
    planning = Planning(admin)
    # Off 101, so that there is work wherever the cluster's other topics lie.
    request = PlanRequest(goal=Goal.BALANCE, topics=(topic,), remove_brokers=(101,))
    plan = await planning.plan(request)
    best = plan.alternatives[0]
    assert not [v for v in best.violations if v.is_new]
    preview = await planning.preview(best.proposal, throttle=20 * RATE)
    assert not preview.is_refused, preview.checks
    arriving = {b.broker: b.bytes_during - b.bytes_now for b in preview.brokers}
    assert arriving[103] >= 300 * 1000
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        operation_id = await submit(client, best.proposal, bootstrap, rate=20 * RATE)
        done = await wait_for(client, operation_id)
        assert done.outcome is Outcome.DONE, (done, executor.said())
        assert done.progress is not None
        assert done.progress.bytes_done == done.progress.bytes_total > 0
        moved = {change.partition: change.after for change in best.proposal.changes}
        assert any(103 in replicas for replicas in moved.values())
        wanted = {**dict.fromkeys(range(4), FROM), **moved}
        await eventually(lambda: placement_of(admin, topic), wanted)
        first = {partition: replicas[0] for partition, replicas in wanted.items()}
        await eventually(lambda: leaders_of(admin, topic), first)
        way = await preview_rollback(planning, client, await client.rollback_plan(operation_id))
        assert not way.is_refused, way.checks
        assert way.proposal.moved_bytes >= best.proposal.moved_replicas * 300 * 1000
        assert way.throttle_bytes_per_s == 20 * RATE
        cli = CommandLine(bootstrap=bootstrap, bus=bootstrap, folder=tmp_path)
        said = await asyncio.to_thread(cli.run, "moves", "rollback", status=2)
        assert f"{operation_id}, is of tester" in said
        told = await asyncio.to_thread(cli.json, "moves", "rollback", operation_id, "--dry-run")
        assert told["bytes"] >= way.proposal.moved_bytes
        assert (await client.rollback_plan(operation_id, spread_s=7.0)).waves.spread_s == 7.0
        undo = await client.rollback(await client.rollback_plan(operation_id))
        back = await wait_for(client, undo)
        assert back.outcome is Outcome.DONE, executor.said()
        assert back.rollback_of == operation_id
        assert back.throttle_bytes_per_s == 20 * RATE
        assert back.progress is not None
        assert back.progress.waves == done.progress.waves > 1
    await eventually(lambda: placement_of(admin, topic), dict.fromkeys(range(4), FROM))
    assert await end_offsets(admin, topic) == dict.fromkeys(range(4), 300)
    await eventually(lambda: throttles(admin, topic), {})
    by_id = {state.operation_id: state for state in await client.list()}
    assert by_id[operation_id].who == "tester"
    assert by_id[operation_id].reason == "a test"


@pytest.mark.thorough
async def test_the_throttle_is_set_as_kafkas_tool_does_and_cancel_takes_back(
    bootstrap: str, admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    topic = await topic_with_data(admin, {0: FROM, 1: FROM}, records=4000)
    proposal = await proposal_to(admin, topic, TO)
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err"):
        operation_id = await submit(client, proposal, bootstrap, rate=100_000)

        def is_moving(state: OperationState) -> bool:
            return state.progress is not None and bool(state.progress.in_flight)

        await watch_until(client, operation_id, is_moving)
        wanted = {
            f"{topic} leader.replication.throttled.replicas": "0:101,0:102",
            f"{topic} follower.replication.throttled.replicas": "0:103",
            **{f"{b} leader.replication.throttled.rate": "100000" for b in (101, 102, 103)},
            **{f"{b} follower.replication.throttled.rate": "100000" for b in (101, 102, 103)},
        }
        await eventually(lambda: throttles(admin, topic), wanted)
        await client.control(operation_id, ControlAction.CANCEL)
        ended = await wait_for(client, operation_id)
    assert ended.outcome is Outcome.CANCELLED
    await eventually(lambda: placement_of(admin, topic), {0: FROM, 1: FROM})
    await eventually(admin.list_reassignments, ())
    await eventually(lambda: throttles(admin, topic), {})


@pytest.mark.parametrize(
    "bootstrap",
    # On ours, test_operations_live kills it at the more delicate moments.
    [
        pytest.param("our_cluster", id="ours", marks=pytest.mark.soak),
        pytest.param("kafka_cluster", id="kafka", marks=pytest.mark.kafka_oracle),
    ],
    indirect=True,
)
async def test_a_killed_executor_goes_on_and_leaves_no_throttle(
    bootstrap: str, admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    topic = await topic_with_data(admin, dict.fromkeys(range(3), FROM), records=1500)
    proposal = await proposal_to(admin, topic, TO)
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        operation_id = await submit(client, proposal, bootstrap)

        def is_in_second_wave(state: OperationState) -> bool:
            return state.progress is not None and state.progress.wave == 2

        await watch_until(client, operation_id, is_in_second_wave)
        assert executor.end(signal.SIGKILL) == -signal.SIGKILL
        assert await throttles(admin, topic) != {}
        executor.__enter__()
        done = await wait_for(client, operation_id)
        assert done.outcome is Outcome.DONE, executor.said()
        await eventually(lambda: _executors_lag(admin), 0)
    await eventually(lambda: placement_of(admin, topic), dict.fromkeys(range(3), TO))
    assert await end_offsets(admin, topic) == dict.fromkeys(range(3), 1500)
    await eventually(lambda: throttles(admin, topic), {})


async def _executors_lag(admin: KafkaAdmin) -> int:
    committed = await admin.groups.committed_offsets(GROUP_ID)
    return (await end_offsets(admin, OPERATIONS_TOPIC))[0] - committed[COMMANDS]


@pytest.mark.soak  # The next test shows the same of an executor that sleeps, and fences it.
async def test_of_two_executors_one_runs_and_the_other_takes_over(
    bootstrap: str, admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    topic = await topic_with_data(admin, dict.fromkeys(range(2), FROM), records=1500)
    proposal = await proposal_to(admin, topic, TO)
    with two_executors(bootstrap, tmp_path) as (first, second):
        operation_id = await submit(client, proposal, bootstrap)
        await watch_until(client, operation_id, lambda s: s.phase is Phase.RUNNING)
        first.end(signal.SIGKILL)
        done = await wait_for(client, operation_id)
        assert done.outcome is Outcome.DONE
        assert operation_id in second.said()
    await eventually(lambda: placement_of(admin, topic), dict.fromkeys(range(2), TO))
    await eventually(lambda: throttles(admin, topic), {})


@pytest.mark.thorough
@pytest.mark.parametrize("bootstrap", HERE, indirect=True)
async def test_an_executor_that_slept_through_its_session_touches_nothing(
    bootstrap: str, admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    topic = await topic_with_data(admin, dict.fromkeys(range(2), FROM), records=1500)
    proposal = await proposal_to(admin, topic, TO)
    with two_executors(bootstrap, tmp_path) as (first, _):
        operation_id = await submit(client, proposal, bootstrap)
        await watch_until(client, operation_id, lambda s: s.phase is Phase.RUNNING)
        assert first.process is not None
        first.process.send_signal(signal.SIGSTOP)
        done = await wait_for(client, operation_id)
        first.process.send_signal(signal.SIGCONT)
        assert done.outcome is Outcome.DONE
        first.wait_until_said("another executor owns")
        again = await client.get(operation_id)
    assert again == done
    await eventually(lambda: placement_of(admin, topic), dict.fromkeys(range(2), TO))
    await eventually(lambda: throttles(admin, topic), {})


@pytest.mark.thorough
@pytest.mark.parametrize("bootstrap", HERE, indirect=True)
async def test_a_paused_operation_starts_no_wave_until_it_is_resumed(
    bootstrap: str, admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    topic = await topic_with_data(admin, dict.fromkeys(range(3), FROM), records=50)
    proposal = await proposal_to(admin, topic, TO)
    operation_id = await submit(client, proposal, bootstrap)
    await client.control(operation_id, ControlAction.PAUSE)
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err"):
        await watch_until(client, operation_id, lambda s: s.phase is Phase.PAUSED)
        assert await placement_of(admin, topic) == dict.fromkeys(range(3), FROM)
        await client.control(operation_id, ControlAction.RESUME)
        done = await wait_for(client, operation_id)
    assert done.outcome is Outcome.DONE
    await eventually(lambda: placement_of(admin, topic), dict.fromkeys(range(3), TO))


async def test_a_stale_plan_and_an_unknown_broker_are_refused(
    bootstrap: str, admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    topic = await topic_with_data(admin, {0: FROM}, records=1)
    stale = one_move(topic, before=(101, 103), after=(102, 103))
    unknown = one_move(topic, before=FROM, after=(101, 999))
    preview = await Planning(admin).preview(stale)
    failed = [check.name for check in preview.checks if check.verdict is Verdict.FAIL]
    assert failed == ["plan is current"]
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err"):
        for proposal, reason in ((stale, "plan was made for"), (unknown, "unknown or not")):
            operation_id = await submit(client, proposal, bootstrap)
            ended = await wait_for(client, operation_id)
            assert ended.outcome is Outcome.REFUSED
            assert reason in ended.message
    assert await placement_of(admin, topic) == {0: FROM}
    assert await throttles(admin, topic) == {}
