"""`partiscope browse`: what is not there, and a value as it is."""

from pathlib import Path

import pytest

from broker.protocol.records import NewRecord, build_batch
from control.model.ids import TopicPartition
from partiscope.cli.app import run
from tests.support.memory_log import MemoryCluster, MemoryLog
from tests.support.phrases import lacking
from tests.unit.control.kafka.scripted_cluster import ScriptedCluster

WRONG_USE = 2


def test_a_partition_that_is_not_there_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedCluster(topics={"orders": {0: (1,), 1: (1,)}}) as cluster:
        asked = ("browse", "orders", "--partition", "7", "--offset", "0")
        assert run([*asked, "--bootstrap", cluster.bootstrap]) == WRONG_USE
    assert lacking(capsys.readouterr().err, "orders", "no partition 7", "0–1") == []


def test_a_value_is_written_to_standard_output_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    value = b"\xff\x00\r\n\x1b[2J"
    log = MemoryLog()
    log.append(build_batch([NewRecord(value=value, timestamp=1)]), first=0, last=0)
    cluster = MemoryCluster({TopicPartition("orders", 0): log})
    monkeypatch.setattr("partiscope.cli.messages.browse.RecordReader", lambda _: cluster.reader())
    monkeypatch.chdir(tmp_path)
    asked = ("browse", "orders", "--partition", "0", "--offset", "0", "--output")
    assert run([*asked, "-", "--bootstrap", "memory:1"]) == 0
    assert capfdbinary.readouterr().out == value
    assert run([*asked, "value", "--bootstrap", "memory:1"]) == 0
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"value": value}
