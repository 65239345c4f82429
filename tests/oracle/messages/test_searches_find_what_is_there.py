"""Random searches of random topics in memory, compared with an oracle that reads everything."""

from collections.abc import Iterable
from random import Random

import pytest

from control.kafka.records.decoding import AbortedTransaction
from control.model.ids import TopicPartition
from tests.oracle.messages.searches import SearchedTopic
from tests.oracle.messages.topics import Part, random_topic
from tests.support.memory_log import MemoryCluster, MemoryLog, Stored

ORDINARY = 100
SOAK = 2_000
CHUNK = 100
TOPIC = "orders"


def cluster_of(parts: Iterable[Part]) -> MemoryCluster:
    logs = {}
    for number, part in enumerate(parts):
        markers = {
            AbortedTransaction(producer_id=producer, first_offset=first): marker
            for producer, first, marker in part.aborted
        }
        logs[TopicPartition(TOPIC, number)] = MemoryLog(
            batches=[Stored(first=f, last=last, data=data) for f, last, data in part.batches],
            start=part.start,
            end=part.end,
            stable=part.stable,
            aborted=tuple(markers),
            markers=markers,
            times={it.offset: it.timestamp_ms for it in part.records} | part.markers,
        )
    return MemoryCluster(logs)


async def check(seed: int, patch: pytest.MonkeyPatch) -> None:
    dice = Random(seed)
    is_ordered = dice.random() < 0.5
    parts = random_topic(dice, is_ordered=is_ordered)
    cluster = cluster_of(parts)
    patch.setattr("control.messages.message_search.RecordReader", lambda _: cluster.reader())
    patch.setattr("control.kafka.records.following.RecordReader", lambda _: cluster.reader())
    # Memory answers at once: a hole at the end of a log is not waited for as on a slow leader.
    patch.setattr("control.kafka.records.browsing.SILENT_S", 0.1)
    topic = SearchedTopic(settings="memory:1", name=TOPIC, parts=parts, is_ordered=is_ordered)
    for _ in range(5):
        try:
            await topic.check(dice)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("first", range(0, ORDINARY // 5, 5))
async def test_a_search_finds_what_is_there(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 5):
        await check(seed, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(ORDINARY, ORDINARY + SOAK // 5, CHUNK))
async def test_every_search_finds_what_is_there(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + CHUNK):
        await check(seed, monkeypatch)
