"""Kafka's own tool reads our metadata log and our snapshots."""

import asyncio
import re
from pathlib import Path

import pytest

from broker.clock import SystemClock
from broker.log.names import METADATA_TOPIC_ID
from broker.log.partition_log import PartitionLog
from broker.metadata.record_codec import SCHEMAS, encode_record
from broker.metadata.snapshot import image_records
from broker.metadata.topic_names import METADATA_TOPIC
from broker.raft.metadata_log import MetadataLog
from broker.raft.snapshot_id import SnapshotId
from tests.support.kafka_oracle import KAFKA_TODAY, run_tool
from tests.unit.broker.metadata.test_record_codec import EXAMPLES
from tests.unit.broker.metadata.test_snapshot import rich_image

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.usefixtures("kafka_today_libs")]

DUMP = "org.apache.kafka.tools.DumpLogSegments"


def _dump(path: Path) -> str:
    done = run_tool(DUMP, "--cluster-metadata-decoder", "--files", str(path), version=KAFKA_TODAY)
    assert done.returncode == 0, done.stderr
    assert "Error at" not in done.stdout
    return done.stdout


def _open(directory: Path) -> MetadataLog:
    log = PartitionLog.open(
        str(directory), topic=METADATA_TOPIC, partition=0, topic_id=METADATA_TOPIC_ID
    )
    return MetadataLog(log, SystemClock())


def test_kafka_reads_every_record_of_our_metadata_log(tmp_path: Path) -> None:
    log = _open(tmp_path)
    log.append_leader_change(epoch=1, leader_id=101, voters=(101, 102, 103))
    log.append([encode_record(record) for record in EXAMPLES], epoch=1)
    printed = _dump(tmp_path / "00000000000000000000.log")
    assert '"leaderId":101,"voters":[{"voterId":101},{"voterId":102},{"voterId":103}]' in printed
    names = re.findall(r'"type":"(\w+)"', printed)
    assert len(names) == len(EXAMPLES)
    assert len(set(names)) == len(SCHEMAS)
    assert '"brokerId":1,"brokerEpoch":7,"fenced":-1' in printed
    assert printed.count('"cordonedLogDirs":["AAAAAAAAAAAAAAAAAAAA_w"]') == 1
    assert '"brokerId":1,"brokerEpoch":7,"cordonedLogDirs":[]' in printed
    assert '"name":"alice","mechanism":1,"salt":"c2FsdA=="' in printed
    assert '"serverKey":"c2VydmVy","iterations":8192' in printed
    assert '"resourceName":"orders","patternType":4,"principal":"User:alice"' in printed
    assert '"host":"*","operation":3,"permissionType":2' in printed
    assert '"isr":[3,1],"leader":3,"replicas":[3,1,2],"removingReplicas":[2]' in printed


def test_kafka_reads_our_snapshots(tmp_path: Path) -> None:
    files = _open(tmp_path).snapshots
    id_ = SnapshotId(end_offset=77, epoch=3)
    values = [encode_record(record) for record in image_records(rich_image())]
    asyncio.run(files.write(id_, values, now_ms=1_700_000_000_000))
    printed = _dump(tmp_path / id_.file_name)
    assert "Snapshot end offset: 77, epoch: 3" in printed
    assert "SnapshotHeader" in printed
    assert "SnapshotFooter" in printed
    assert len(re.findall(r'"type":"(\w+)"', printed)) == len(values)
