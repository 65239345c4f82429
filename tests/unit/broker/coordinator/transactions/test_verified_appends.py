"""Leaders that add partitions: how often they ask, for what together, and with which token."""

import asyncio
from types import SimpleNamespace
from typing import Any, Final

import pytest

from broker.coordinator.errors import CoordinatorError
from broker.coordinator.transactions.transaction_metadata import (
    Producer,
    SupportedOperation,
    TopicPartition,
)
from broker.coordinator.transactions.verified_appends import VerifiedAppends
from broker.log.producer.producer_state import ProducerState
from broker.metadata.topic_names import TRANSACTION_TOPIC

NODE_ID: Final = 1
PRODUCER: Final = Producer(7, 3)
CONCURRENT: Final = CoordinatorError.CONCURRENT_TRANSACTIONS
ADD: Final = SupportedOperation.ADD_PARTITION


class Coordinator:
    """Each question has the next answer; the marker of the transaction before comes with it."""

    def __init__(self, state: ProducerState, *answers: CoordinatorError) -> None:
        self._state = state
        self._answers = list(answers)
        self.asked: list[frozenset[TopicPartition]] = []

    async def add_partitions(
        self, _: str, __: Producer, partitions: frozenset[TopicPartition], *, version: int
    ) -> CoordinatorError:
        assert version == 2
        self.asked.append(partitions)
        answer = self._answers.pop(0)
        if answer is CONCURRENT:
            self._state.end_verification(PRODUCER.id)
        return answer


def verified_by(coordinator: Coordinator) -> VerifiedAppends:
    topic = SimpleNamespace(partitions={0: SimpleNamespace(leader=NODE_ID)})
    image = SimpleNamespace(topics={TRANSACTION_TOPIC: topic})
    node: Any = coordinator, SimpleNamespace(image=image), lambda _: None
    return VerifiedAppends(*node, node_id=NODE_ID)


@pytest.mark.parametrize("concurrent", [0, 1, 3])
async def test_a_marker_between_two_questions_voids_no_later_token(concurrent: int) -> None:
    state = ProducerState()
    answers = [CONCURRENT] * concurrent + [CoordinatorError.NONE]
    verified = verified_by(Coordinator(state, *answers))

    def begin() -> object:
        return state.begin_verification(PRODUCER.id)

    error, token = await verified.verify("tx", PRODUCER, ("t", 0), begin, ADD)
    assert error is CoordinatorError.NONE
    assert token is state.begin_verification(PRODUCER.id), "still good"


async def test_partitions_of_a_request_are_added_together() -> None:
    coordinator = Coordinator(ProducerState(), CoordinatorError.NONE)
    verified = verified_by(coordinator)
    done: asyncio.Queue[CoordinatorError] = asyncio.Queue()
    for index in range(3):
        verified.ask(
            "tx", PRODUCER, ("t", index), object, lambda it, _: done.put_nowait(it), operation=ADD
        )
    assert [await done.get() for _ in range(3)] == [CoordinatorError.NONE] * 3
    assert coordinator.asked == [frozenset(("t", index) for index in range(3))]


async def test_who_is_refused_at_last_is_told_so() -> None:
    verified = verified_by(Coordinator(ProducerState(), *[CONCURRENT] * 20))
    error, _ = await verified.verify("tx", PRODUCER, ("t", 0), object, ADD)
    assert error is CONCURRENT
