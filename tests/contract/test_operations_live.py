"""Operations on our own cluster: killed at any point, throttled anew, held up and let go."""

import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import RefusedError
from control.kafka.ports import ConfigResource, ConfigScope
from control.model.ids import TopicPartition
from control.move.commands import ControlAction
from control.move.events import Event, EventKind, Outcome
from control.move.state import HELD, OperationState, Phase
from control.move.throttle import FOLLOWER_REPLICAS
from control.operations.bus.client import OperationsClient, wait_for
from control.operations.errors import ConflictError, InvalidInputError
from control.operations.executor.throttles.throttle_on_cluster import ClusterThrottle
from control.operations.reassignment.planning import Planning
from planner.proposal import PartitionChange, Proposal
from planner.waves import WaveRules
from tests.contract.operations_rig import (
    ExecutorProcess,
    add_data,
    end_offsets,
    ours,
    placement_of,
    throttles,
    topic_with_data,
    watch_until,
)
from tests.support.cluster import LocalCluster
from tests.support.paced_producer import fill
from tests.support.settle import eventually

pytestmark = pytest.mark.thorough

FROM = (101, 102)
TO = (103, 102)
RATE = 1_000_000
RECORDS = 1500


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalCluster(tmp_path_factory.mktemp("live")) as cluster:
        yield cluster.bootstrap


@pytest.fixture
async def admin(bootstrap: str) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin.to(bootstrap) as opened:
        yield opened


@pytest.fixture
async def client(bootstrap: str) -> AsyncIterator[OperationsClient]:
    async with OperationsClient(bootstrap, who="tester") as opened:
        yield opened


async def begin(admin: KafkaAdmin, client: OperationsClient, *, rate: int | str) -> tuple[str, str]:
    """A topic of two partitions on its way from FROM to TO, the smaller one, 0, first; (topic,
    operation)."""
    topic = await topic_with_data(admin, dict.fromkeys(range(2), FROM), records=RECORDS)
    await add_data(admin, TopicPartition(topic, 1), records=RECORDS // 10)
    targets = {TopicPartition(topic, partition): TO for partition in range(2)}
    proposal = await Planning(admin).proposal(targets)
    bootstrap = admin.wire.settings.bootstrap
    operation_id = await client.submit_reassign(
        proposal, bootstrap=bootstrap, throttle=rate, waves=WaveRules(partitions=1)
    )
    return topic, operation_id


def change(topic: str, partition: int) -> PartitionChange:
    return PartitionChange(topic=topic, partition=partition, before=FROM, after=TO, size_bytes=1)


def in_wave(number: int) -> Callable[[OperationState], bool]:
    return lambda state: state.progress is not None and state.progress.wave >= number


DANGEROUS = (EventKind.THROTTLE_RECORDED, EventKind.THROTTLE_REMOVED)
OTHERS = (EventKind.ACCEPTED, EventKind.STARTED, EventKind.WAVE_STARTED, EventKind.WAVE_DONE)


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(DANGEROUS, id="throttle"),
        pytest.param(OTHERS, id="others", marks=pytest.mark.soak),
    ],
)
async def test_killed_at_any_point_it_goes_on_and_leaves_nothing_behind(
    kinds: tuple[EventKind, ...],
    admin: KafkaAdmin,
    client: OperationsClient,
    tmp_path: Path,
    bootstrap: str,
) -> None:
    """One move, its executor killed as soon as each of these kinds of events is written."""
    points = list(kinds)
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, operation_id = await begin(admin, client, rate=RATE)
        async for event in client.events():
            if event.operation_id != operation_id:
                continue
            if points and event.kind is points[0]:
                points.pop(0)
                assert executor.end(signal.SIGKILL) == -signal.SIGKILL
                executor.__enter__()
            if event.kind is EventKind.FINISHED:
                break
        done = await wait_for(client, operation_id)
    assert not points
    assert done.outcome is Outcome.DONE, executor.said()
    assert await placement_of(admin, topic) == dict.fromkeys(range(2), TO)
    assert await end_offsets(admin, topic) == {0: RECORDS, 1: RECORDS + RECORDS // 10}
    assert await throttles(admin, topic) == {}


async def test_a_throttle_changed_by_hand_holds_over_a_crash_and_is_gone_afterwards(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, operation_id = await begin(admin, client, rate=20_000)

        async def faster() -> None:
            await client.control(operation_id, ControlAction.THROTTLE, throttle="30KiB")

        await watch_until(client, operation_id, in_wave(1), then=faster)
        await watch_until(client, operation_id, lambda s: s.throttle_bytes_per_s == 30 << 10)
        assert executor.end(signal.SIGKILL) == -signal.SIGKILL
        await client.control(operation_id, ControlAction.THROTTLE, throttle=5_000_000)
        executor.__enter__()
        done = await wait_for(client, operation_id)
        assert done.outcome is Outcome.DONE, executor.said()
        assert done.throttle_bytes_per_s == 5_000_000
        assert done.took_s is not None
        assert done.expected_s is not None
    assert await throttles(admin, topic) == {}


async def test_what_has_arrived_or_is_about_to_is_throttled_no_more(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    """The first partition is there at once, the second is far away; also after a crash."""
    topic = await topic_with_data(admin, dict.fromkeys(range(2), FROM), records=100)
    fill(bootstrap, topic, {1: 12 << 20})
    targets = {TopicPartition(topic, partition): TO for partition in range(2)}
    proposal = await Planning(admin).proposal(targets)

    async def listed() -> dict[str, str]:
        named = (await throttles(admin, topic)).items()
        return {name.removeprefix(f"{topic} "): value for name, value in named if topic in name}

    wanted = {
        "leader.replication.throttled.replicas": "1:101,1:102",
        "follower.replication.throttled.replicas": "1:103",
    }
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        operation_id = await client.submit_reassign(proposal, bootstrap=bootstrap, throttle=500_000)
        await eventually(listed, wanted)
        assert executor.end(signal.SIGKILL) == -signal.SIGKILL
        executor.__enter__()
        await client.control(operation_id, ControlAction.THROTTLE, throttle=600_000)
        await watch_until(client, operation_id, lambda s: s.throttle_bytes_per_s == 600_000)
        await eventually(listed, wanted)
        await client.control(operation_id, ControlAction.THROTTLE, throttle=50_000_000)
        done = await wait_for(client, operation_id)
    assert done.outcome is Outcome.DONE, executor.said()
    assert await throttles(admin, topic) == {}


async def test_a_throttle_holds_for_many_partitions_that_are_soon_there(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    """They are let go before they arrive, but no more of them than a tenth of what comes."""
    partitions, rate = 48, 4 << 20
    topic = await topic_with_data(admin, dict.fromkeys(range(partitions), FROM), records=1)
    fill(bootstrap, topic, dict.fromkeys(range(partitions), 1 << 20))
    targets = {TopicPartition(topic, partition): TO for partition in range(partitions)}
    proposal = await Planning(admin).proposal(targets)
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        operation_id = await client.submit_reassign(proposal, bootstrap=bootstrap, throttle=rate)
        done = await wait_for(client, operation_id)
    assert done.outcome is Outcome.DONE, executor.said()
    assert done.took_s is not None
    assert done.took_s > partitions * (1 << 20) / rate / 1.1 - 1


async def test_no_throttle_is_taken_for_waves_whose_lists_kafka_would_not_take(
    admin: KafkaAdmin, client: OperationsClient, bootstrap: str
) -> None:
    """Of a move that began without one; nobody runs it here."""
    changes = tuple(change("wide", n) for n in range(4000))
    proposal = Proposal(name="wide", changes=changes)

    async def submitted(waves: WaveRules) -> str:
        return await client.submit_reassign(
            proposal, bootstrap=bootstrap, throttle="none", waves=waves
        )

    wide = await submitted(WaveRules(partitions=4000))
    for rate in ("5MiB", "auto"):
        with pytest.raises(InvalidInputError, match=r"32,767; waves of \d+ partitions"):
            await client.control(wide, ControlAction.THROTTLE, throttle=rate)
    await client.control(wide, ControlAction.THROTTLE, throttle="none")
    narrow = await submitted(WaveRules(partitions=1000))
    await client.control(narrow, ControlAction.THROTTLE, throttle="5MiB")
    for operation_id in (wide, narrow):
        await client.control(operation_id, ControlAction.CANCEL)


async def test_a_list_that_others_have_filled_is_left_as_it_is(admin: KafkaAdmin) -> None:
    topic = await topic_with_data(admin, {0: FROM}, records=1)
    theirs = ",".join(f"{n}:199" for n in range(4000))
    resource = ConfigResource(scope=ConfigScope.TOPIC, name=topic)
    await admin.alter_configs(resource, {FOLLOWER_REPLICAS: theirs[:32_765]})
    record = await ClusterThrottle(admin, ours).plan((change(topic, 0),), RATE)
    before = await throttles(admin, topic)
    with pytest.raises(RefusedError, match="32,767: make waves smaller"):
        await ClusterThrottle(admin, ours).enlist(record, record.entries)
    assert await throttles(admin, topic) == before


async def test_pause_cancel_and_roll_back_work_after_a_crash(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, operation_id = await begin(admin, client, rate=RATE)
        await client.control(operation_id, ControlAction.PAUSE)
        await watch_until(client, operation_id, lambda s: s.phase in HELD)
        executor.end(signal.SIGKILL)
        executor.__enter__()
        executor.wait_until_said("ready")
        assert (await client.get(operation_id)).phase in HELD
        await client.control(operation_id, ControlAction.RESUME)
        await watch_until(client, operation_id, in_wave(2))
        await client.control(operation_id, ControlAction.CANCEL)
        ended = await wait_for(client, operation_id)
        assert ended.outcome in (Outcome.CANCELLED, Outcome.DONE), executor.said()
        undo = await client.rollback(await client.rollback_plan(operation_id))
        with pytest.raises(ConflictError, match=f"{undo} rolls {operation_id} back already"):
            await client.rollback(await client.rollback_plan(operation_id))
        await watch_until(client, undo, in_wave(1))
        executor.end(signal.SIGKILL)
        executor.__enter__()
        back = await wait_for(client, undo)
        assert back.outcome is Outcome.DONE, executor.said()
    assert await placement_of(admin, topic) == dict.fromkeys(range(2), FROM)
    assert await throttles(admin, topic) == {}


async def test_what_is_there_already_needs_no_time(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    """As where a move is undone that was cancelled midway: it takes as long as without it.

    How long is told depends on the moves before it, so two that are told one after the other are
    compared.
    """

    async def begun(placement: Mapping[int, tuple[int, ...]]) -> Event:
        topic = await topic_with_data(admin, placement, records=RECORDS)
        changes = tuple(
            replace(change(topic, n), size_bytes=1000 * RECORDS) for n in range(len(placement))
        )
        operation_id = await client.submit_reassign(
            Proposal(name=topic, changes=changes), bootstrap=bootstrap, throttle=20_000
        )
        async for event in client.events():
            if event.operation_id == operation_id and event.kind is EventKind.STARTED:
                break
        await client.control(operation_id, ControlAction.CANCEL)
        await wait_for(client, operation_id)
        assert await placement_of(admin, topic) == placement
        return event

    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err"):
        alone = await begun({0: FROM})
        beside = await begun({0: FROM, 1: TO})
    assert alone.message == "1 partition in 1 wave"
    assert beside.message.startswith("2 partitions in 1 wave; 1 ")
    soonest_s, latest_s = alone.data["expected_s"]
    assert 0 < soonest_s < latest_s
    assert beside.data["expected_s"] == pytest.approx([soonest_s, latest_s], rel=0.1)


async def test_a_pause_within_a_wave_is_told_and_taken_back_before_the_wave_ends(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err"):
        topic, operation_id = await begin(admin, client, rate=20_000)
        await watch_until(client, operation_id, in_wave(1))
        await client.control(operation_id, ControlAction.PAUSE)
        held = await watch_until(client, operation_id, lambda s: s.phase in HELD)
        assert held.message.startswith("pausing: 1 partition ")
        assert held.progress is not None
        assert held.progress.partitions_done == 0
        await client.control(operation_id, ControlAction.RESUME)
        goes_on = await watch_until(client, operation_id, lambda s: s.message == "resumed")
        assert goes_on.phase is Phase.RUNNING
        assert goes_on.progress is not None
        assert goes_on.progress.partitions_done == 0
        await client.control(operation_id, ControlAction.THROTTLE, throttle=5_000_000)
        await watch_until(client, operation_id, in_wave(2))
        assert (await wait_for(client, operation_id)).outcome is Outcome.DONE
    assert await throttles(admin, topic) == {}


async def test_cancelled_after_the_wave_what_moves_arrives_and_nothing_else_begins(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, operation_id = await begin(admin, client, rate=20_000)

        async def no_more() -> None:
            await client.control(operation_id, ControlAction.CANCEL_AFTER_WAVE)
            await client.control(operation_id, ControlAction.THROTTLE, throttle=5_000_000)

        await watch_until(client, operation_id, in_wave(1), then=no_more)
        ended = await wait_for(client, operation_id)
        assert ended.outcome is Outcome.CANCELLED, executor.said()
    assert await placement_of(admin, topic) == {0: TO, 1: FROM}
    assert await throttles(admin, topic) == {}


async def test_a_topic_that_is_deleted_while_it_moves_is_left_out_also_of_the_way_back(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    doomed = await topic_with_data(admin, {0: FROM}, records=RECORDS)
    topic = await topic_with_data(admin, {0: FROM}, records=RECORDS)
    proposal = Proposal(name="two", changes=(change(doomed, 0), change(topic, 0)))
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        operation_id = await client.submit_reassign(proposal, bootstrap=bootstrap, throttle=20_000)

        async def delete() -> None:
            await admin.delete_topic(doomed)
            await client.control(operation_id, ControlAction.THROTTLE, throttle=5_000_000)

        def is_moving(state: OperationState) -> bool:
            return state.progress is not None and len(state.progress.in_flight) == 2

        await watch_until(client, operation_id, is_moving, then=delete)
        done = await wait_for(client, operation_id)
        assert done.outcome is Outcome.DONE, (done, executor.said())
        left_out = f"{doomed} was deleted meanwhile: 1 partition"
        assert any(left_out in note for note in done.notes)
        assert await placement_of(admin, topic) == {0: TO}
        assert await throttles(admin, topic) == {}
        back = await wait_for(
            client, await client.rollback(await client.rollback_plan(operation_id))
        )
        assert back.outcome is Outcome.DONE, (back, executor.said())
        assert any(left_out in note for note in back.notes)
    assert await placement_of(admin, topic) == {0: FROM}
    assert await throttles(admin, topic) == {}


async def test_what_somebody_else_moves_before_its_wave_is_left_to_them(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic, operation_id = await begin(admin, client, rate=20_000)
        elsewhere = (101, 103)

        async def others() -> None:
            key = TopicPartition(topic, 1)
            assert await admin.alter_reassignments({key: elsewhere}) == {}
            await eventually(admin_sees_moved, elsewhere)
            await client.control(operation_id, ControlAction.THROTTLE, throttle=5_000_000)

        async def admin_sees_moved() -> tuple[int, ...]:
            return (await placement_of(admin, topic))[1]

        await watch_until(client, operation_id, in_wave(1), then=others)
        ended = await wait_for(client, operation_id)
        assert ended.outcome is Outcome.FAILED, (ended, executor.said())
        assert "somebody else" in ended.message
    assert await placement_of(admin, topic) == {0: TO, 1: elsewhere}
    assert await throttles(admin, topic) == {}


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_an_automatic_throttle_finds_the_headroom(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path, bootstrap: str
) -> None:
    """400 MB at 10 MiB/s would take 40 s: with nobody else about, the rate goes up meanwhile."""
    with ExecutorProcess(bus=bootstrap, log=tmp_path / "executor.err") as executor:
        topic = await topic_with_data(admin, {0: FROM}, records=400_000)
        proposal = await Planning(admin).proposal({TopicPartition(topic, 0): TO})
        operation_id = await client.submit_reassign(proposal, bootstrap=bootstrap, throttle="auto")
        rates = set()
        async for state in client.watch(operation_id):
            rates.add(state.throttle_bytes_per_s)
        done = await wait_for(client, operation_id)
        assert done.outcome is Outcome.DONE, executor.said()
    assert 10 << 20 in rates
    assert max(rate or 0 for rate in rates) > 10 << 20
    assert await throttles(admin, topic) == {}
