"""Where sent messages are: segment, replicas, groups."""

from pathlib import Path

from control.model.ids import TopicPartition
from control.views.messages.sent import PARTITIONS_FOLLOWED, Sent
from control.views.snapshots.snapshot import partition_record
from tests.support.store_builder import SyntheticSizes
from tests.unit.dashboard.page_context import context_on


def test_sent_messages_are_followed_to_segment_replicas_and_groups(tmp_path: Path) -> None:
    sizes = SyntheticSizes(topics=1, partitions=3, groups=1)
    snapshot = context_on(tmp_path, sizes=sizes).snapshot
    known = partition_record(snapshot, TopicPartition("topic-0", 1))
    assert known is not None
    end = known["high_watermark"]
    commits = snapshot.commit_table.to_pylist()
    committed = {row["partition"]: row["committed_offset"] for row in commits}[1]
    assert committed is not None

    ranges = ((1, 3, committed - 2, committed), (2, 1, 10 * end, 10 * end))
    read_in_part, not_yet = Sent(topic="topic-0", ranges=ranges).rows(snapshot)

    assert read_in_part.cell("groups").text == f"group-0 to {committed - 1:,}"
    assert read_in_part.cell("offsets").text == f"{committed - 2:,} – {committed:,}"
    assert read_in_part.path == f"browse/topic-0?partition=1&offset={committed - 2}"
    assert " none" in not_yet.cell("replicas").text
    before_commit = Sent(topic="topic-0", ranges=((1, 1, committed - 1, committed - 1),))
    (all_read,) = before_commit.rows(snapshot)
    assert all_read.cell("groups").text == "group-0 ✔"


def test_partitions_without_a_row_are_counted() -> None:
    ranges = tuple((number, 1, 0, 0) for number in range(PARTITIONS_FOLLOWED + 2))
    assert Sent(topic="wide", ranges=ranges).more == "and 2 more partitions"
    assert Sent(topic="wide", ranges=ranges[:3]).more == ""
