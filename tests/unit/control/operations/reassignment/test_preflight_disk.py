"""Pre-flight's check of disks: what is there now, not what was there when the plan was made."""

from dataclasses import replace
from typing import Any

import pytest

from control.kafka.ports import LogDir, ReplicaLog
from control.model.ids import TopicPartition
from control.move.check import Check, Verdict
from control.move.events import EventKind, Outcome
from control.operations.executor import run as reassign_run
from control.operations.reassignment.disks.preflight_disk import check_disk, peak_bytes
from control.operations.reassignment.facts import read_facts, topology_of
from control.operations.reassignment.planning import preview_of
from control.operations.reassignment.preflight import preflight
from planner.proposal import PartitionChange, Proposal
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


async def test_of_several_directories_what_new_replicas_may_come_to_counts() -> None:
    cluster: Any = FakeCluster({KEY: FROM})
    failed = LogDir(
        broker=1, path="/c", total_bytes=None, usable_bytes=None, replicas=(), is_failed=True
    )
    cluster.logs = (
        *(log_dir(1, "/a", 5 * GIB), log_dir(1, "/b", 6 * GIB), failed),
        *(log_dir(2, "/a", 7 * GIB), replace(log_dir(2, "/b", 9 * GIB), is_cordoned=True)),
        *(log_dir(3, "/a", 8 * GIB, x=MIB), log_dir(3, "/b", 8 * GIB), log_dir(3, "/c", GIB)),
        *(log_dir(4, "/a", None), log_dir(4, "/b", GIB)),
        *(replace(log_dir(5, "/a", 4 * GIB), is_cordoned=True), replace(failed, broker=5)),
    )
    facts = await read_facts(cluster)
    assert facts.usable_bytes == {1: 11 * GIB, 2: 7 * GIB, 3: 9 * GIB, 5: 4 * GIB}
    assert facts.log_dirs.keys() == {1, 2, 3, 4, 5}
    capacities = {it.id: it.capacity_bytes for it in topology_of(facts).brokers}
    assert capacities[1] == round(10 * GIB * 0.95), "Kafka fills them by number of replicas"
    assert capacities[3] == round(3 * GIB * 0.95)
    assert facts.cordoned == {5}, "Kafka refuses it: its only live directory is cordoned"


def judged(free: dict[str, int], *waves: tuple[PartitionChange, ...], **held: int) -> Check:
    """A move to broker 3, whose directories have so much free and hold so many replicas."""
    log_dirs = tuple(
        replace(
            log_dir(3, f"/{name}", usable, **{f"{name}{n}": MIB for n in range(held.get(name, 0))}),
            total_bytes=1000 * GIB + usable,
        )
        for name, usable in free.items()
    )
    facts = replace(FACTS, usable_bytes={3: sum(free.values())}, log_dirs={3: log_dirs})
    return check_disk(facts, waves)


def replicas(*sizes: int) -> tuple[PartitionChange, ...]:
    return tuple(replace(MOVE, partition=n, size_bytes=size) for n, size in enumerate(sizes))


def test_the_directory_with_the_fewest_replicas_is_judged_whatever_is_free_elsewhere() -> None:
    free = {"small": 150 * MIB, "big": 300 * MIB}
    check = judged(free, replicas(80 * MIB, 80 * MIB), big=2)
    assert check.verdict is Verdict.FAIL
    told = ("160 MiB more in /small", "2 of 2 replicas", "150 MiB free", "fewest replicas")
    assert not lacking(check.reason, *told)
    assert judged(free, replicas(80 * MIB, 80 * MIB), big=1).verdict is Verdict.FAIL, "a tie"
    assert judged(free, replicas(80 * MIB, 80 * MIB)).verdict is Verdict.OK, "one each"
    assert judged(free, replicas(80 * MIB, 80 * MIB), small=2).verdict is Verdict.OK
    assert judged(free, replicas(80 * MIB, 80 * MIB), small=1).verdict is Verdict.OK
    assert judged(free, replicas(160 * MIB, 1), small=0).verdict is Verdict.FAIL, "either first"
    assert judged(free, replicas(145 * MIB)).verdict is Verdict.FAIL
    check = judged(free, replicas(145 * MIB), small=1)
    assert check.verdict is Verdict.OK, "it goes to the other one"


def test_waves_put_an_order_on_what_arrives() -> None:
    free = {"small": 150 * MIB, "big": 300 * MIB}
    large, tiny = replicas(140 * MIB, 1, 2, 3)[:1], replicas(0, 1, 2, 3)[1:]
    assert judged(free, tiny[:1], large, small=1).verdict is Verdict.OK, "a tie that tiny makes"
    both = judged(free, large, replicas(0, 0, 0, 0, 140 * MIB)[4:])
    assert both.verdict is Verdict.OK, "one each, whichever first"
    third = judged(free, large, tiny[:1], replicas(0, 0, 0, 0, 140 * MIB)[4:])
    assert third.verdict is Verdict.FAIL


def test_directories_on_one_file_system_count_once_and_it_is_told_that_this_is_assumed() -> None:
    shared = tuple(log_dir(3, path, 150 * MIB) for path in ("/a", "/b"))
    facts = replace(FACTS, usable_bytes={3: 150 * MIB}, log_dirs={3: shared})
    check = check_disk(facts, [replicas(80 * MIB, 80 * MIB)])
    assert check.verdict is Verdict.FAIL
    assert not lacking(check.reason, "160 MiB more", "/a and /b", "150 MiB free", "equal free")
    assert check_disk(facts, [replicas(70 * MIB, 70 * MIB)]).verdict is Verdict.OK
    apart = (shared[0], log_dir(3, "/b", 150 * MIB, a=60 * GIB, b=60 * GIB))
    facts = replace(facts, log_dirs={3: apart})
    assert check_disk(facts, [replicas(80 * MIB)]).verdict is Verdict.OK
    assert "equal free" not in check_disk(facts, [replicas(80 * MIB, 80 * MIB)]).reason, (
        "one file system could not hold what both hold"
    )


def test_a_cordoned_directory_and_a_failed_one_are_no_places() -> None:
    small, big = log_dir(3, "/small", 150 * MIB), log_dir(3, "/big", 300 * MIB)
    for state in ({"is_cordoned": True}, {"is_failed": True}):
        for closed, verdict in ((big, Verdict.FAIL), (small, Verdict.OK)):
            found = tuple(replace(it, **state) if it is closed else it for it in (small, big))  # type: ignore[arg-type]
            free = 150 * MIB if closed is big else 300 * MIB
            facts = replace(FACTS, usable_bytes={3: free}, log_dirs={3: found})
            check = check_disk(facts, [replicas(160 * MIB)])
            is_told = "is_failed" in state and verdict is Verdict.OK
            assert check.verdict is (Verdict.WARN if is_told else verdict)
            assert ("/small of broker 3 has failed" in check.reason) == is_told


def test_what_leaves_in_earlier_waves_makes_room_where_it_lay() -> None:
    log_dirs = (log_dir(3, "/a", 5 * GIB, u=2 * GIB), log_dir(3, "/b", 9 * GIB, v=0, w=0))
    facts = replace(FACTS, usable_bytes={1: 90 * GIB, 3: 14 * GIB}, log_dirs={3: log_dirs})
    leaves = replace(MOVE, topic="u", before=(3, 2), after=(1, 2), size_bytes=9 * GIB)
    other = replace(leaves, topic="v")
    large = replace(MOVE, size_bytes=6 * GIB)
    check = check_disk(facts, [(leaves,), (large,)])
    assert check.verdict is Verdict.OK
    assert "file.delete.delay.ms" in check.reason
    assert check_disk(facts, [(leaves, large)]).verdict is Verdict.FAIL
    assert check_disk(facts, [(other,), (large,)]).verdict is Verdict.FAIL, "that lay elsewhere"
    small = replace(MOVE, size_bytes=4 * GIB)
    assert "file.delete" not in check_disk(facts, [(leaves,), (small,)]).reason


async def test_what_running_reassignments_still_bring_needs_room_as_well() -> None:
    other = TopicPartition("u", 0)
    cluster: Any = FakeCluster({KEY: (1, 2), other: (1, 2)})
    cluster.begin(other, (3, 2))
    cluster.logs = (
        log_dir(1, "/d", 9 * GIB, t=4 * GIB, u=5 * GIB),
        log_dir(3, "/d", 9 * GIB, u=GIB),
    )
    moves = replace(MOVE, size_bytes=4 * GIB)
    check = check_disk(await read_facts(cluster), [(moves,)])
    assert "or move" not in check.reason
    assert check.verdict is Verdict.OK, "4 GiB, and 4 of 5 GiB"
    log_dirs = (log_dir(3, "/a", 7 * GIB, u=GIB), log_dir(3, "/b", 9 * GIB))
    cluster.logs = (cluster.logs[0], *log_dirs)
    assert check_disk(await read_facts(cluster), [(moves,)]).verdict is Verdict.OK
    cluster.logs = (cluster.logs[0], log_dirs[0], log_dir(3, "/b", 9 * GIB, v=0, w=0))
    check = check_disk(await read_facts(cluster), [(moves,)])
    assert check.verdict is Verdict.FAIL, "/a takes the rest of u, and t"
    assert "8.0 GiB more in /a" in check.reason
    cluster.logs = (cluster.logs[0], log_dir(3, "/d", 7 * GIB, u=GIB))
    check = check_disk(await read_facts(cluster), [(moves,)])
    assert check.verdict is Verdict.FAIL
    assert "broker 3 needs 8.0 GiB more" in check.reason


def test_a_broker_is_named_only_where_its_tightest_directory_can_take_it() -> None:
    large = replace(MOVE, size_bytes=5 * GIB)
    usable = {3: GIB, 4: 20 * GIB}
    facts = replace(FACTS, brokers=FOUR, usable_bytes=usable)
    assert "or move to broker 4" in check_disk(facts, [(large,)]).reason
    apart = (log_dir(4, "/a", 15 * GIB), log_dir(4, "/b", 5 * GIB))
    assert "broker 4" not in check_disk(replace(facts, log_dirs={4: apart}), [(large,)]).reason


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
