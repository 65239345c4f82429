"""Filters of messages: what each lets pass, what cannot be judged, what is wrong in one."""

from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.records.record import FetchedRecord
from control.messages.message_filters import FilterTexts, build_filter
from control.messages.patterns import FilterError

ORDER = (
    b'{"status": "failed", "items": [{"price": 5}, {"price": 12}], "note": "Gr\xc3\xbc\xc3\x9fe"}'
)


def record(
    value: bytes | None = ORDER, key: bytes | None = b"order-7", **headers: bytes
) -> FetchedRecord:
    batch: Any = SimpleNamespace(codec=0)
    return FetchedRecord(
        topic="orders",
        partition=3,
        offset=42,
        timestamp_ms=1_700_000_000_000,
        key=key,
        value=value,
        headers=tuple(headers.items()),
        batch=batch,
        crc_is_valid=True,
    )


@pytest.mark.parametrize(
    ("texts", "is_match"),
    [
        ({"text": "FAILED"}, True),
        ({"text": "GR\u00dc\u00dfE"}, True),
        ({"text": "order-7"}, True),
        ({"text": "trace"}, True),
        ({"text": "nowhere"}, False),
        ({"regex": r"price.: 1\d"}, True),
        ({"regex": r"^order-\d$"}, True),
        ({"regex": r"price.: 9"}, False),
        ({"key": "order-7"}, True),
        ({"key": "order-*"}, True),
        ({"key": "0x6f726465722d37"}, True),
        ({"key": "order"}, False),
        ({"key": "null"}, False),
        ({"header": "trace"}, True),
        ({"header": "trace=9*"}, True),
        ({"header": "trace=8*"}, False),
        ({"json_path": "$.items[?@.price > 10]"}, True),
        ({"json_path": "$.items[?@.price > 20]"}, False),
        ({"json_path": "$[?search(@, 'fail')]"}, True),
        ({"json_path": "$[?match(@, 'fai.*')]"}, True),
        ({"cel": "value.status == 'failed' && partition == 3"}, True),
        ({"cel": "value.items.exists(item, item.price > 10)"}, True),
        ({"cel": "headers.trace == '9f' && timestamp > timestamp('2023-01-01T00:00:00Z')"}, True),
        ({"cel": "offset > 42"}, False),
        ({"text": "failed", "cel": "size > 1000"}, False),
    ],
)
def test_records_pass_where_all_filters_hold(texts: dict[str, str], is_match: bool) -> None:
    tested = build_filter(FilterTexts(**texts))
    assert bool(tested.passing([record(trace=b"9f")])) is is_match
    assert tested.unjudged_count == 0
    plain = b"".join((b"order-7", ORDER, b"trace", b"9f"))
    if is_match and tested.may_match is not None:
        assert tested.may_match(plain)


@pytest.mark.parametrize(
    ("value", "texts", "reason"),
    [
        (b"{}", {"cel": "value.status == 'failed'"}, "cel: there is no field 'status'"),
        (b"plain", {"json_path": "$.a"}, "json path: Expecting value"),
        (b'{"a": 1}', {"cel": "value.a"}, "cel: it gives int"),
        (
            b'"' + b"x" * (1 << 20) + b'"',
            {"json_path": "$"},
            "json path: a value of more than 1 MiB",
        ),
        (b"[" * 100_000, {"json_path": "$"}, "json path: JSON that is nested"),
        (b'{"a": "b"}', {"json_path": "$[?search(@, '(')]"}, "json path: json path: '('"),
    ],
)
def test_records_that_cannot_be_judged_are_counted(
    value: bytes, texts: dict[str, str], reason: str
) -> None:
    tested = build_filter(FilterTexts(**texts))
    assert not tested.passing([record(value)])
    assert tested.unjudged_count == 1
    assert tested.unjudged_reason.startswith(reason)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"regex": "a(b[c"}, "regex: 'a(b[c': missing ]: [c at character 4"),
        ({"regex": "(?=a)b"}, "at character 1; RE2 knows no look-around"),
        ({"json_path": "$.a["}, "json path: '$.a[' at its end"),
        ({"json_path": "a.b"}, "json path: 'a.b' at character 1"),
        ({"cel": "value.x = 1"}, "cel: 'value.x = 1' at character 9: Syntax error"),
        ({"cel": "value.x == 1 && nope"}, "at character 17: 'nope' is not known"),
        ({"text": "x" * 501}, "text: 501 characters; at most 500 are taken"),
        ({"cel": "(" * 500}, "cel: "),
        ({"json_path": "$" + "[?(@" * 120}, "json path: "),
    ],
)
def test_a_filter_that_is_wrong_says_what_and_where(texts: dict[str, str], words: str) -> None:
    with pytest.raises(FilterError) as error:
        build_filter(FilterTexts(**texts))
    assert words in str(error.value)


@pytest.mark.parametrize(
    "texts",
    [
        {"regex": "(a+)+$"},
        {"json_path": "$[?search(@, '(a+)+$')]"},
        {"cel": "value.exists(it, it.matches('^(a+)+$'))"},
    ],
)
def test_no_pattern_takes_more_than_the_length_of_the_text(texts: dict[str, str]) -> None:
    """Python's own would take longer than the age of the universe."""
    tested = build_filter(FilterTexts(**texts))
    assert not tested.passing([record(b'["' + b"a" * 10_000 + b'!"]')])


def test_only_what_a_batch_shows_before_it_is_opened_rules_it_out() -> None:
    for texts in ({"text": "0xff"}, {"text": "ab"}, {"regex": "^a"}, {"regex": r"\ba"}):
        assert build_filter(FilterTexts(**texts)).may_match is None
    for texts in ({"text": "status"}, {"regex": "st.tus"}, {"key": "st*us"}):
        may_match = build_filter(FilterTexts(**texts)).may_match
        assert may_match is not None
        assert may_match(b"\x00\xffSTATUS status")
        assert not may_match(b"\x00\xffother")
