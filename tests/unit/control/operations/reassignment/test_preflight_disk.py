"""Pre-flight's check of disks: what is there now, not what was there when the plan was made."""

from dataclasses import replace
from typing import Any

import pytest

from control.kafka.ports import LogDir, ReplicaLog
from control.model.ids import TopicPartition
from control.operations.bus.events import EventKind, Outcome
from control.operations.executor import run as reassign_run
from control.operations.preflight_check import Check, Verdict
from control.operations.reassignment.facts import read_facts
from control.operations.reassignment.planning import preview_of
from control.operations.reassignment.preflight import preflight
from control.operations.reassignment.preflight_disk import check_disk, peak_bytes
from control.planner.proposal import Proposal
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    run,
)
from tests.unit.control.operations.reassignment.test_preflight import FACTS, FOUR, KEY, MOVE

MIB = 1 << 20
GIB = 1 << 30


def log_dir(broker: int, path: str, usable: int | None, **sizes: int) -> LogDir:
    """Of partition 0 of each topic; a disk of 100 GiB."""
    replicas = tuple(
        ReplicaLog(
            broker=broker,
            topic=topic,
            partition=0,
            size_bytes=size,
            offset_lag=0,
            is_future=False,
            log_dir=path,
        )
        for topic, size in sizes.items()
    )
    return LogDir(
        broker=broker, path=path, total_bytes=100 * GIB, usable_bytes=usable, replicas=replicas
    )


def named(checks: tuple[Check, ...], name: str) -> Check:
    (check,) = [check for check in checks if check.name == name]
    return check


def test_a_plan_of_days_ago_is_judged_by_what_there_is_to_move_now() -> None:
    now = replace(FACTS, sizes={KEY: 90 * GIB}, usable_bytes={3: 80 * GIB})
    made = preview_of(now, Proposal(name="undo", changes=(MOVE,)), throttle="auto")
    assert "broker 3 needs 90.0 GiB more" in named(made.checks, "disk").reason
    assert made.throttle_bytes_per_s == 100 * MIB, "10 MiB/s would do for what was planned"
    assert made.seconds_max is not None
    assert made.seconds_max > 900.0
    assert made.proposal.changes == (MOVE,), "the plan stays as it was made"
    (there,) = [broker for broker in made.brokers if broker.broker == 3]
    assert there.bytes_during == 90 * GIB


def test_waves_are_judged_as_they_are_cut_by_the_sizes_of_the_plan() -> None:
    """The smaller one goes first, as planned, though it has become the larger one."""
    swap = (
        replace(MOVE, before=(1,), after=(2,), size_bytes=1),
        replace(MOVE, partition=1, before=(2,), after=(1,), size_bytes=2),
    )
    other = TopicPartition("t", 1)
    sizes = {KEY: 9 * GIB, other: 8 * GIB}
    now = replace(FACTS, sizes=sizes, usable_bytes={1: 9 * GIB, 2: 2 * GIB})
    rules = replace(command_of().waves, partitions=1)
    checks = preflight(now, swap, throttle_bytes_per_s=MIB, rules=rules)
    assert "broker 2 needs 9.0 GiB more" in named(checks, "disk").reason


async def _nothing_written(*_: Any) -> dict[TopicPartition, float]:
    return {}


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody produces, and nobody waits to see that."""
    monkeypatch.setattr(reassign_run, "measure_produced", _nothing_written)


@pytest.mark.usefixtures("unwritten")
async def test_a_run_that_finds_more_than_was_planned_is_refused_where_it_does_not_fit() -> None:
    moved = change("a", size_bytes=GIB)
    cluster, context = FakeCluster({moved.key: FROM}), FakeContext(command_of(moved))
    cluster.logs = (log_dir(1, "/d", GIB, a=9 * GIB), log_dir(3, "/d", 5 * GIB))
    ended = await run(cluster, context)
    assert ended.outcome is Outcome.REFUSED
    assert "broker 3 needs 9.0 GiB more" in ended.message


@pytest.mark.usefixtures("unwritten")
async def test_an_automatic_rate_is_for_what_there_is_to_copy() -> None:
    moved = change("a", size_bytes=GIB)
    command = command_of(moved, throttle="auto")
    cluster, context = FakeCluster({moved.key: FROM}), FakeContext(command)
    cluster.logs = (log_dir(1, "/d", 10 * GIB, a=30 * GIB), log_dir(3, "/d", 90 * GIB))
    await run(cluster, context, lambda: cluster.arrive(moved.key))
    assert context.said(EventKind.THROTTLE_RECORDED) == ["throttle 51.2 MiB/s on brokers 1, 2, 3"]
    assert context.state().planned_bytes == GIB


async def test_of_several_directories_what_is_free_in_all_and_in_the_roomiest_is_known() -> None:
    cluster: Any = FakeCluster({KEY: FROM})
    cluster.logs = (
        log_dir(1, "/a", 5 * GIB),
        log_dir(1, "/b", 6 * GIB),
        log_dir(1, "/offline", None),
        log_dir(2, "/a", 7 * GIB),
        log_dir(3, "/a", 8 * GIB),
        log_dir(3, "/b", 8 * GIB),
        log_dir(4, "/a", None),
    )
    facts = await read_facts(cluster)
    assert facts.usable_bytes == {1: 11 * GIB, 2: 7 * GIB, 3: 16 * GIB}
    assert facts.roomiest_bytes == {1: 6 * GIB, 3: 8 * GIB}


def test_a_replica_that_fits_in_no_single_directory_is_refused() -> None:
    facts = replace(FACTS, usable_bytes={3: 10 * GIB}, roomiest_bytes={3: 5 * GIB})
    fits = replace(MOVE, size_bytes=4 * GIB)
    assert check_disk(facts, [(fits,)]).verdict is Verdict.OK
    assert check_disk(facts, [(fits, replace(fits, partition=1))]).verdict is Verdict.OK
    large = replace(MOVE, size_bytes=5 * GIB)
    check = check_disk(facts, [(large,)])
    assert check.verdict is Verdict.FAIL
    assert not lacking(check.reason, "t-0 (5.0 GiB)", "directory of broker 3", "5.0 GiB free")


def test_what_leaves_in_earlier_waves_may_make_room_in_a_directory() -> None:
    facts = replace(FACTS, usable_bytes={1: 20 * GIB, 3: 10 * GIB}, roomiest_bytes={3: 5 * GIB})
    leaves = replace(MOVE, partition=1, before=(3, 2), after=(1, 2), size_bytes=GIB)
    large = replace(MOVE, size_bytes=5 * GIB)
    assert check_disk(facts, [(leaves,), (large,)]).verdict is Verdict.OK
    assert check_disk(facts, [(leaves, large)]).verdict is Verdict.FAIL


def test_a_broker_is_named_only_where_one_of_its_directories_can_take_it() -> None:
    large = replace(MOVE, size_bytes=5 * GIB)
    usable = {3: 10 * GIB, 4: 20 * GIB}
    facts = replace(FACTS, brokers=FOUR, usable_bytes=usable, roomiest_bytes={3: 5 * GIB})
    assert "or move to broker 4" in check_disk(facts, [(large,)]).reason
    facts = replace(facts, roomiest_bytes={3: 5 * GIB, 4: 5 * GIB})
    assert "broker 4" not in check_disk(facts, [(large,)]).reason


def test_what_producers_write_to_what_moves_needs_room_as_well() -> None:
    """100 GiB at 100 MiB/s take some 19 minutes; producers add 1 MiB/s for as long, of which
    retention may delete some."""
    moves = replace(MOVE, size_bytes=100 * GIB)
    facts = replace(FACTS, sizes={KEY: 100 * GIB}, produced={KEY: 1.0 * MIB})
    for usable, verdict in ((108, Verdict.OK), (106, Verdict.WARN)):
        facts = replace(facts, usable_bytes={3: usable * GIB})
        checks = preflight(facts, (moves,), throttle_bytes_per_s=100 * MIB)
        assert named(checks, "disk").verdict is verdict
    assert not lacking(
        named(checks, "disk").reason,
        *("broker 3", "101 GiB more", "1.1 GiB", "producers write", "19 m 11 s", "106 GiB free"),
        *("5% must stay free", "raise the throttle", "move less"),
    )
    checks = preflight(facts, (moves,), throttle_bytes_per_s=None)
    assert named(checks, "disk").verdict is Verdict.OK, "nobody knows how long it takes"
    facts = replace(facts, usable_bytes={3: 90 * GIB})
    checks = preflight(facts, (moves,), throttle_bytes_per_s=100 * MIB)
    assert "raise the throttle" not in named(checks, "disk").reason, "that alone does not do"


def test_what_is_written_comes_to_each_new_replica_while_old_ones_make_the_same_room() -> None:
    there = replace(MOVE, before=(1,), after=(2, 3), size_bytes=600)
    back = replace(MOVE, partition=1, before=(2,), after=(1,), size_bytes=500)
    assert peak_bytes([(back,), (there,)], {KEY: 10, back.key: 7}) == {1: 507, 2: 110, 3: 610}
