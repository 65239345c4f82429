"""Operations from preview to journal, on ours and on Kafka: what is confirmed is what happens."""

import asyncio
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kio.schema.errors import ErrorCode

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.errors import RefusedError
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic, OffsetSpec
from control.messages.produce_progress import ProduceProgress
from control.messages.produce_session import ProduceJob, ProduceSession
from control.model.ids import TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.move.check import Verdict
from control.move.journal_lines import DONE, FAILED, PARTLY
from control.operations.catalogue.groups.delete_group import DeleteGroup
from control.operations.catalogue.groups.delete_offsets import DeleteOffsets
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.operations.catalogue.moves.cancel import Cancel
from control.operations.catalogue.moves.cancel_after_wave import CancelAfterWave
from control.operations.catalogue.moves.change_throttle import ChangeThrottle
from control.operations.catalogue.moves.pause import Pause
from control.operations.catalogue.moves.reassign import Reassign
from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.catalogue.operation import Done, Operation
from control.operations.catalogue.topics.add_partitions import AddPartitions
from control.operations.catalogue.topics.configure_topic import ConfigureTopic
from control.operations.catalogue.topics.create_topic import CreateTopic
from control.operations.catalogue.topics.delete_records import DeleteRecords
from control.operations.catalogue.topics.delete_topic import DeleteTopic
from control.operations.catalogue.topics.elect_leaders import ElectLeaders
from control.operations.catalogue.topics.produce import Produce, ProduceRun
from control.operations.catalogue.topics.topic_templates import Template
from control.operations.errors import (
    ConflictError,
    GroupActiveError,
    InvalidInputError,
    NotConfirmedError,
    NotJournaledError,
    StalePreviewError,
)
from control.operations.operation_session import OperationSession
from control.views.tables.group_parts import member_rows, member_words
from tests.contract.group_clients import confluent_consumer, members
from tests.contract.operations_rig import unique
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.patience import patience_s
from tests.support.phrases import lacking
from tests.support.settle import eventually, wait_until


@pytest.fixture
async def session(bootstrap: str) -> AsyncIterator[OperationSession]:
    watched = WatchedCluster(bootstrap=bootstrap)
    async with OperationSession(watched, bus=bootstrap, who="tester") as opened:
        yield opened


async def _do(session: OperationSession, asked: Operation) -> Done:
    previewed = await session.preview(asked)
    return await session.perform(previewed, typed=previewed.word)


async def _filled(session: OperationSession, *, partitions: int = 3, records: int = 10) -> str:
    """A topic with records in partition 2."""
    topic = unique("topic")
    new = NewTopic(name=topic, partitions=partitions, replication_factor=2)
    await session.admin.create_topic(new)
    job = ProduceJob(topic=topic, partition=partitions - 1, count=records)
    await ProduceSession(session.admin.wire.settings, job).run_to_end()
    return topic


async def _configs(session: OperationSession, topic: str, *names: str) -> dict[str, str | None]:
    resource = ConfigResource(scope=ConfigScope.TOPIC, name=topic)
    entries = await session.admin.describe_configs(resource)
    return {entry.name: entry.value for entry in entries if entry.name in names}


async def test_a_topic_from_birth_to_death(session: OperationSession) -> None:
    name = unique("life")
    made = await _do(
        session,
        CreateTopic(
            topic=name,
            partitions=2,
            replication_factor=3,
            configs={"cleanup.policy": "compact,delete"},
            reason="a new service",
        ),
    )
    assert (made.view, made.params) == ("topic", {"topic": name})
    assert not lacking(made.words, f"{name} is created", "2 partitions", "replication factor 3")
    with pytest.raises(RefusedError) as taken:
        await session.preview(CreateTopic(topic=name))
    assert taken.value.code is ErrorCode.topic_already_exists
    grows = await session.preview(AddPartitions(topic=name, partitions=5))
    assert f"{name}: 2 → 5 partitions" in grows.effect.lines
    await session.perform(grows, typed=grows.word)
    with pytest.raises(InvalidInputError, match="has 5 partitions"):
        await session.preview(AddPartitions(topic=name, partitions=3))
    change = {"retention.ms": "1000", "cleanup.policy": "delete"}
    await _do(session, ConfigureTopic(topic=name, configs=change, reason="less to keep"))
    await eventually(lambda: _configs(session, name, *change), change)
    with pytest.raises(InvalidInputError, match=r"did you mean retention\.ms"):
        await session.preview(ConfigureTopic(topic=name, configs={"retentoin.ms": "1"}))
    with pytest.raises(InvalidInputError, match=rf"no config zzz; `partiscope.*:{name}.*` lists"):
        await session.preview(ConfigureTopic(topic=name, configs={"zzz": "1"}))
    previewed = await session.preview(DeleteTopic(topic=name))
    assert not lacking(previewed.effect.lines[0], name, "5 partitions", "15 replicas", "deleted")
    with pytest.raises(NotConfirmedError):
        await session.perform(previewed, typed="something else")
    await session.perform(previewed, typed=name)
    lines = {line.what: line for line in await session.journal.lines() if name in line.what}
    assert [line.outcome for line in lines.values()] == [DONE] * 4
    configured = lines[f"configure {name}"]
    assert configured.reason == "less to keep"
    assert configured.who == "tester"
    assert configured.before["cleanup.policy"] == "compact,delete"
    assert configured.after == change
    assert lines[f"add partitions to {name}"].after == {"partitions": 5}


async def test_a_topic_like_another_one_lies_where_its_preview_says(
    session: OperationSession,
) -> None:
    """What is given by hand wins over the other topic, and that over the template."""
    name, model = unique("made"), unique("model")
    configs = {"retention.ms": "5000", "segment.bytes": "2097152"}
    new = NewTopic(name=model, partitions=5, replication_factor=2, configs=configs)
    await session.admin.create_topic(new)
    asked = CreateTopic(
        topic=name,
        like=model,
        template=Template.SHORT_LIVED,
        configs={"segment.bytes": "1048576"},
    )
    previewed = await session.preview(asked)
    placed = {it.name: it.line for it in previewed.effect.changes if it.name.startswith("broker")}
    assert len(placed) == 3
    assert sum(int(line.split()[2]) for line in placed.values()) == 10
    await session.perform(previewed)
    (made,) = await session.admin.topics([name])
    there = {each.partition: each.replicas for each in made.partitions}
    command = previewed.effect.command
    assert isinstance(command, CreateTopic)
    assert there == command.assignment
    leads = Counter(replicas[0] for replicas in there.values())
    assert sorted(leads.values()) == [1, 2, 2]
    told = {int(broker.split()[1]): int(line.split()[4]) for broker, line in placed.items()}
    assert told == leads
    wanted = {"retention.ms": "5000", "segment.bytes": "1048576", "segment.ms": "600000"}
    assert await _configs(session, name, *wanted) == wanted
    with pytest.raises(RefusedError, match="nowhere"):
        await session.preview(CreateTopic(topic=unique("none"), like="nowhere"))
    crowded = CreateTopic(topic=unique("crowded"), partitions=1, replication_factor=9)
    with pytest.raises(RefusedError, match="eplication factor"):
        await session.preview(crowded)


async def test_what_was_previewed_is_done_whatever_comes_in_between(
    session: OperationSession,
) -> None:
    """Records that come after the preview of ``latest`` do not move what is committed."""
    topic, group = await _filled(session), unique("group")
    previewed = await session.preview(
        ResetOffsets(creates=True, group=group, topic=topic, to="latest")
    )
    assert f"{topic}-2: no commit → 10" in previewed.effect.lines
    job = ProduceJob(topic=topic, partition=2, count=5)
    await ProduceSession(session.admin.wire.settings, job).run_to_end()
    await session.perform(previewed, typed=group)
    committed = await session.admin.groups.committed_offsets(group)
    assert committed[TopicPartition(topic, 2)] == 10


async def test_producing_is_one_line_of_the_journal(session: OperationSession) -> None:
    """Not one for each record; what was acknowledged is in it, also when it is stopped."""
    topic, missing = await _filled(session), unique("missing")
    told: list[ProduceProgress] = []
    job = ProduceJob(topic=topic, partition=1, count=7)
    await _do(session, Produce(job=job, run=ProduceRun(told.append)))
    assert told[-1].acked == 7
    stopped = Produce(job=replace(job, count=1_000_000, rate=20.0))
    stopped.run.listen = lambda progress: stopped.run.stop() if progress.acked else None
    await _do(session, stopped)
    with pytest.raises(RefusedError):
        await _do(session, Produce(job=ProduceJob(topic=missing)))
    with pytest.raises(InvalidInputError, match="key"):
        await session.preview(Produce(job=replace(job, keys="uniform:none")))
    lines = await session.journal.lines()
    second, first = (line for line in lines if line.what == f"produce to {topic}")
    wanted = {"records": 7, "partitions": 1, "acknowledged": 7, "failed": 0}
    assert (first.outcome, first.after) == (DONE, wanted)
    acknowledged = second.after["acknowledged"]
    assert isinstance(acknowledged, int)
    assert 0 < acknowledged < 1_000
    assert second.outcome == PARTLY
    assert lacking(second.error, "stopped", f"{acknowledged} of 1,000,000 records") == []
    (failed,) = (line for line in lines if line.what == f"produce to {missing}")
    assert failed.outcome == FAILED


async def test_a_preview_that_is_confirmed_twice_is_performed_once(
    session: OperationSession,
) -> None:
    """A button clicked twice: both hear the same, and the journal has one line."""
    topic, group = await _filled(session), unique("group")
    previewed = await session.preview(
        ResetOffsets(creates=True, group=group, topic=topic, to="earliest")
    )
    first, second = await asyncio.gather(
        session.perform(previewed, typed=group), session.perform(previewed, typed=group)
    )
    assert first == second == await session.perform(previewed, typed=group)
    assert len([line for line in await session.journal.lines() if group in line.what]) == 1


async def test_a_stale_preview_is_refused(session: OperationSession) -> None:
    topic, group = await _filled(session), unique("group")
    configured = await session.preview(ConfigureTopic(topic=topic, configs={"retention.ms": "9"}))
    grown = await session.preview(AddPartitions(topic=topic, partitions=9))
    deleted = await session.preview(DeleteTopic(topic=topic))
    reset = await session.preview(
        ResetOffsets(creates=True, group=group, topic=topic, to="earliest")
    )
    cut = await session.preview(DeleteRecords(topic=topic, before="8", partitions=(2,)))
    resource = ConfigResource(scope=ConfigScope.TOPIC, name=topic)
    await session.admin.alter_configs(resource, {"retention.ms": "7"})
    await session.admin.create_partitions(topic, 4)
    await session.admin.groups.commit_offsets(group, {TopicPartition(topic, 2): 3})
    await session.admin.offsets.delete_records({TopicPartition(topic, 2): 2})
    await eventually(lambda: _configs(session, topic, "retention.ms"), {"retention.ms": "7"})
    for stale in (configured, grown, deleted, reset, cut):
        with pytest.raises(StalePreviewError):
            await session.perform(stale, typed=stale.word)
    assert await _configs(session, topic, "retention.ms") == {"retention.ms": "7"}
    assert (await session.admin.groups.committed_offsets(group)) == {TopicPartition(topic, 2): 3}


async def test_a_group_is_reset_on_all_its_topics_and_none_is_made_by_a_typo(
    session: OperationSession,
) -> None:
    first, second = [await _filled(session) for _ in range(2)]
    group = unique("billing")
    commits = {TopicPartition(topic, 2): 3 for topic in (first, second)}
    await session.admin.groups.commit_offsets(group, commits)
    for typo in (group[:-1], unique("nothing-like-it")):
        with pytest.raises(InvalidInputError, match="there is no group") as refused:
            await session.preview(ResetOffsets(group=typo, topic=first, to="latest"))
        assert lacking(str(refused.value), typo, "--create") == []
        assert (f"did you mean {group}?" in str(refused.value)) == group.startswith(typo)
    with pytest.raises(InvalidInputError, match="topic"):
        await session.preview(ResetOffsets(group=group, topic="", to="latest", partitions=(2,)))
    previewed = await session.preview(ResetOffsets(group=group, topic="", to="latest"))
    wanted = {TopicPartition(topic, number) for topic in (first, second) for number in range(3)}
    assert {change.name for change in previewed.effect.changes} == set(map(str, wanted))
    await session.perform(previewed, typed=group)
    committed = await session.admin.groups.committed_offsets(group)
    assert {committed[key] for key in wanted if key.partition == 2} == {10}
    (line,) = (it for it in await session.journal.lines() if group in it.what)
    assert lacking(line.what, group, "all its topics", "latest") == []


async def test_shifts_leave_partitions_without_a_commit_alone(session: OperationSession) -> None:
    topic, group = await _filled(session), unique("group")
    await session.admin.groups.commit_offsets(group, {TopicPartition(topic, 2): 9})
    previewed = await session.preview(ResetOffsets(group=group, topic=topic, to="-4"))
    moved, left_alone = previewed.effect.lines
    assert re.match(rf"{topic}-2: 9 → 5 \(4 .*re-read", moved)
    assert left_alone.startswith("2 partitions without a commit")
    assert left_alone.endswith(f"{topic}-0, {topic}-1")
    await session.perform(previewed, typed=group)
    assert await session.admin.groups.committed_offsets(group) == {TopicPartition(topic, 2): 5}
    ahead = await session.preview(ResetOffsets(group=group, topic=topic, to="+3"))
    assert re.match(rf"{topic}-2: 5 → 8 \(3 .*skipped", ahead.effect.lines[0])
    some = await session.preview(
        ResetOffsets(group=group, topic=topic, to="latest", partitions=(0, 1))
    )
    assert some.effect.lines == (f"{topic}-0: no commit → 0", f"{topic}-1: no commit → 0")
    assert some.effect.command.what == f"reset {group} on {topic} 0, 1 to latest"
    again = await session.preview(ResetOffsets(group=group, topic=topic, to="2026-01-01T00:00Z"))
    assert any(re.match(rf"{topic}-2: 5 → 0 \(5 .*re-read", it) for it in again.effect.lines)


async def test_groups_with_members_are_left_alone(session: OperationSession) -> None:
    topic, group = await _filled(session), unique("group")
    rack = {"client.id": "reader", "client.rack": "b"}
    member = confluent_consumer(session.bootstrap, group, **rack)
    try:
        member.subscribe([topic])

        def is_member() -> bool:
            member.poll(0.1)
            return bool(member.assignment())

        await asyncio.to_thread(wait_until, is_member, "the assignment")
        for asked in (
            ResetOffsets(group=group, topic=topic, to="earliest"),
            DeleteGroup(group=group),
        ):
            with pytest.raises(GroupActiveError, match=r"1 member: reader on /?127"):
                await session.preview(asked)
        lags = {TopicPartition(topic, 0): 0, TopicPartition(topic, 2): 7}
        (row,) = member_rows(await session.admin.groups.describe_group(group), lags)
        words = member_words(row)
        for told in ("reader", "127.0.0.1", "rack b", f"{topic} 0-2", "lag 7", f"{topic}-2"):
            assert told in words
    finally:
        await asyncio.to_thread(member.close)


async def test_an_offset_outside_a_log_is_refused_with_its_ends(session: OperationSession) -> None:
    """As Kafka refuses it; nothing is deleted or reset, in no partition."""
    topic, group = await _filled(session), unique("group")
    key, now = TopicPartition(topic, 2), int(time.time())
    with pytest.raises(RefusedError, match="OFFSET_OUT_OF_RANGE"):
        await session.admin.offsets.delete_records({key: 11})
    for to in ("11", "1000", "9223372036854775807", str(now), f"{now}000"):
        for asked in (
            DeleteRecords(topic=topic, before=to),
            DeleteRecords(topic=topic, before=to, partitions=(2,)),
            ResetOffsets(creates=True, group=group, topic=topic, to=to),
            ResetOffsets(creates=True, group=group, topic=topic, to=to, partitions=(2,)),
        ):
            with case(asked), pytest.raises(InvalidInputError) as refused:
                await session.preview(asked)
            words = str(refused.value)
            assert lacking(words, to, "beyond the end of", f"{key} (0 to 10)") == []
            assert ("if the time" in words) == to.startswith(str(now)), words
    with pytest.raises(InvalidInputError, match=rf"{topic}-0 \(0 to 0\), {topic}-1 \(0 to 0\);"):
        await session.preview(DeleteRecords(topic=topic, before="10"))
    first = await session.admin.offsets.list_offsets([key], OffsetSpec.EARLIEST)
    assert first[key].offset == 0
    await session.admin.offsets.delete_records({key: 4})
    with pytest.raises(InvalidInputError, match=rf"before the first .*{key} \(4 to 10\)"):
        await session.preview(
            ResetOffsets(creates=True, group=group, topic=topic, to="3", partitions=(2,))
        )
    assert not await session.admin.groups.committed_offsets(group)


async def test_a_shift_or_a_time_that_leads_out_of_the_log_is_told(
    session: OperationSession,
) -> None:
    topic, group = await _filled(session), unique("group")
    key = TopicPartition(topic, 2)
    await session.admin.groups.commit_offsets(group, {key: 9})
    for to, then, told in (
        ("+1000", 10, "shift leads beyond the end"),
        ("-1000", 0, "shift leads before the first record"),
        ("2100-01-01", 10, "every record is older"),
        ("2001-01-01", 0, "no record is older"),
    ):
        asked = ResetOffsets(group=group, topic=topic, to=to, partitions=(2,))
        effect = (await session.preview(asked)).effect
        with case(to):
            assert [(it.name, it.then) for it in effect.changes] == [(str(key), then)]
            assert lacking(effect.lines[-1], told, str(key)) == []


async def test_records_are_deleted_up_to_an_offset_or_a_time(session: OperationSession) -> None:
    topic = await _filled(session)
    key = TopicPartition(topic, 2)
    previewed = await session.preview(DeleteRecords(topic=topic, before="4", partitions=(2,)))
    assert previewed.effect.lines[0] == f"{key}: begins at 0 → 4 (4 offsets deleted)"
    await session.perform(previewed, typed=topic)
    first = await session.admin.offsets.list_offsets([key], OffsetSpec.EARLIEST)
    assert first[key].offset == 4
    left = await session.preview(DeleteRecords(topic=topic, before="3", partitions=(2,)))
    assert not left.is_needed
    assert lacking(left.effect.lines[0], "left alone", str(key)) == []
    with pytest.raises(InvalidInputError, match=r"has no partition 7 \(0–2\)"):
        await session.preview(DeleteRecords(topic=topic, before="1", partitions=(7,)))
    old = await session.preview(DeleteRecords(topic=topic, before="1d"))
    assert not old.is_needed
    assert lacking(old.effect.lines[0], "no record is older", str(key)) == []
    every = await session.preview(DeleteRecords(topic=topic, before="2100-01-01"))
    assert lacking(every.effect.lines[0], "begins at 4 → 10") == []
    assert lacking(every.effect.lines[1], "every record is older", str(key)) == []
    await _do(session, DeleteRecords(topic=topic, before="latest"))
    first = await session.admin.offsets.list_offsets([key], OffsetSpec.EARLIEST)
    assert first[key].offset == 10
    compacted = NewTopic(
        name=unique("compacted"),
        partitions=1,
        replication_factor=1,
        configs={"cleanup.policy": "compact"},
    )
    await session.admin.create_topic(compacted)
    with pytest.raises(InvalidInputError, match="is compacted only"):
        await session.preview(DeleteRecords(topic=compacted.name, before="latest"))


async def test_offsets_of_a_topic_and_then_the_group_are_deleted(session: OperationSession) -> None:
    topic, other, group = await _filled(session), await _filled(session), unique("team/a[/b]")
    commits = {TopicPartition(topic, 2): 3, TopicPartition(other, 0): 0}
    await session.admin.groups.commit_offsets(group, commits)
    await _do(session, DeleteOffsets(group=group, topic=topic))
    left = await session.admin.groups.committed_offsets(group)
    assert left == {TopicPartition(other, 0): 0}
    nothing = await session.preview(DeleteOffsets(group=group, topic=topic))
    assert not nothing.is_needed
    await _do(session, DeleteGroup(group=group))
    assert group not in {each.group_id for each in await session.admin.groups.list_groups()}
    with pytest.raises(InvalidInputError, match="there is no group"):
        await session.preview(DeleteGroup(group=group))


async def test_offsets_of_a_topic_that_a_member_reads_are_kept_and_those_of_another_are_not(
    session: OperationSession,
) -> None:
    read, old, group = await _filled(session), await _filled(session), unique("readers")
    admin, where = session.admin, session.admin.wire.settings.bootstrap
    commits = {TopicPartition(topic, 2): 3 for topic in (read, old)}
    await admin.groups.commit_offsets(group, commits)
    stale = await session.preview(DeleteOffsets(group=group, topic=read))
    consumer = confluent_consumer(where, group)
    consumer.subscribe([read])
    try:
        await asyncio.to_thread(wait_until, lambda: consumer.poll(0.1) is not None, "it reads")
        with pytest.raises(GroupActiveError, match=f"1 member that reads {read}: ") as told:
            await session.preview(DeleteOffsets(group=group, topic=read))
        assert "stop its consumers" in told.value.next_step
        with pytest.raises(GroupActiveError):
            await session.perform(stale, typed=stale.word)
        with pytest.raises(RefusedError) as refused:
            await admin.groups.delete_offsets(group, [TopicPartition(read, 2)])
        assert refused.value.code is ErrorCode.group_subscribed_to_topic
        assert "stop the group's consumers" in refused.value.next_step
        await _do(session, DeleteOffsets(group=group, topic=old))
    finally:
        consumer.close()
    assert set(await admin.groups.committed_offsets(group)) == {TopicPartition(read, 2)}


async def test_only_named_topics_are_elected(session: OperationSession) -> None:
    topic = await _filled(session)
    assert not (await session.preview(ElectLeaders(topics=(f"{topic}*",)))).is_needed
    with pytest.raises(RefusedError):
        await session.preview(ElectLeaders(topics=("no-such-topic",)))


async def test_a_change_that_fails_is_in_the_journal_with_its_reason(
    session: OperationSession,
) -> None:
    """Somebody else was quicker."""
    topic = unique("taken")
    previewed = await session.preview(CreateTopic(topic=topic, partitions=1))
    await session.admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))
    with pytest.raises(RefusedError):
        await session.perform(previewed)
    (line,) = [line for line in await session.journal.lines() if topic in line.what]
    assert line.outcome == FAILED
    assert "already exists" in line.error


async def test_a_value_that_the_cluster_does_not_take_is_told_by_the_preview(
    session: OperationSession,
) -> None:
    topic = await _filled(session)
    with pytest.raises(RefusedError, match=r"retention\.ms"):
        await session.preview(ConfigureTopic(topic=topic, configs={"retention.ms": "-7"}))


async def test_without_a_journal_nothing_is_changed(
    our_cluster: LocalCluster, tmp_path: Path
) -> None:
    """The bus is another cluster, which hangs: the operation waits, and is refused or done."""
    with LocalCluster(tmp_path / "bus", brokers=1) as bus:
        patient = WatchedCluster(bootstrap=our_cluster.bootstrap, journal_hold_s=20.0)
        hasty = WatchedCluster(bootstrap=our_cluster.bootstrap, journal_hold_s=1.0)
        name = unique("held")
        async with (
            OperationSession(patient, bus=bus.bootstrap) as waits,
            OperationSession(hasty, bus=bus.bootstrap) as refuses,
        ):
            await _do(waits, CreateTopic(topic=unique("first"), partitions=1))
            (broker,) = bus.ids
            bus.processes[broker].send_signal(signal.SIGSTOP)
            previewed = await refuses.preview(CreateTopic(topic=name, partitions=1))
            with pytest.raises(NotJournaledError):
                await refuses.perform(previewed)
            async with KafkaAdmin.to(our_cluster.bootstrap) as admin:
                assert name not in {topic.name for topic in await admin.topics()}
            kept = await waits.preview(CreateTopic(topic=name, partitions=1))
            doing = asyncio.create_task(waits.perform(kept))
            with pytest.raises(TimeoutError):  # the subject: it is held, not done nor refused
                await asyncio.wait_for(asyncio.shield(doing), patience_s(0.5))
            bus.processes[broker].send_signal(signal.SIGCONT)
            await doing
            with suppress(RefusedError):
                lines = [line for line in await waits.journal.lines() if name in line.what]
            assert DONE in {line.outcome for line in lines}


async def _planned(session: OperationSession, topic: str) -> Reassign:
    """Partition 0 of the topic on other brokers."""
    (found,) = await session.admin.topics([topic])
    brokers = (await session.admin.describe_cluster()).brokers
    here = found.partitions[0].replicas
    left = [broker.id for broker in brokers if broker.id not in here]
    target = {TopicPartition(topic, 0): (left[0], *here[1:])}
    return Reassign(proposal=await session.planning.proposal(target), throttle="none")


async def test_a_reassignment_and_its_controls_from_preview_to_journal(
    session: OperationSession,
) -> None:
    """Nobody carries it out: the bus has what was asked for, each act in one line."""
    topic = await _filled(session)
    asked = await _planned(session, topic)
    previewed = await session.preview(asked)
    review = previewed.effect.review
    assert review is not None
    assert all(check.verdict is not Verdict.FAIL for check in review.checks)
    assert "every wave" in str(review.checks)
    assert previewed.effect.lines[0].startswith("Move 1 replica, ")
    second = await session.preview(asked)
    done, again = await asyncio.gather(
        session.perform(previewed, reason="told at the end"),
        session.perform(previewed, reason="told at the end"),
    )
    move = done.params["move"]
    assert again == done
    assert (await session.moves.get(move)).reason == "told at the end"
    whats = {line.what for line in await session.journal.lines()}
    assert "the reassignment" not in whats, "its command is its line"
    with pytest.raises(ConflictError, match=f"{move} of tester moves 1 of "):
        await session.perform(second)
    refused = await session.preview(asked)
    assert refused.effect.refusal is not None
    with pytest.raises(ConflictError, match="other operators: "):
        await session.perform(refused)
    controls: tuple[Operation, ...] = (
        Pause(move=move, reason="too loud"),
        ChangeThrottle(move=move, throttle="1MiB", reason="too loud"),
        CancelAfterWave(move=move, reason="too loud"),
        Cancel(move=move, reason="too loud"),
    )
    for each in controls:
        assert (await _do(session, each)).words == f"asked to {each.what}"
    wanted = {each.what for each in controls}
    lines = [line for line in await session.journal.lines() if line.what in wanted]
    assert {line.what for line in lines} == wanted
    assert {(line.outcome, line.reason, line.who) for line in lines} == {
        (DONE, "too loud", "tester")
    }
    with pytest.raises(InvalidInputError, match=r"is less than 1\.0 KiB/s"):
        await session.preview(ChangeThrottle(move=move, throttle="9"))
    with pytest.raises(InvalidInputError, match="no operation mv-none"):
        await session.preview(Cancel(move="mv-none"))
    with pytest.raises(InvalidInputError, match="moved no partition"):
        await session.preview(RollBack(move=move))


async def test_a_plan_of_partitions_that_lie_elsewhere_by_now_is_refused(
    session: OperationSession,
) -> None:
    topic = await _filled(session)
    asked = await _planned(session, topic)
    previewed = await session.preview(asked)
    (change,) = asked.proposal.changes
    await session.admin.alter_reassignments({change.key: change.after})

    async def replicas() -> tuple[int, ...]:
        (found,) = await session.admin.topics([topic])
        return tuple(found.partitions[0].replicas)

    await eventually(replicas, change.after)
    with pytest.raises(StalePreviewError) as stale:
        await session.perform(previewed)
    for told in (str(change.key), str(list(change.after)), str(list(change.before))):
        assert told in str(stale.value)
    assert not [state for state in await session.moves.list() if topic in str(state.changes)]


async def test_a_cluster_that_hangs_after_the_preview_is_told_as_that(tmp_path: Path) -> None:
    """Not after as long as clients wait for a broker that may come back."""
    with LocalCluster(tmp_path / "hangs", brokers=1) as cluster:
        watched = WatchedCluster(bootstrap=cluster.bootstrap)
        async with OperationSession(watched, bus=cluster.bootstrap) as session:
            await _do(session, CreateTopic(topic="orders", partitions=1))
            elected = await session.preview(ElectLeaders())
            configured = await session.preview(
                ConfigureTopic(topic="orders", configs={"retention.ms": "9000"})
            )
            (broker,) = cluster.ids
            cluster.processes[broker].send_signal(signal.SIGSTOP)
            refused = await asyncio.gather(
                session.perform(elected),
                session.perform(configured),
                session.preview(Pause(move="mv-1")),
                return_exceptions=True,
            )
            cluster.processes[broker].send_signal(signal.SIGCONT)
            assert [str(error).partition(" within")[0] for error in refused] == [
                f"{cluster.bootstrap} did not answer"
            ] * 3


async def test_deleting_a_topic_in_use_names_its_readers_bytes_and_writers(
    session: OperationSession, bootstrap: str
) -> None:
    name, group, left = unique("used"), unique("reader"), unique("left")
    await session.admin.create_topic(NewTopic(name=name, partitions=2, replication_factor=1))
    idle = await session.preview(DeleteTopic(topic=name))
    assert not any(group in note or "producers write" in note for note in idle.effect.notes)
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(20):
        producer.produce(name, b"x" * 1_000)
    producer.flush()
    del producer
    await session.admin.groups.commit_offsets(left, {TopicPartition(name, 0): 1})
    with members(1, bootstrap, group, name) as (member,):
        await eventually(lambda: asyncio.sleep(0, bool(member.assigned)), True)
        notes = "\n".join((await session.preview(DeleteTopic(topic=name))).effect.notes)
    wanted = ("KiB on all replicas", "gone for good", f"producers write to {name}")
    readers = (f"group {group} reads {name}: 1 member", f"group {left} has offsets in {name}")
    assert lacking(notes, *wanted, *readers) == [], notes
