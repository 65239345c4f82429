"""Fetches that overtake each other: answers about positions that the log has left meanwhile."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.settle import until
from tests.unit.broker.replication.rig import Rig, values

SEEDS = range(8)
STEPS = 60


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    running = Rig(tmp_path)
    yield running
    running.release()
    await running.close()


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What replication called worth a warning."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("broker.replication") and record.levelno >= logging.WARNING
    ]


async def turns(count: int = 5) -> None:
    """Let messages travel."""
    for _ in range(count):
        await asyncio.sleep(0.001)


async def test_an_answer_from_before_a_new_epoch_is_not_taken_twice(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    # The other partition keeps the connection alive, and its requests in flight.
    rig.create(1, 2, partitions=2)
    await rig.nodes[1].append("a")
    await until(lambda: values(rig.nodes[2].partition()) == ["a"])
    await turns(20)
    rig.hold()
    await rig.nodes[1].append("b", acks=1)
    await turns()
    assert rig.held is not None
    assert len(rig.held) == 1, "the parked fetch is answered, and its answer on its way"
    rig.change(leader=1)
    await turns()
    assert len(rig.held) == 2, "the follower has joined anew, and asked from the same offset"
    rig.release()
    await until(lambda: values(rig.nodes[2].partition()) == ["a", "b"])
    await rig.nodes[1].append("c")
    assert values(rig.nodes[2].partition()) == ["a", "b", "c"]
    await until(lambda: rig.nodes[2].partition().high_watermark == 3)
    assert complaints(caplog) == []


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_overtakes_whatever_all_logs_become_one(
    rig: Rig, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    dice = random.Random(seed)
    rig.create(1, 2, 3, partitions=2)
    number = 0
    for _ in range(STEPS):
        leader = rig.image.topics["t"].partitions[0].leader
        match dice.randrange(6):
            case 0 | 1 | 2:
                number += 1
                await rig.nodes[leader].append(str(number), acks=1)
            case 3:
                rig.change(leader=dice.choice(rig.image.topics["t"].partitions[0].isr))
            case 4:
                rig.hold()
            case 5:
                rig.release()
        await turns(dice.randrange(4))
    rig.release()
    leader = rig.image.topics["t"].partitions[0].leader
    await rig.nodes[leader].append("last")
    expected = values(rig.nodes[leader].partition())
    assert expected[-1] == "last"
    for node in rig.nodes.values():
        await until(lambda n=node: values(n.partition()) == expected)  # type: ignore[misc]
        end = node.partition().log.log_end_offset
        await until(lambda n=node, e=end: n.partition().high_watermark == e)  # type: ignore[misc]
    assert not [text for text in complaints(caplog) if "do not fit" in text]
