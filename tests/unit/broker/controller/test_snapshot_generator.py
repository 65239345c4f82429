"""When a snapshot of the metadata is due."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.controller.snapshot_generator import RECORDS_BETWEEN_MIN, SnapshotGenerator
from broker.log.names import METADATA_TOPIC_ID
from broker.log.partition_log import PartitionLog
from broker.metadata.topic_names import METADATA_TOPIC
from broker.raft.metadata_log import MetadataLog
from broker.raft.snapshot_id import SnapshotId
from tests.support.patience import WAIT_S
from tests.unit.broker.controller.images import cluster


@pytest.mark.parametrize("records_count", [3, 2 * RECORDS_BETWEEN_MIN])
async def test_as_many_records_come_first_as_the_snapshot_of_the_start_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records_count: int
) -> None:
    written = asyncio.Queue[SnapshotId]()

    async def write(self: MetadataLog, id_: SnapshotId, values: Iterable[bytes]) -> None:
        assert list(values)
        written.put_nowait(id_)

    monkeypatch.setattr(MetadataLog, "write_snapshot", write)
    partition = PartitionLog.open(
        str(tmp_path), topic=METADATA_TOPIC, partition=0, topic_id=METADATA_TOPIC_ID
    )
    generator = SnapshotGenerator(MetadataLog(partition, SystemClock()), lambda error: None)
    generator.note_snapshot(records_count)
    due_after = max(records_count, RECORDS_BETWEEN_MIN)
    generator.note(due_after - 1, cluster())
    await asyncio.sleep(0)
    assert written.empty()
    generator.note(1, cluster())
    await asyncio.wait_for(written.get(), WAIT_S)
    await generator.stop()
