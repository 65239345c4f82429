"""Topics that are deleted while they move; operations that end midway."""

from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import RefusedError
from control.move.check import Verdict
from control.move.commands import ReassignCommand, encode_command
from control.move.decoding import decode_command
from control.move.events import Event, EventKind, Outcome
from control.move.state import NOTES_MAX, OperationState
from control.operations.executor import cancellation as taking_back
from control.operations.executor.debounce import LASTING_READINGS, LASTING_S
from control.operations.executor.executor import Executor, ExecutorSettings
from control.operations.reassignment.facts import read_facts
from control.operations.reassignment.planning import preview_of
from control.operations.reassignment.topic_ids import facts_of
from planner.proposal import PartitionChange, Proposal
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.conftest import PassS
from tests.unit.control.operations.fake_cluster import (
    ELSEWHERE,
    FROM,
    FakeCluster,
    FakeContext,
    begun,
    change,
    command_of,
    idle,
    run,
)

A, B, C = change("a"), change("b"), change("c")
RATE = 1 << 20
TOGETHER = WaveRules(partitions=2)


def cluster_of(command: ReassignCommand) -> FakeCluster:
    return FakeCluster({change.key: FROM for change in command.changes})


def long_readings(pass_s: PassS) -> list[Callable[[], None]]:
    """Steps until what is missing at each is believed to be gone."""
    return [pass_s(LASTING_S / LASTING_READINGS)] * (LASTING_READINGS + 1)


async def test_a_topic_that_is_deleted_midway_is_left_out_and_told_once(pass_s: PassS) -> None:
    """B while it moves, C before its turn; the throttle of both goes with them."""
    command = command_of(A, B, C, throttle=RATE, waves=TOGETHER)
    cluster, context = cluster_of(command), FakeContext(command)

    def delete() -> None:
        for topic in ("b", "c"):
            cluster.delete(topic)
        cluster.arrive(A.key)

    ended = await run(cluster, context, delete, *long_readings(pass_s))
    assert ended.outcome is Outcome.DONE
    assert not lacking(ended.message, "done", "1 of 1 partition moved", "2 of deleted topics")
    for note, name in zip(context.said(EventKind.NOTE), "bc", strict=True):
        assert not lacking(note, f"topic {name} was deleted", "1 partition", "left out")
    assert ended.progress is not None
    assert (ended.progress.partitions_done, ended.progress.partitions_total) == (1, 1)
    assert cluster.shown() == {}


async def test_each_of_very_many_deleted_topics_is_told_once(pass_s: PassS) -> None:
    many = [change(f"t{n}") for n in range(2 * NOTES_MAX)]
    command = command_of(A, *many)
    cluster, context = cluster_of(command), FakeContext(command)

    def delete() -> None:
        for one in many:
            cluster.delete(one.topic)

    await run(cluster, context, delete, *long_readings(pass_s), cluster.arrive)
    assert len(context.said(EventKind.NOTE)) == len(many)


async def test_after_a_crash_a_wave_of_deleted_topics_is_over_at_once() -> None:
    command = command_of(A, B)
    cluster = cluster_of(command)
    cluster.delete("a")
    ended = await run(cluster, begun(command, wave=1), idle, cluster.arrive)
    assert ended.outcome is Outcome.DONE
    assert cluster.placed == {B.key: B.after}


async def test_readings_that_know_of_no_topic_yet_delete_nothing(pass_s: PassS) -> None:
    command = command_of(A)
    cluster, context = cluster_of(command), FakeContext(command)
    kept = dict(cluster.placed)

    def forget() -> None:
        kept.update(cluster.placed)
        cluster.placed.clear()
        cluster.targets.clear()

    def remember() -> None:
        cluster.placed.update(kept)
        cluster.targets[A.key] = A.after

    soon = [pass_s(LASTING_S / LASTING_READINGS / 10)] * (LASTING_READINGS * 5)
    steps = (forget, *soon, remember, cluster.arrive)
    assert (await run(cluster, context, *steps)).message == "done: 1 of 1 partition moved"


async def test_a_way_back_leaves_out_what_was_deleted_or_made_anew() -> None:
    """Of the topic that was made anew partition 1 lacks, and 0 lies elsewhere: it is another's."""
    anew = (change("a", 0), change("a", 1))
    command = command_of(*anew, B, C, is_strict=False)
    cluster = cluster_of(command)
    del cluster.placed[anew[1].key]
    cluster.placed[anew[0].key] = ELSEWHERE
    cluster.delete("c")
    ended = await run(cluster, FakeContext(command), cluster.arrive)
    assert ended.outcome is Outcome.FAILED
    assert cluster.placed == {anew[0].key: ELSEWHERE, B.key: B.after}
    elsewhere, anew_told, deleted = ended.notes
    assert not lacking(elsewhere, "a-0", "on [4, 2]", "left as it is")
    assert not lacking(anew_told, "topic a", "created anew", "1 partition", "left out")
    assert not lacking(deleted, "topic c was deleted", "1 partition", "left out")

    context = FakeContext(command_of(C, is_strict=False))
    assert (await run(cluster, context)).message == "partitions: c-0 does not exist"


async def test_a_topic_that_is_created_anew_midway_is_another_topic() -> None:
    """B while it moves; C when it was there, and lies elsewhere by now; D before its turn, with the
    replicas of the old one, which would be moved."""
    d = change("d")
    command = command_of(A, B, C, d, throttle=RATE, waves=WaveRules(partitions=3))
    cluster, context = cluster_of(command), FakeContext(command)

    def create_anew() -> None:
        cluster.arrive(C.key)
        for topic, placed in (("b", ELSEWHERE), ("c", ELSEWHERE), ("d", FROM)):
            cluster.create_anew(topic, {0: placed})

    ended = await run(cluster, context, create_anew, cluster.arrive)
    assert ended.outcome is Outcome.DONE
    assert not lacking(ended.message, "done", "1 of 1 partition moved", "3 of deleted topics")
    for name, note in zip("bcd", context.said(EventKind.NOTE), strict=True):
        assert not lacking(note, f"topic {name}", "created anew", "1 partition", "left out")
    assert cluster.placed[B.key] == cluster.placed[C.key] == ELSEWHERE
    assert cluster.placed[d.key] == FROM, "it was not moved"
    assert ended.refused == {}
    assert cluster.shown() == {}


async def test_a_rollback_leaves_out_a_topic_that_was_created_anew_whatever_its_replicas() -> None:
    command = command_of(A, B)
    cluster, context = cluster_of(command), FakeContext(command)
    ended = await run(cluster, context, cluster.arrive, cluster.arrive)
    cluster.create_anew("b", {0: B.after})
    back = command_of(
        *ended_changes(ended), is_strict=False, rollback_of="mv-1", topic_ids=ended.topic_ids
    )
    known: Any = cluster
    facts = facts_of(back.topic_ids, await read_facts(known, changes=back.changes))
    preview = preview_of(facts, back.proposal, throttle="none", rolled_back="mv-1")
    assert [c.key for c in preview.proposal.changes] == [A.key]
    (existence, *_) = preview.checks
    assert existence.verdict is Verdict.WARN
    assert not lacking(existence.reason, "b-0 was deleted", "created anew", "left out")
    assert "a-0" not in existence.reason

    context = FakeContext(back)
    assert (await run(cluster, context, cluster.arrive)).outcome is Outcome.DONE
    assert cluster.placed == {A.key: FROM, B.key: B.after}

    cluster.create_anew("a", {0: A.after})
    ended = await run(cluster, FakeContext(back))
    assert ended.outcome is Outcome.REFUSED
    both = [words for it in "ab" for words in (f"{it}-0 was deleted", "created anew")]
    assert not lacking(ended.message, "partitions", *both)


async def test_a_cancel_leaves_a_topic_that_was_created_anew_alone() -> None:
    """Also where somebody moves the new one to the same brokers, or ordered it otherwise."""
    command = command_of(A, B, waves=TOGETHER)
    cluster, context = cluster_of(command), FakeContext(command)

    def create_anew() -> None:
        cluster.create_anew("a", {0: FROM})
        cluster.begin(A.key, A.after)
        cluster.create_anew("b", {0: FROM[::-1]})
        context.script.is_cancelled = True

    ended = await run(cluster, context, create_anew)
    assert ended.outcome is Outcome.CANCELLED
    assert cluster.targets == {A.key: A.after}
    assert cluster.placed[B.key] == FROM[::-1]


def ended_changes(ended: OperationState) -> tuple[PartitionChange, ...]:
    """Of the way back."""
    return Proposal(name="mv-1", changes=ended.changes).inverse().changes


def test_a_command_carries_the_ids_of_its_topics() -> None:
    command = command_of(A, topic_ids={"a": "7f"}, rollback_of="mv-1")
    assert decode_command(encode_command(command)) == command


async def ended_midway(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, past: FakeContext, why: RefusedError
) -> Executor:
    """An executor whose operation cannot go on."""
    executor = Executor(ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1")), say=lambda _: None)
    executor.memory.take(past.command)
    for event in past.events:
        executor.memory.apply(event)

    async def emit(event: Event) -> None:
        executor.memory.apply(event)

    class Owner:
        async def hold(self) -> None:
            """Ours for good."""

    owner: Any = Owner()
    monkeypatch.setattr(executor, "emit", emit)
    monkeypatch.setattr(executor, "_admin_of", lambda _: cluster)
    await executor._fail(owner, past.command, why)
    return executor


async def test_what_is_in_flight_is_taken_back_before_the_throttle_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = command_of(A, B)
    cluster = cluster_of(command)
    cluster.begin(A.key, A.after)
    cluster.begin(B.key, B.after)
    why = RefusedError(ErrorCode.policy_violation, what="something")
    executor = await ended_midway(monkeypatch, cluster, begun(command, wave=1), why)
    state = executor.memory.state_of(command.operation_id)
    assert state.outcome is Outcome.FAILED
    assert state.message.endswith("; 1 partition in flight went back")
    assert cluster.placed[A.key] == FROM
    assert cluster.targets == {B.key: B.after}, "its wave never began: somebody else's"


async def test_what_could_not_be_taken_back_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    command = command_of(A)
    cluster = cluster_of(command)
    cluster.failure = why = RefusedError(ErrorCode.cluster_authorization_failed, what="listing")
    executor = await ended_midway(monkeypatch, cluster, begun(command, wave=1), why)
    message = executor.memory.state_of(command.operation_id).message
    assert not lacking(message, "could not be cancelled", "continue unthrottled", "listing")


async def test_a_cancel_that_is_refused_ends_and_names_what_still_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(taking_back, "PACE_S", 0.0)
    command = command_of(A, B, waves=TOGETHER)
    cluster, context = cluster_of(command), begun(command, wave=1)
    cluster.begin(A.key, A.after)
    cluster.begin(B.key, B.after)
    cluster.refusals[A.key] = RefusedError(ErrorCode.policy_violation, what="moving a-0")
    context.script.is_cancelled = True
    ended = await run(cluster, context)
    assert ended.outcome is Outcome.CANCELLED
    assert "a-0: still moves: moving a-0 was refused" in ended.message
    assert len(context.said(EventKind.NOTE)) == 1
    assert cluster.placed[B.key] == FROM
    assert len(cluster.asked) == taking_back.REFUSALS_MAX + 2, "B once, and its order"
