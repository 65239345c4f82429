"""Offsets as lines of CSV: what Kafka's tool writes, what people do to it, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.model.ids import TopicPartition
from control.operations.catalogue.groups.offset_lines import (
    OffsetLinesError,
    offset_lines,
    read_offset_lines,
)

KEYS = st.builds(
    TopicPartition,
    st.text(alphabet="abc._-", min_size=1, max_size=8),
    st.integers(0, 2**31 - 1),
)
OFFSETS = st.dictionaries(KEYS, st.integers(0, 2**63 - 1), min_size=1, max_size=8)
GROUPS = st.dictionaries(
    st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1),
    OFFSETS,
    min_size=1,
    max_size=3,
)


@given(groups=GROUPS)
def test_what_is_written_is_read_again(groups: dict[str, dict[TopicPartition, int]]) -> None:
    text = offset_lines(groups)
    assert {group: read_offset_lines(text, group) for group in groups} == groups


def test_lines_are_those_of_kafkas_tool() -> None:
    offsets = {TopicPartition("orders", 10): 7, TopicPartition("orders", 2): 5}
    assert offset_lines({"billing": offsets}) == "orders,2,5\norders,10,7\n"
    several = offset_lines({"billing": offsets, "a,b": {TopicPartition("x", 0): 1}})
    assert several.splitlines() == ["billing,orders,2,5", "billing,orders,10,7", '"a,b",x,0,1']


def test_an_editors_marks_and_empty_lines_are_taken() -> None:
    text = '\ufefforders,0, 5\r\n\r\n"orders",1,6 \r\n'
    assert read_offset_lines(text, "g") == {
        TopicPartition("orders", 0): 5,
        TopicPartition("orders", 1): 6,
    }


@pytest.mark.parametrize(
    ("text", "story"),
    [
        ("", "no line holds"),
        ("a,orders,0,5\nb,orders,0,5", "lines of a, b"),
        ("orders,0", "line 1"),
        ("orders,0,5\norders,0,6", "line 2: orders-0"),
        ("topic,partition,offset", "line 1: 'partition'"),
        ("orders,0,5\norders,1,-1", "line 2: '-1'"),
        ("orders,²,5", "is no partition"),
        ("orders,2147483648,5", "is no partition"),
        ("orders,0,9223372036854775808", "is no offset"),
        ("orders,0," + "9" * 5_000, "is no offset"),
        ('orders,0,"5', "line 1"),
        ("orders,0,5\0", "line 1"),
    ],
)
def test_what_is_no_offset_names_its_line(text: str, story: str) -> None:
    with pytest.raises(OffsetLinesError, match=story):
        read_offset_lines(text, "billing")
