"""What a step says of a partition: every replica in short, in full only what counts."""

from typing import Any

import pyarrow as pa

from spark_metrics.fold.gather import gather
from spark_metrics.schema import ROWS


def row(broker: int, **further: Any) -> dict[str, Any]:
    """A row of partition t-0, told by its leader 1 unless said otherwise."""
    told = {"cluster": "c", "topic": "t", "partition": 0, "source": broker, "round_ms": 1}
    figures = {"read_ms": 5, "leader": 1, "leader_epoch": 3, "log_end_offset": 10 * broker}
    return {**told, **figures, **further}


def again(broker: int) -> dict[str, Any]:
    nothing = dict.fromkeys(("read_ms", "round_ms", "leader", "leader_epoch", "log_end_offset"))
    return row(broker, **nothing, again_read_ms=9, again_since_ms=5, again_round_ms=8)


def gathered(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = gather(
        pa.Table.from_pylist(list(rows), schema=pa.schema(ROWS["replicas"]))
    ).to_pylist()
    return found


def test_a_partition_is_one_row_with_its_leaders_words() -> None:
    found = gathered(row(2), row(1), row(7, topic="u"), row(3), row(4, partition=1, leader=4))
    assert [(it["topic"], it["partition"]) for it in found] == [("t", 0), ("t", 1), ("u", 0)]
    assert sorted(it["broker"] for it in found[0]["rows"]) == [1, 2, 3]
    assert [it["view"]["broker"] for it in found] == [1, 4, 7]
    assert [it["log"]["leads"] for it in found] == [True, True, False]
    assert found[0]["log"]["log_end_offset"] == 10


def test_the_newest_epoch_tells_who_leads_and_a_leader_what_the_log_is() -> None:
    (found,) = gathered(row(1), row(2, leader=-1, leader_epoch=4), row(3))
    assert (found["view"]["broker"], found["view"]["leader"]) == (2, -1)
    assert (found["log"]["broker"], found["log"]["leader_epoch"]) == (1, 3)


def test_of_two_words_of_one_epoch_the_later_counts() -> None:
    (found,) = gathered(row(2, read_ms=7), row(3, read_ms=6))
    assert (found["view"]["broker"], found["log"]["broker"]) == (2, 2)


def test_rows_that_only_repeat_tell_nothing_in_full() -> None:
    repeated, told = gathered(again(1), again(2), again(1) | {"topic": "u"}, row(2, topic="u"))
    assert (repeated["view"], repeated["log"]) == (None, None)
    assert [it["again_ms"] for it in repeated["rows"]] == [9, 9]
    assert [it["full_ms"] for it in repeated["rows"]] == [None, None]
    assert told["view"]["broker"] == 2


def test_nothing_is_no_partition() -> None:
    assert gathered() == []
