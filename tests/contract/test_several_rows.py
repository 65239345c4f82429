"""Operations on several topics or groups at once: one preview, one confirmation, each row told."""

import pytest

from control.kafka.ports import ConfigResource, ConfigScope, NewTopic, OffsetSpec
from control.messages.produce_session import ProduceJob, ProduceSession
from control.model.ids import TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue import form_named
from control.operations.catalogue.several import ROWS_MAX, several_of
from control.operations.errors import (
    InvalidInputError,
    NotConfirmedError,
    NothingDoneError,
    ProtectedTopicError,
)
from control.operations.operation_session import OperationSession
from tests.contract.operations_rig import unique
from tests.support.settle import eventually


async def _topics(session: OperationSession, count: int) -> tuple[str, ...]:
    """Of three partitions each, with ten records in the last."""
    stem = unique("several")
    names = tuple(f"{stem}-{number}" for number in range(count))
    for name in names:
        new = NewTopic(name=name, partitions=3, replication_factor=1)
        await session.admin.create_topic(new)
        job = ProduceJob(topic=name, partition=2, count=10)
        await ProduceSession(session.admin.wire.settings, job).run_to_end()
    return names


async def _left(session: OperationSession, names: tuple[str, ...]) -> set[str]:
    return {each.name for each in await session.topics()}.intersection(names)


async def test_topics_are_deleted_by_one_preview_and_a_row_that_fails_hides_no_other(
    bootstrap: str,
) -> None:
    watched = WatchedCluster(bootstrap=bootstrap)
    async with OperationSession(watched, bus=bootstrap, who="tester") as session:
        names = first, second, third = await _topics(session, 3)
        rows = (*names, "__consumer_offsets", "no-such-topic")
        previewed = await session.preview(several_of(form_named("delete_topic"), rows, {}))
        lines = previewed.effect.lines
        assert lines[:3] == tuple(f"{name}: 3 partitions, 3 replicas are deleted" for name in names)
        assert lines[3].startswith("✖ __consumer_offsets is ")
        assert lines[4].startswith("✖ no-such-topic is ")
        assert previewed.word == "3 topics"
        with pytest.raises(NotConfirmedError):
            await session.perform(previewed, typed=first)
        assert await _left(session, names) == set(names)

        await session.admin.delete_topic(second)
        await eventually(lambda: _left(session, names), {first, third})
        late = await session.preview(several_of(form_named("delete_topic"), (first, third), {}))
        done = await session.perform(previewed, typed="3 topics")
        assert done.words == "2 of 3 topics done"
        told = dict(line.split(": ", 1) for line in done.lines)
        assert told[first] == f"{first} is deleted"
        assert told[second].startswith("✖ not done: ")
        assert told[third] == f"{third} is deleted"
        await eventually(lambda: _left(session, names), set())
        assert await session.perform(previewed, typed="3 topics") is done

        (line, *_) = await session.journal.lines()
        assert line.what.split("; ") == [f"delete topic {name}" for name in names]
        assert line.outcome == "partly done"
        assert line.error == f"2 of 3 topics done, not {second}"
        with pytest.raises(NothingDoneError, match="not done"):
            await session.perform(late, typed=late.word)


async def test_topics_are_configured_and_emptied_together(bootstrap: str) -> None:
    watched = WatchedCluster(bootstrap=bootstrap, is_production=True)
    async with OperationSession(watched, bus=bootstrap) as session:
        names = await _topics(session, 2)
        form = form_named("configure_topic")
        values = {"configs": "retention.ms=1234567"}
        previewed = await session.preview(several_of(form, names, values))
        assert [line.partition(": ")[0] for line in previewed.effect.lines] == list(names)
        assert all("→ 1234567" in line for line in previewed.effect.lines)
        await session.perform(previewed, typed=previewed.word)
        for name in names:
            resource = ConfigResource(scope=ConfigScope.TOPIC, name=name)
            (entry,) = await session.admin.describe_configs(resource, ["retention.ms"])
            assert entry.value == "1234567"
        again = await session.preview(several_of(form, names, values))
        assert not again.is_needed
        with pytest.raises(InvalidInputError, match="banana"):
            await session.preview(several_of(form, names, {"configs": "retention.ms=banana"}))

        emptied = several_of(form_named("delete_records"), names, {"before": "latest"})
        previewed = await session.preview(emptied)
        assert previewed.effect.lines[0] == f"{names[0]}: 10 offsets deleted in 1 partition"
        assert previewed.word.endswith("/2 topics")
        await session.perform(previewed, typed=previewed.word)
        keys = [TopicPartition(name, 2) for name in names]
        begins = await session.admin.offsets.list_offsets(dict.fromkeys(keys, OffsetSpec.EARLIEST))
        assert {each.offset for each in begins.values()} == {10}


async def test_groups_are_deleted_together(bootstrap: str) -> None:
    async with OperationSession(WatchedCluster(bootstrap=bootstrap), bus=bootstrap) as session:
        (topic,) = await _topics(session, 1)
        groups = [unique("team/a,b") for _ in range(2)]
        for group in groups:
            await session.admin.groups.commit_offsets(group, {TopicPartition(topic, 2): 4})
        previewed = await session.preview(several_of(form_named("delete_group"), groups, {}))
        assert previewed.effect.lines[0] == f"{groups[0]} and 1 commit are deleted"
        done = await session.perform(previewed, typed="2 groups")
        assert done.words == "2 of 2 groups done"
        left = {each.group_id for each in await session.admin.groups.list_groups()}
        assert not left.intersection(groups)


async def test_rows_that_cannot_be_are_refused_at_once(bootstrap: str) -> None:
    form = form_named("delete_topic")
    for rows in ((), tuple(map(str, range(ROWS_MAX + 1)))):
        with pytest.raises(InvalidInputError, match="are marked"):
            several_of(form, rows, {})
    async with OperationSession(WatchedCluster(bootstrap=bootstrap), bus=None) as session:
        with pytest.raises(ProtectedTopicError):
            await session.preview(several_of(form, ["__consumer_offsets"], {}))
