"""What others pack as a plan is judged value by value before anything is made of it."""

import json
import zlib
from base64 import b64encode
from typing import Any

import pytest

from control.move.change_codec import REPLICAS_MAX, unpack

COLUMNS: dict[str, Any] = {
    "topics": ["a"],
    "topic": [0],
    "partition": [3],
    "before": [[1, 2]],
    "after": [[2, 3]],
    "size": [7],
}


def packed(text: str) -> str:
    return b64encode(zlib.compress(text.encode())).decode()


def test_a_packed_plan_of_one_change_is_read() -> None:
    (change,) = unpack(packed(json.dumps(COLUMNS)))
    assert (str(change.key), change.before, change.after) == ("a-3", (1, 2), (2, 3))
    assert (change.size_bytes, change.leader, change.stage) == (7, None, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"partition": ["3"]},
        {"partition": [True]},
        {"partition": [3.0]},
        {"partition": [-1]},
        {"size": [1 << 63]},
        {"before": [[]]},
        {"after": [[1, None]]},
        {"after": [[1] * (REPLICAS_MAX + 1)]},
        {"leader": ["1"]},
        {"leader": [1, 2]},
        {"stage": 0},
        {"topic": [1]},
        {"topics": ["\ud800"]},
        {"topics": [["a"]]},
        {"topics": {"a": 1}},
        {"size": None},
        {"size": [1, 2]},
    ],
    ids=str,
)
def test_no_value_is_taken_for_another(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="packed change"):
        unpack(packed(json.dumps(COLUMNS | wrong)))


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "null", "{", '{"topics": NaN}'])
def test_what_is_no_plan_is_one_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"packed|Expecting"):
        unpack(packed(text))
