"""The line that tells where a record will land."""

from pathlib import Path

import pytest

from control.operations.catalogue.topics.produce import PRODUCE
from control.views.messages.key_preview import known_leaders, landing
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables.rows import Cell, Tone
from tests.support.store_builder import SyntheticSizes
from tests.unit.dashboard.page_context import context_on


@pytest.fixture
def snapshot(tmp_path: Path) -> OperatorSnapshot:
    return context_on(tmp_path, sizes=SyntheticSizes(topics=1, partitions=3)).snapshot


def told(snapshot: OperatorSnapshot, *, file: str = "", **values: str) -> Cell:
    given = PRODUCE.defaults(values)
    return landing(snapshot, known_leaders(snapshot, given["topic"]), given, file=file)


def words(snapshot: OperatorSnapshot, **values: str) -> str:
    return told(snapshot, topic="topic-0", **values).text


@pytest.mark.parametrize(
    ("key", "murmur2", "crc32"), [("User123", 1, 0), ("User456", 0, 2), ("User789", 0, 2)]
)
def test_the_partition_of_a_key_by_both_rules(
    snapshot: OperatorSnapshot, key: str, murmur2: int, crc32: int
) -> None:
    line, leader = words(snapshot, key=key), 101 + murmur2
    assert line.startswith(f"murmur2 → {murmur2} (leader {leader}, rack {'abc'[murmur2]})")
    assert f"crc32 → {crc32}" in line


def test_the_chosen_rule_comes_first(snapshot: OperatorSnapshot) -> None:
    line = words(snapshot, key="User123", rule="crc32")
    assert line.startswith("crc32 → 0 (leader 101")
    assert "murmur2 → 1" in line


def test_without_a_key_with_many_or_with_a_chosen_partition(snapshot: OperatorSnapshot) -> None:
    assert "all 3 partitions" in words(snapshot)
    assert words(snapshot, key="k", partition="2").startswith("partition 2. Key ignored")
    assert "many keys" in words(snapshot, key="zipf:10")
    assert words(snapshot, key="User{n}").startswith("first key User0: murmur2 → ")
    assert words(snapshot, file="five.tsv").startswith("the lines of five.tsv")


def test_what_cannot_be_is_said(snapshot: OperatorSnapshot) -> None:
    assert "choose a topic" in told(snapshot, topic="gone", key="k").text
    missing = told(snapshot, topic="topic-0", partition="7")
    assert missing.tone is Tone.CRITICAL
    assert "7" in missing.text


def test_a_partition_without_a_leader_says_so(snapshot: OperatorSnapshot) -> None:
    given = PRODUCE.defaults({"topic": "topic-0", "key": "User123"})
    line = landing(snapshot, {0: 101, 1: -1, 2: 103}, given).text
    assert line.startswith("murmur2 → 1 (no leader)")
