"""What the produce form says, before and after sending."""

from pathlib import Path

import pytest

from control.kafka.producer import Delivery
from control.lab.session import ProduceProgress
from control.operations.catalogue.produce import PRODUCE
from control.views.snapshots.snapshot import OperatorSnapshot
from dashboard.pages.produce_form import preview_words, result_words
from tests.support.store_builder import SyntheticSizes
from tests.unit.dashboard.page_context import context_on


def asked(**values: str) -> dict[str, str]:
    return PRODUCE.defaults(values)


@pytest.fixture
def snapshot(tmp_path: Path) -> OperatorSnapshot:
    return context_on(tmp_path, sizes=SyntheticSizes(topics=1, partitions=3)).snapshot


@pytest.mark.parametrize(
    ("key", "murmur2", "crc32"), [("User123", 1, 0), ("User456", 0, 2), ("User789", 0, 2)]
)
def test_the_partition_of_a_key_by_both_rules(
    snapshot: OperatorSnapshot, key: str, murmur2: int, crc32: int
) -> None:
    words = preview_words(snapshot, asked(topic="topic-0", key=key))

    leader = 101 + murmur2
    assert words.startswith(f"murmur2 → {murmur2} (leader {leader}, rack {'abc'[murmur2]})")
    assert f"crc32 → {crc32}" in words


def test_the_chosen_rule_comes_first(snapshot: OperatorSnapshot) -> None:
    words = preview_words(snapshot, asked(topic="topic-0", key="User123", rule="crc32"))

    assert words.startswith("crc32 → 0 (leader 101")
    assert "murmur2 → 1" in words


def test_without_key_or_with_a_chosen_partition(snapshot: OperatorSnapshot) -> None:
    assert "all 3 partitions" in preview_words(snapshot, asked(topic="topic-0"))
    chosen = asked(topic="topic-0", key="k", partition="2")
    assert preview_words(snapshot, chosen).startswith("partition 2. Key ignored")
    assert "many keys" in preview_words(snapshot, asked(topic="topic-0", key="zipf:10"))
    numbered = preview_words(snapshot, asked(topic="topic-0", key="User{n}"))
    assert numbered.startswith("first key User0: murmur2 → ")
    assert "choose a topic" in preview_words(snapshot, asked(topic="gone", key="k"))


def test_what_came_of_one_record() -> None:
    delivery = Delivery(topic="orders", partition=10, offset=254, timestamp_ms=0, latency_ms=3.1)
    progress = ProduceProgress(
        sent=1, acked=1, failed=0, total=1, elapsed_s=1.0, records_per_s=1.0, latencies=None,
        per_partition={10: 1}, histogram_ms=(), last=delivery, errors=(), is_done=True,
    )  # fmt: skip

    words = result_words("all", progress)

    assert words == "orders-10 @ 254, 3.1 ms, acks all"
