"""Offsets of a share group are reset and deleted as Kafka's own tool resets and deletes them."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.model.ids import TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.groups.delete_group import DeleteGroup
from control.operations.catalogue.groups.delete_offsets import DeleteOffsets
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.operations.catalogue.operation import Operation
from control.operations.errors import GroupActiveError
from control.operations.operation_session import OperationSession
from tests.contract.operations_rig import unique
from tests.support.kafka_oracle import QUICK_START, KafkaCluster, kafka_libs, run_tool
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

pytestmark = pytest.mark.kafka_oracle

TOOLS = "org.apache.kafka.tools"
SHARE_CONSUMER = f"{TOOLS}.consumer.ConsoleShareConsumer"
RECORDS = 50
READ = 10


@pytest.fixture
async def session(kafka_today: KafkaCluster) -> AsyncIterator[OperationSession]:
    watched = WatchedCluster(bootstrap=kafka_today.bootstrap)
    async with OperationSession(watched, bus=kafka_today.bootstrap, who="tester") as opened:
        yield opened


def _tool(cluster: KafkaCluster, command: str, *args: str, stdin: str | None = None) -> str:
    server = ("--bootstrap-server", cluster.bootstrap)
    done = run_tool(command, *server, *args, stdin=stdin, version=cluster.version)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _starts(cluster: KafkaCluster, group: str) -> dict[TopicPartition, int]:
    """As kafka-share-groups tells them."""
    told = _tool(cluster, f"{TOOLS}.consumer.group.ShareGroupCommand", "--describe",
                 "--group", group)  # fmt: skip
    rows = [line.split() for line in told.splitlines() if line.startswith(group)]
    return {TopicPartition(row[1], int(row[2])): int(row[3]) for row in rows if row[3] != "-"}


async def _do(session: OperationSession, asked: Operation) -> list[str]:
    previewed = await session.preview(asked)
    await session.perform(previewed, typed=previewed.word)
    return list(previewed.effect.lines)


@contextmanager
def _reading(cluster: KafkaCluster, group: str, topic: str) -> Iterator[None]:
    """A member of the share group."""
    classes = ("-cp", f"{kafka_libs(cluster.version)}/*", SHARE_CONSUMER)
    read = ("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--group", group)
    process = subprocess.Popen(
        ("java", *QUICK_START, *classes, *read),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(WAIT_S)


async def _members(admin: KafkaAdmin, group: str) -> int:
    return len((await admin.groups.describe_group(group)).members)


async def test_start_offsets_are_reset_and_deleted_as_kafkas_tool_does(
    session: OperationSession, kafka_today: KafkaCluster
) -> None:
    """Takes twenty seconds: Kafka's tools run seven times."""
    topic, group = unique("shared"), unique("sharers")
    key, admin = TopicPartition(topic, 0), session.admin
    await admin.create_topic(NewTopic(name=topic, partitions=1, replication_factor=1))
    named = ("--alter", "--entity-type", "groups", "--entity-name", group)
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    _tool(kafka_today, f"{TOOLS}.ConfigCommand", *named, *earliest)
    records = "".join(f"{number}\n" for number in range(RECORDS))
    _tool(kafka_today, f"{TOOLS}.ConsoleProducer", "--topic", topic, stdin=records)
    read = ("--topic", topic, "--group", group, "--max-messages", str(READ))
    _tool(kafka_today, SHARE_CONSUMER, *read, "--timeout-ms", "20000")

    lines = await _do(session, ResetOffsets(group=group, topic=topic, to="20"))
    assert lines[0].startswith(f"{key}: ")
    assert "→ 20" in lines[0]
    assert "delivered again" in lines[-1]
    assert _starts(kafka_today, group) == {key: 20}
    _tool(kafka_today, f"{TOOLS}.consumer.group.ShareGroupCommand", "--reset-offsets", "--group",
          group, "--topic", topic, "--to-latest", "--execute")  # fmt: skip
    by_tool = await admin.groups.share_offsets(group)
    await _do(session, ResetOffsets(group=group, topic=topic, to="-5"))
    await _do(session, ResetOffsets(group=group, topic=topic, to="latest"))
    assert await admin.groups.share_offsets(group) == by_tool

    stale = await session.preview(ResetOffsets(group=group, topic=topic, to="earliest"))
    with _reading(kafka_today, group, topic):
        await eventually(lambda: _members(admin, group), 1, timeout_s=30)
        for asked in (
            ResetOffsets(group=group, topic=topic, to="earliest"),
            DeleteOffsets(group=group, topic=topic),
            DeleteGroup(group=group),
        ):
            with pytest.raises(GroupActiveError, match="it has 1 member"):
                await session.preview(asked)
        with pytest.raises(GroupActiveError):
            await session.perform(stale, typed=stale.word)
    await eventually(lambda: _members(admin, group), 0, timeout_s=60)

    assert await _do(session, DeleteOffsets(group=group, topic=topic)) == [
        f"{key}: start offset {RECORDS} is deleted"
    ]
    assert _starts(kafka_today, group) == {}
    await _do(session, DeleteGroup(group=group))
    assert group not in {it.group_id for it in await admin.groups.list_groups()}
    told = [line.what for line in await session.journal.lines() if group in line.what]
    assert f"reset {group} on {topic} to 20" in told
    assert f"delete offsets of {group} on {topic}" in told
