"""Whoever was killed, fenced or registered anew: partitions that nobody writes to are whole again.

Real replicas, fetch sessions and controller decisions, by seed. In the end everyone lives and hears
everything, and nothing is written: only the replicas themselves bring each other into the ISR.
"""

import asyncio
import random
from pathlib import Path

import pytest

from broker.metadata.image import PartitionImage
from tests.simulation.controlled_rig import ControlledRig
from tests.support.cases import case
from tests.support.virtual_time import run_in_virtual_time
from tests.unit.broker.replication.rig import records

NODES = (1, 2, 3)
STEPS = 60
SEEDS = range(8)
MANY_SEEDS = range(100, 300)
TURNS_MAX = 1_000


def partitions(rig: ControlledRig) -> list[PartitionImage]:
    return [view for topic in rig.image.topics.values() for view in topic.partitions.values()]


def settle(rig: ControlledRig) -> bool:
    """Everyone hears everything and beats; whether all replicas are in sync."""
    for node_id in NODES:
        while rig.deliver(node_id):
            pass
        rig.beat(node_id)
    return all(set(view.isr) == set(view.replicas) for view in partitions(rig))


async def heal(rig: ControlledRig) -> None:
    rig.cut = set()
    rig.release()
    for node_id in NODES:
        if node_id not in rig.nodes:
            rig.restart(node_id)

    def story() -> str:
        views = [view for view in partitions(rig) if set(view.isr) != set(view.replicas)]
        leaders = [rig.nodes[view.leader].partition(view.topic, view.partition) for view in views]
        return "\n".join([str(rig.image.brokers), *(leader.state.story() for leader in leaders)])

    for _ in range(TURNS_MAX):
        if settle(rig):
            return
        await asyncio.sleep(0.005)
    pytest.fail(f"in vain: all replicas are in sync\n{story()}")


async def step(rig: ControlledRig) -> None:
    dice = rig.dice
    node_id = dice.choice(NODES)
    if node_id in rig.nodes:
        await step_of(rig, node_id)
    elif dice.random() < 0.3:
        rig.restart(node_id)
    await asyncio.sleep(dice.choice((0, 0, 0.001, 0.005)))


async def step_of(rig: ControlledRig, node_id: int) -> None:
    dice = rig.dice
    match dice.randrange(14):
        case 0:
            await rig.kill(node_id)
        case 1:
            rig.register(node_id)
        case 2:
            rig.fence(dice.choice(NODES))
        case 3:
            rig.cut = {frozenset(dice.sample(NODES, 2))}
        case 4:
            rig.cut = set()
        case 5:
            rig.hold()
        case 6:
            rig.release()
        case 7 | 8:
            view = dice.choice(partitions(rig))
            await rig.nodes[node_id].replicas.append_and_wait(
                view.topic, view.partition, records("x"), acks=1
            )
        case _:
            rig.deliver(node_id)
            rig.beat(node_id)


async def run(seed: int, directory: Path) -> None:
    rig = ControlledRig(directory, random.Random(seed))
    try:
        for first in NODES:
            replicas = sorted(NODES, key=lambda n: (n - first) % len(NODES))
            rig.create(*replicas, topic=f"from-{first}", partitions=2)
        await heal(rig)
        for _ in range(STEPS):
            await step(rig)
        await heal(rig)
        rig.register(rig.dice.choice(NODES))
        await heal(rig)
    finally:
        rig.release()
        await rig.close()


def test_whoever_went_and_came_all_replicas_are_in_sync_again(tmp_path: Path) -> None:
    _run_all(SEEDS, tmp_path)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_two_hundred_more_seeds(tmp_path: Path) -> None:
    _run_all(MANY_SEEDS, tmp_path)


def _run_all(seeds: range, directory: Path) -> None:
    for seed in seeds:
        with case(seed):
            place = directory / str(seed)
            place.mkdir()
            run_in_virtual_time(run(seed, place))
