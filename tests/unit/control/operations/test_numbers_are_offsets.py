"""Where a place is an offset or a time, a bare number is an offset, and no help says otherwise;
what was deleted up to an offset is told exactly."""

from typing import Final

import pytest

from control.kafka.connection import apis
from control.kafka.records.reader import StartKind
from control.messages.starts import START_HELP, parse_start
from control.model.ids import TopicPartition
from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.groups.offset_targets import (
    TARGET_HELP,
    TargetKind,
    parse_target,
)
from control.operations.catalogue.topics.delete_records import (
    BEFORE_HELP,
    NOT_DELETED,
    NOT_KNOWN,
    DeleteRecords,
)
from control.operations.errors import PartlyDoneError
from control.operations.operation_session import OperationSession
from tests.support.phrases import lacking
from tests.unit.control.kafka.scripted_cluster import Asked, Closed, Reply, ScriptedCluster
from tests.unit.control.operations.previews import previewed

NOON: str = "1764320400000"


@pytest.mark.parametrize("words", [BEFORE_HELP, TARGET_HELP, START_HELP])
def test_no_help_offers_a_number_as_a_time(words: str) -> None:
    assert "offset" in words
    assert "1970" not in words


def test_a_number_that_could_be_a_time_is_an_offset() -> None:
    assert parse_target(NOON).kind is TargetKind.OFFSET
    assert parse_start(NOON, now_ms=0).kind is StartKind.OFFSET


LEFT: Final = {
    "code 29": ("orders-1", NOT_DELETED, "TOPIC_AUTHORIZATION_FAILED"),
    "closed": ("orders-1", NOT_KNOWN, "127.0.0.1"),
}


@pytest.mark.parametrize("how", LEFT)
async def test_what_was_deleted_is_told_exactly_where_a_partition_refuses(how: str) -> None:
    def answer(asked: Asked) -> Reply:
        (topic,) = asked.message.topics
        (it,) = topic.partitions
        if how == "closed" and it.partition_index == 1:
            return Closed
        code = 29 if it.partition_index == 1 else 0
        told = {"partition_index": it.partition_index, "low_watermark": it.offset}
        return {"topics": ({"name": "orders", "partitions": ({**told, "error_code": code},)},)}

    offsets = {TopicPartition("orders", number): 10 + number for number in range(3)}
    command = DeleteRecords(topic="orders", before="10", offsets=offsets)
    with ScriptedCluster(topics={"orders": dict.fromkeys(range(3), (1,))}) as cluster:
        cluster.on(apis.DELETE_RECORDS, answer)
        watched = WatchedCluster(bootstrap=cluster.bootstrap)
        async with OperationSession(watched, bus=None) as session:
            with pytest.raises(PartlyDoneError) as told:
                await session.perform(previewed(command, watched), typed="orders")
    partition, outcome, why = LEFT[how]
    done = ("2 of 3 partitions", "orders-0 begins at 10", "orders-2 begins at 12")
    assert lacking(str(told.value), *done, f"not in {partition}", why) == []
    assert command.outcome == {partition: outcome}
