"""Log directories of a cluster of which one broker does not answer."""

from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.admin.reassignments import KafkaReassignments
from control.kafka.errors import UnreachableError


class OneHangs:
    """Brokers 1 and 2 answer; who is in ``silent`` does not."""

    def __init__(self, *silent: int) -> None:
        self.silent = silent

    async def live_nodes(self) -> tuple[int, ...]:
        return 1, 2, 3

    async def send(self, _: Any, __: Any, *, node_id: int) -> Any:
        if node_id in self.silent:
            raise UnreachableError("no answer", reason="it hangs", next_step="wait")
        found = SimpleNamespace(error_code=ErrorCode.none, topics=(), log_dir=f"/data/{node_id}")
        return SimpleNamespace(message=SimpleNamespace(results=(found,)))


async def dirs(*silent: int, brokers: tuple[int, ...] | None = None) -> list[int]:
    wire: Any = OneHangs(*silent)
    return [found.broker for found in await KafkaReassignments(wire).log_dirs(brokers)]


async def test_one_that_does_not_answer_leaves_the_sizes_of_the_others_known() -> None:
    assert await dirs() == [1, 2, 3]
    assert await dirs(3) == [1, 2]
    with pytest.raises(UnreachableError):
        await dirs(1, 2, 3)
    with pytest.raises(UnreachableError):
        await dirs(3, brokers=(2, 3))
