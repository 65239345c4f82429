"""Records from lines: endings, keys, JSON, and what is told of those that are none."""

import json
from pathlib import Path

import pytest

from control.messages.lines import (
    LINE_BYTES_MAX,
    LineFormat,
    LinesError,
    LineSplitter,
    lines_in,
    lines_of,
)

JSON = LineFormat(topic="t", is_json=True)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_do_not_depend_on_how_they_come(size: int) -> None:
    data = b"a\r\nb\n\nc\rd\n\xff\xfe"
    splitter, lines = LineSplitter(), []
    for start in range(0, len(data), size):
        lines += splitter.feed(data[start : start + size])
    assert [*lines, *splitter.end()] == [b"a", b"b", b"", b"c\rd", b"\xff\xfe"]
    assert lines_of(data, "f") == [*lines, b"\xff\xfe"]


def test_lines_of_a_file_that_cannot_be_read_are_none_that_can_be_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\n\xff")
    assert lines_in(tmp_path / "file", "file") == [b"a", b"\xff"]
    for name, why in {"": "it is a directory", "none": "no such file", "a\0b": "null"}.items():
        with pytest.raises(LinesError, match=why):
            lines_in(tmp_path / name, "file")


def test_a_line_that_never_ends_is_refused_before_it_fills_the_memory() -> None:
    splitter = LineSplitter()
    splitter.feed(b"x" * LINE_BYTES_MAX)
    with pytest.raises(LinesError, match="longer than 64 MiB"):
        splitter.feed(b"x")


def test_key_and_value_are_parted_at_the_first_separator() -> None:
    found = LineFormat(topic="t", separator=b"::").record(b"k::v::w", 1)
    assert (found.key, found.value) == (b"k", b"v::w")
    alone = LineFormat(topic="t").record(b"v", 1)
    assert (alone.key, alone.value) == (None, b"v")
    whole = LineFormat(topic="t", separator=None).record(b"k\tv", 1)
    assert (whole.key, whole.value) == (None, b"k\tv")


def test_a_json_line_says_all_of_a_record() -> None:
    line = {"key": "k", "value": {"ä": 1}, "partition": 3, "timestamp_ms": 5, "offset": 9,
            "headers": [["a", "1"], {"name": "a", "value": None}]}  # fmt: skip
    found = JSON.record(json.dumps(line).encode(), 1)
    assert (found.key, found.value) == (b"k", b'{"\\u00e4": 1}')
    assert found.headers == (("a", b"1"), ("a", None))
    assert (found.partition, found.timestamp_ms) == (3, 5)
    bytes_as_such = JSON.record(b'{"key": {"base64": "/w=="}, "value": null}', 1)
    assert (bytes_as_such.key, bytes_as_such.value) == (b"\xff", None)
    assert JSON.record(b'{"headers": {"a": "1"}}', 1).headers == (("a", b"1"),)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"hello", "line 7: not JSON"),
        (b"", "line 7: not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b"\xff", "not UTF-8"),
        (b'"hello"', '"hello" is no JSON object'),
        (b'{"vale": 1}', "field vale; did you mean value?"),
        (b'{"xyz": 1}', "field xyz; there are headers, key"),
        (b'{"partition": "3"}', 'partition "3" is no whole number'),
        (b'{"partition": true}', "partition true is no whole number"),
        (b'{"timestamp_ms": -2}', "timestamp_ms -2 is not within -1 to"),
        (b'\xef\xbb\xbf{"value": 1}', "byte order mark"),
        (b'{"headers": "a"}', 'headers "a" are no list'),
        (b'{"headers": [["a"]]}', 'header ["a"] is no pair'),
        (b'{"headers": {"\\ud800": ""}}', "surrogates"),
        (b'{"value": "\\ud800"}', "surrogates"),
        (b'{"key": {"base64": "?"}}', "line 7: "),
    ],
)
def test_what_is_no_record_is_told_with_its_line(line: bytes, told: str) -> None:
    with pytest.raises(LinesError) as refused:
        JSON.record(line, 7)
    assert told in str(refused.value)


def test_a_name_that_is_twice_in_what_tail_decodes_spoils_no_line() -> None:
    lines = LineFormat(topic="t", is_json=True)
    told = b'{"value": "x", "decoded": {"value": {"document": {"a": 1, "a": 2}}}}'
    assert lines.record(told, 1).value == b"x"
    for bad in (b'{"value": {"a": 1, "a": 2}}', b'{"value": 1, "value": 2}',
                b'{"headers": [["a", {"b": [{"c": 1, "c": 2}]}]]}'):  # fmt: skip
        with pytest.raises(LinesError, match="twice"):
            lines.record(bad, 1)
