"""Changes that are not answered, or not in time: they may have happened."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection import apis
from control.kafka.errors import UnreachableError
from control.kafka.ports import NewTopic
from tests.support.patience import patience_s
from tests.unit.control.kafka.scripted_cluster import ScriptedCluster, Silence, in_turn

SHORT_MS: Final = round(patience_s(50))
"""For what is not answered in time; longer than a slow machine needs to answer the rest."""


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={"orders": {0: (1,)}}) as found:
        yield found


@pytest.mark.parametrize("act", ["create", "delete", "add"])
async def test_a_change_that_ran_out_of_time_may_have_happened_and_is_not_asked_for_again(
    cluster: ScriptedCluster, act: str
) -> None:
    """The second attempt would be refused (TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_PARTITIONS) for what the first one did."""
    api, field, second = {
        "create": (apis.CREATE_TOPICS, "topics", 36),
        "delete": (apis.DELETE_TOPICS, "responses", 3),
        "add": (apis.CREATE_PARTITIONS, "results", 37),
    }[act]

    def told(code: int) -> Any:
        return {field: ({"name": "orders", "error_code": code, "error_message": None},)}

    cluster.on(api, in_turn(told(7), told(second)))
    async with KafkaAdmin.to(cluster.settings()) as admin:
        changes: dict[str, Callable[[], Awaitable[None]]] = {
            "create": lambda: admin.create_topic(NewTopic(name="orders", partitions=2)),
            "delete": lambda: admin.delete_topic("orders"),
            "add": lambda: admin.create_partitions("orders", 2),
        }
        with pytest.raises(UnreachableError) as error:
            await changes[act]()
    assert "orders" in str(error.value)
    assert len(cluster.requests(api)) == 1


async def test_a_change_that_was_not_answered_is_not_sent_again(cluster: ScriptedCluster) -> None:
    cluster.on(apis.DELETE_TOPICS, Silence)
    async with KafkaAdmin.to(cluster.settings(request_timeout_ms=SHORT_MS)) as admin:
        with pytest.raises(UnreachableError):
            await admin.delete_topic("orders")
    assert len(cluster.requests(apis.DELETE_TOPICS)) == 1
