"""Filters against any text that an operator types and any record that a topic holds.

A filter is usable or a FilterError; a record passes, does not pass, or is counted as unjudged. A
batch that is passed over unopened holds no record that would have passed.
"""

import json
import struct
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker.protocol.records import (
    HEADER_BYTES,
    NewRecord,
    build_batch,
    parse_batch_header,
)
from control.kafka.records.record import FetchedRecord
from control.messages.judged_records import JUDGED_BYTES_MAX
from control.messages.message_filters import (
    CHARACTERS_MAX,
    FilterTexts,
    MessageFilter,
    build_filter,
)
from control.messages.partitioners import (
    KeyRule,
    fnv1a,
    key_hash,
    murmur2,
    partition_for,
    partitions_for_key,
)
from control.messages.patterns import FilterError

HEADER: Final = parse_batch_header(build_batch([NewRecord(value=b"v")]))
Headers = tuple[tuple[str, bytes | None], ...]


def record(
    value: bytes | None,
    *,
    key: bytes | None = None,
    headers: Headers = (),
    timestamp_ms: int = 1_700_000_000_000,
) -> FetchedRecord:
    return FetchedRecord(
        topic="orders",
        partition=3,
        offset=2**53 + 1,
        timestamp_ms=timestamp_ms,
        key=key,
        value=value,
        headers=headers,
        batch=HEADER,
        crc_is_valid=True,
    )


def passes(found: MessageFilter, each: FetchedRecord) -> bool:
    return bool(found.passing([each]))


def built(texts: FilterTexts) -> MessageFilter | None:
    """None: one that cannot be used."""
    try:
        return build_filter(texts)
    except FilterError:
        return None


def is_found(each: FetchedRecord, **texts: str) -> bool:
    return passes(build_filter(FilterTexts(**texts)), each)


# What a batch holds

_BYTES = st.one_of(
    st.text("aAbBkK\u0131İ\u017fßé€ .*\n", max_size=6).map(str.encode),
    st.binary(max_size=4),
    st.sampled_from([b"\xffab\x00", b"Kelvin \xe2\x84\xaa", "straße".encode(), b"0xff"]),
)
_RECORD = st.tuples(
    st.none() | _BYTES,
    st.none() | _BYTES,
    st.lists(st.tuples(st.text("aAbh", max_size=2), st.none() | _BYTES), max_size=2),
)
_TEXT = st.text("aAbBkK\u0131İ\u017fß€\u212a .*0xf?[]()|^$\\n+", max_size=4)


@settings(deadline=None)
@given(st.lists(_RECORD, min_size=1, max_size=3), _TEXT, st.sampled_from(["text", "regex", "key"]))
@example([(None, b"\xffab", [])], "ff61", "text")
@example([(b"0xZZ", b"", [])], "0xZZ", "key")
@example([(b"a*b", b"", [])], "a*b", "key")
def test_a_batch_that_is_passed_over_holds_nothing_that_is_looked_for(
    parts: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    text: str,
    name: str,
) -> None:
    found = built(FilterTexts(**{name: text}))
    if found is None:
        return
    records = [
        NewRecord(key=key, value=value, headers=tuple(headers), timestamp=5)
        for key, value, headers in parts
    ]
    plain = build_batch(records)[HEADER_BYTES:]
    is_there = any(
        passes(found, record(it.value, key=it.key, headers=it.headers)) for it in records
    )
    may_be_there = found.may_match is None or found.may_match(memoryview(plain))
    assert may_be_there or not is_there


@settings(deadline=None)
@given(st.text(max_size=12), st.binary(max_size=30), st.none() | st.binary(max_size=10))
def test_any_text_is_a_filter_or_refused(text: str, value: bytes, key: bytes | None) -> None:
    for name in ("text", "regex", "key", "header", "json_path", "cel"):
        found = built(FilterTexts(**{name: text}))
        each = record(value, key=key, headers=(("h", value), ("g", None)))
        assert found is None or passes(found, each) in (True, False)


_CEL = st.text("value.key'\"[]()!&|=<>+-*/%?:,0123456789 inulxt{}", max_size=14)
_PATH = st.text("$.[]'\"*?@()!&|=<>0123456789:,-abv matchlength", max_size=14)


@settings(deadline=None)
@given(_CEL, _PATH, st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner),
    max_leaves=5,
))  # fmt: skip
def test_any_document_is_judged_or_counted(expression: str, path: str, document: Any) -> None:
    each = record(json.dumps(document).encode())
    for texts in (
        FilterTexts(cel=f"value == {expression}"),
        FilterTexts(cel=expression),
        FilterTexts(json_path=f"$[?@.a {path}]"),
        FilterTexts(json_path=path),
    ):
        found = built(texts)
        if found is None:
            continue
        is_judged = passes(found, each)
        assert found.unjudged_count in (0, 1)
        assert not (is_judged and found.unjudged_count)


@pytest.mark.parametrize(
    "value",
    [
        b"1e400",
        b"-1e400",
        b"NaN",
        b"9" * 5_000,
        b"9223372036854775808",
        b'"\\ud800"',
        b'{"\\ud800": 1}',
        b"[" * 2_000 + b"]" * 2_000,
        b"\xff\xfe1\x00",
        b"",
        b"{",
        b"null",
        None,
        b"[1]" + b" " * JUDGED_BYTES_MAX,
    ],
)
@pytest.mark.parametrize(
    "texts", [{"cel": "value == 1"}, {"json_path": "$.a"}, {"cel": "size > 3"}]
)
def test_an_odd_value_ends_no_search(value: bytes | None, texts: dict[str, str]) -> None:
    found = build_filter(FilterTexts(**texts))
    odd, usual = record(value), record(b'{"a": 1}')
    assert passes(found, odd) in (True, False)
    assert passes(found, usual) is (texts != {"cel": "value == 1"})
    assert bool(found.unjudged_count) == bool(found.unjudged_reason)


@pytest.mark.parametrize("at_ms", [0, -1, -(2**63), 2**63 - 1, 1_700_000_000_000_000_000])
def test_any_time_of_a_record_can_be_compared_or_is_counted(at_ms: int) -> None:
    found = build_filter(FilterTexts(cel="timestamp > timestamp('2020-01-01T00:00:00Z')"))
    assert passes(found, record(b"{}", timestamp_ms=at_ms)) in (True, False)
    passes(found, record(b"{}"))
    assert found.unjudged_count in (0, 1)


# Bytes are no text, and text is no number


@pytest.mark.parametrize(
    ("key", "text", "wanted"),
    [
        (b"a\xff\nb", "a*b", True),
        (b"\xff\xfe", "*", True),
        (b"", "*", True),
        (None, "*", False),
        (None, "null", True),
        (b"null", "null", False),
        (b"\x00\xff", "0x00ff", True),
        (b"\x00\xff", "0X00ff", False),
        (b"0x00f", "0x00f", True),
        (b"0x00ff", "0x00ff", True),
        (b"0x00ff", '"0x00ff"', True),
        (b"\x00\xff", '"0x00ff"', False),
        (b'"0x00ff"', '"0x00ff"', True),
        (b"0xdeadbeef", "0xdead*", True),
        (b"\xde\xad\xbe\xef", "0xdead*", True),
        (b"\xde\xad\xbe\xef", "0x*beef", True),
        (b"\xde\xad\xbe\xef", "0xde*be", False),
        (b"null", '"null"', True),
        (None, '"null"', False),
        (b"", '""', True),
        (b"", "", True),
        (b"a", "", False),
        (None, "", False),
        (None, '""', False),
        (b'"a"', '"a"', True),
        (b"a.b", "a.b", True),
        (b"axb", "a.b", False),
        (b"abc", "b", False),
        (b"A", "a", False),
        ("é".encode(), "é", True),
        (b"(a", "(a", True),
    ],
)
def test_a_key_is_matched_as_a_whole(key: bytes | None, text: str, wanted: bool) -> None:
    assert is_found(record(b"", key=key), key=text) is wanted


@pytest.mark.parametrize(
    ("headers", "text", "wanted"),
    [
        ((("trace", b"1"),), "trace", True),
        ((("trace", b"1"),), "trace=1", True),
        ((("trace", b"1"),), "trace=2", False),
        ((("trace", None),), "trace", True),
        ((("trace", None),), "trace=", False),
        ((("trace", None),), "trace=null", True),
        ((("trace", b""),), "trace=null", False),
        ((("trace", b""),), "trace=", True),
        ((("a=b", b"1"),), "a=b", True),
        ((("a=b", b"1"),), "a=b=1", True),
        ((("a=b", b"1"),), "a=*=2", False),
        ((("trace", b"null"),), 'trace="null"', True),
        ((("0xff", b"1"),), "0xff", True),
        ((("trace", b"a=b"),), "trace=a=b", True),
        ((("a", b"x"), ("a", b"y")), "a=y", True),
        ((), "*", False),
        ((("", b""),), "*=*", True),
        ((("t", b"\xff"),), "t=0xff", True),
        ((("t", b"\xff"),), "t=*", True),
    ],
)
def test_a_header_is_matched_by_name_and_value(headers: Headers, text: str, wanted: bool) -> None:
    assert is_found(record(b"", headers=headers), header=text) is wanted


@pytest.mark.parametrize(
    ("value", "text", "wanted"),
    [
        (b"Hello", "hELLO", True),
        ("STRASSE É".encode(), "é", True),
        (b"\xde\xad\xbe\xef", "adbe", True),
        (b"\xde\xad\xbe\xef", "0xdead", True),
        (b"dead", "0xdead", False),
        (b"a.c", "a.c", True),
        (b"abc", "a.c", False),
        (None, "a", False),
    ],
)
def test_text_is_found_whatever_its_case(value: bytes | None, text: str, wanted: bool) -> None:
    assert is_found(record(value), text=text) is wanted


@pytest.mark.parametrize(
    ("value", "pattern", "wanted"),
    [
        (b"a\xffb", "a.b", True),
        (b"a\xff\xfe\nb", "^a.*b$", True),
        (b"a\nb", "a.b", True),
        ("aéb".encode(), "a.b", True),
        ("aéb".encode(), "a..b", False),
        ("aé\xff".encode("latin-1"), "a..", True),
        (b"\xff\xfe", r"^\xff\xfe$", True),
        (b"a\xffb", "[^a]b", True),
    ],
)
def test_a_point_is_any_character_or_any_byte(value: bytes, pattern: str, wanted: bool) -> None:
    found = build_filter(FilterTexts(regex=pattern))
    assert passes(found, record(value)) is wanted
    if wanted and found.may_match is not None:
        assert found.may_match(b"\x00\xff" + value + b"\xff")


def test_a_wild_time_spoils_no_comparison_of_other_things() -> None:
    found = build_filter(FilterTexts(cel="value.n > 3"))
    assert passes(found, record(b'{"n": 7}', timestamp_ms=2**62))
    assert found.unjudged_count == 0


def test_large_numbers_are_compared_as_they_are() -> None:
    """2⁵³ + 1 is no double: a filter that rounds it finds its neighbour."""
    large = record(b'{"id": 9007199254740993}')
    assert is_found(large, cel="value.id == 9007199254740993")
    assert not is_found(large, cel="value.id == 9007199254740992")
    assert is_found(large, cel="offset == 9007199254740993")


def test_all_filters_together_must_pass_and_an_unjudged_record_is_told() -> None:
    texts = FilterTexts(text="order", cel="value.price > 10")
    found = build_filter(texts)
    each = [b'{"order": 1, "price": 11}', b'{"price": 11}', b'{"order": 1}', b"order"]
    assert [passes(found, record(value)) for value in each] == [True, False, False, False]
    assert found.unjudged_count == 2
    assert "price" in found.unjudged_reason
    assert build_filter(FilterTexts()).matches is None
    assert build_filter(FilterTexts()).matching is None


@pytest.mark.parametrize("name", ["text", "regex", "key", "header", "json_path", "cel"])
def test_half_a_surrogate_pair_is_refused_as_a_filter(name: str) -> None:
    with pytest.raises(FilterError) as told:
        build_filter(FilterTexts(**{name: "\ud800"}))
    assert told.value.field == name


def test_bytes_that_were_typed_are_looked_for_in_keys() -> None:
    typed = b"caf\xe9".decode(errors="surrogateescape")
    found = build_filter(FilterTexts(key=f"{typed}*"))
    assert passes(found, record(b"", key=b"caf\xe9s"))
    assert found.may_match is not None
    assert found.may_match(b"..caf\xe9..")
    assert not found.may_match(b"..caf\xc3\xa9..")


@pytest.mark.parametrize("name", ["text", "regex", "key", "header", "json_path", "cel"])
def test_a_filter_has_a_longest(name: str) -> None:
    with pytest.raises(FilterError) as told:
        build_filter(FilterTexts(**{name: "1" * (CHARACTERS_MAX + 1)}))
    assert told.value.field == name
    assert "501" in told.value.words


@pytest.mark.parametrize("text", ["1 / 0 == 1", "value.a % 0 == 1", "value.a / 0.0 > 1.0"])
def test_a_division_by_zero_ends_no_search(text: str) -> None:
    found = build_filter(FilterTexts(cel=text))
    assert passes(found, record(b'{"a": 1}')) in (True, False)
    assert found.unjudged_count <= 1


def test_one_loop_after_another_is_taken() -> None:
    text = "value.all(x, x > 0) && value.exists(x, x == 2)"
    assert is_found(record(b"[1, 2]"), cel=text)
    assert not is_found(record(b"[0, 2]"), cel=text)
    words = """value.all(x, x != '.all(') && "a//'.map(" != '' && value.all(y, y != r'.all(\\')"""
    assert is_found(record(b'["a"]'), cel=words)


# Which partition a key hits: vectors of the clients' own tests


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_kafkas_own_test(key: bytes, wanted: int) -> None:
    """org.apache.kafka.common.utils.UtilsTest."""
    (signed,) = struct.unpack(">i", struct.pack(">I", murmur2(key)))
    assert signed == wanted
    assert partition_for(KeyRule.MURMUR2, key, 7) == (wanted & 0x7FFFFFFF) % 7


@pytest.mark.parametrize(
    ("key", "wanted"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)]
)
def test_fnv1a_is_that_of_its_authors(key: bytes, wanted: int) -> None:
    """The test vectors of Fowler, Noll and Vo."""
    assert fnv1a(key) == wanted


def test_who_has_no_key_has_no_partition() -> None:
    assert partitions_for_key(None, 3) == dict.fromkeys(KeyRule, None)
    assert key_hash(KeyRule.CRC32, b"") is None
    assert partition_for(KeyRule.CRC32, b"123456789", 10) == 0xCBF43926 % 10
    for count in (0, -1):
        with pytest.raises(ValueError, match=str(count)):
            partition_for(KeyRule.MURMUR2, b"k", count)


@settings(deadline=None)
@given(st.binary(max_size=20), st.integers(1, 10_000))
def test_every_key_has_a_partition_of_the_topic(key: bytes, count: int) -> None:
    for rule, found in partitions_for_key(key, count).items():
        if found is None:
            assert (rule, key) == (KeyRule.CRC32, b"")
        else:
            assert 0 <= found < count
