"""The table of a broker's log directories."""

from typing import Any

import pytest

from control.model.finding_rules import Evidence
from control.views.tables.brokers import broker_table, log_dir_rows, several_log_dirs
from control.views.tables.rows import Tone
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS, log_dir


def evidence(*directories: dict[str, Any]) -> Evidence:
    return Evidence.gather(
        clusters.snapshot(
            brokers=[clusters.broker(1, directories=list(directories)), clusters.broker(2)],
            partitions=[clusters.partition("t", 0, [1], in_bytes_per_s=1.0, retention_ms=-1)],
        ),
        now_ms=NOW_MS,
    )


def test_each_directory_is_a_row_with_its_state_and_its_file_system() -> None:
    found = evidence(
        log_dir("/d", is_failed=True),
        log_dir("/c", total_bytes=1_000, usable_bytes=50, replicas=3, is_cordoned=True),
        log_dir("/b", total_bytes=200, usable_bytes=100, replicas=1, size_bytes=7),
        log_dir("/a", total_bytes=200, usable_bytes=100),
    )
    rows = log_dir_rows(found, 1)
    told = {row.cell("path").text: row for row in rows}
    assert list(told) == ["/a", "/b", "/c", "/d"]
    texts = {
        path: [row.cell(id_).text for id_ in ("state", "disk", "usable_bytes", "shares")]
        for path, row in told.items()
    }
    assert texts == {
        "/a": ["open", "50 %", "100 B", "assumed: /b"],
        "/b": ["open", "50 %", "100 B", "assumed: /a"],
        "/c": ["cordoned", "95 %", "50 B", "–"],
        "/d": ["failed", "n/a", "n/a", "–"],
    }
    assert [row.cell("replicas").text for row in rows] == ["0", "1", "3", "n/a"]
    assert told["/d"].cell("state").tone is told["/c"].cell("disk").tone is Tone.CRITICAL
    (broker, _) = broker_table(found).to_pylist()
    assert broker["disk_percent"] == 95.0, "of the fullest"
    assert broker["full_ms"] == pytest.approx(50 / (3 / 4) * 1000), "of the first that is full"
    assert broker["status"] == "disk failed"


def test_one_open_directory_tells_nothing_beside_its_broker() -> None:
    assert several_log_dirs(evidence(log_dir("/a")), 1) == ()
    assert several_log_dirs(evidence(), 1) == several_log_dirs(evidence(), 3) == ()
    for directories in ([log_dir("/a", is_cordoned=True)], [log_dir("/a"), log_dir("/b")]):
        assert len(several_log_dirs(evidence(*directories), 1)) == len(directories)
