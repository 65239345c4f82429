"""A broker with thousands of partitions comes and goes step by step: no batch changes them all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from broker.controller import active_controller, brokers, elections
from broker.controller.decision import Decision
from broker.metadata.image import NO_LEADER, ImageDelta, MetadataImage
from broker.metadata.records import PartitionChangeRecord
from broker.protocol import codec
from broker.server.node import Node
from tests.unit.broker.server.nodes import parts, request, running, until

STEP: Final = 3
PARTITIONS: Final = 20
TOPIC: Final = "t"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (active_controller, brokers, elections):
        monkeypatch.setattr(module, "CHANGES_MAX", STEP)


async def create(node: Node, *, replicas: tuple[int, ...]) -> None:
    topic = {
        "name": TOPIC,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [
            {"partition_index": number, "broker_ids": replicas} for number in range(PARTITIONS)
        ],
    }
    message = codec.build_request(19, 7, topics=[topic], timeout=30_000)
    answer = await request(node, 19, 7, message)
    assert int(answer.topics[0].error_code) == 0


def partitions(image: MetadataImage) -> list[Any]:
    return list(image.topics[TOPIC].partitions.values())


@contextmanager
def steps_of(node: Node) -> Iterator[list[tuple[MetadataImage, int]]]:
    """Each image that comes, and how many partitions change their leader or lose a replica by it;
    a leader may take any number into ISRs at once."""
    seen: list[tuple[MetadataImage, int]] = []

    def note(old: MetadataImage, new: MetadataImage, changed: ImageDelta) -> None:
        pairs = [(old.partition(*key), new.partition(*key)) for key in changed.partitions_changed]
        count = sum(
            was is not None
            and now is not None
            and (was.leader != now.leader or bool({*was.isr} - {*now.isr}))
            for was, now in pairs
        )
        seen.append((new, count))

    parts(node).metadata.subscribe(note)
    yield seen
    assert sum(count for _, count in seen) >= PARTITIONS
    assert 0 < max(count for _, count in seen) <= STEP


def has_left(image: MetadataImage, broker_id: int) -> bool:
    return all(
        it.leader != broker_id and (broker_id not in it.isr or it.isr == (broker_id,))
        for it in partitions(image)
    )


async def test_a_broker_is_fenced_when_its_last_partitions_leave_it(tmp_path: Path) -> None:
    async with running(tmp_path, 3) as nodes:
        await create(nodes[0], replicas=(102, 101, 103))
        with steps_of(nodes[0]) as seen:
            parts(nodes[0]).controller.active.fence_gone(102)
            parts(nodes[0]).controller.active.fence_gone(102)
            await until(lambda: any(image.brokers[102].fenced for image, _ in seen))
            fenced = next(image for image, _ in seen if image.brokers[102].fenced)
            assert has_left(fenced, 102)
            assert {it.leader_epoch for it in partitions(fenced)} == {1}
            await until(lambda: not parts(nodes[0]).metadata.image.brokers[102].fenced)
        assert {it.leader for it in partitions(parts(nodes[0]).metadata.image)} == {101}


async def test_a_broker_that_stops_gives_its_partitions_away_step_by_step(tmp_path: Path) -> None:
    async with running(tmp_path, 3) as nodes:
        await create(nodes[0], replicas=(102, 101, 103))
        with steps_of(nodes[0]) as seen:
            assert await parts(nodes[1]).lifecycle.controlled_shutdown(60_000)
            await until(lambda: seen[-1][0].brokers[102].fenced)
            first = next(image for image, count in seen if count)
            assert first.brokers[102].in_controlled_shutdown
            assert has_left(seen[-1][0], 102)


async def test_leaders_of_partitions_with_one_replica_come_back_step_by_step(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, 2) as nodes:
        await create(nodes[0], replicas=(102,))
        with steps_of(nodes[0]) as seen:
            parts(nodes[0]).controller.active.fence_gone(102)
            await until(lambda: any(image.brokers[102].fenced for image, _ in seen))
            image = next(image for image, _ in seen if image.brokers[102].fenced)
            assert {it.leader for it in partitions(image)} == {NO_LEADER}
            await until(lambda: {it.leader for it in partitions(seen[-1][0])} == {102})
            assert {it.isr for it in partitions(seen[-1][0])} == {(102,)}


async def test_a_new_controller_elects_the_leaders_that_its_predecessor_did_not(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, 2) as nodes:
        await create(nodes[0], replicas=(102,))
        active = parts(nodes[0]).controller.active
        topic_id = active.image.topics[TOPIC].topic_id
        active.apply(
            lambda image: Decision(
                tuple(
                    PartitionChangeRecord(partition_id=number, topic_id=topic_id, leader=NO_LEADER)
                    for number in range(PARTITIONS)
                ),
                None,
            )
        )
        image = active.image
        active.deactivate()
        active.activate(image)
        await until(lambda: {it.leader for it in partitions(active.image)} == {102})


async def test_a_process_that_takes_the_place_of_another_has_its_partitions_led_away_first(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, 3) as nodes:
        await create(nodes[0], replicas=(102, 101, 103))
        await parts(nodes[1]).replicas._fetchers.close()  # it would come back into ISRs
        with steps_of(nodes[0]) as seen:
            await parts(nodes[0]).controller.active.lead_away(102)
            await until(lambda: len([it for it, count in seen if count]) >= PARTITIONS // STEP)
            assert not seen[-1][0].brokers[102].fenced, "that is for others to decide"
            message = codec.build_request(64, 0, broker_id=102)
            assert int((await request(nodes[0], 64, 0, message)).error_code) == 0
            await until(lambda: any(102 not in image.brokers for image, _ in seen))


async def test_the_session_of_a_broker_that_was_unregistered_ends_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, 2) as nodes:
        await create(nodes[0], replicas=(101,))
        active = parts(nodes[0]).controller.active
        active._fence(999)
        before = active.image
        await until(lambda: not active._steps)
        assert active.image is before
    assert "internal error" not in caplog.text
