"""Messages as rows: text where it is text, bytes where it is not, null apart from empty."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.records.browsing import Browsed, Skipped
from control.views.printable import readable
from control.views.tables.messages import moment_text, summary


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"plain", "plain"),
        ("Grüße".encode(), "Grüße"),
        (b"", ""),
        (None, "null"),
        (b"\x00\x01", "\\x00\\x01"),
        (b"\xff\xfe", "0xfffe"),
        (b"0xfffe", '"0xfffe"'),
        (b"null", '"null"'),
        (b'{"path": "C:\\temp"}', '{"path": "C:\\temp"}'),
        (b'{\n\t"a": 1\n}', '{\\n\\t"a": 1\\n}'),
    ],
)
def test_keys_and_values_are_shown_as_what_they_are(value: bytes | None, shown: str) -> None:
    assert readable(value) == shown


def test_a_record_without_a_time_has_none() -> None:
    assert moment_text(-1) == "–"
    in_nanoseconds = 1_700_000_000_123_456_789
    assert moment_text(in_nanoseconds) == f"{in_nanoseconds} ms"
    assert moment_text(1_700_000_000_123).endswith(".123")


@pytest.mark.parametrize(
    ("first_ms", "is_told"), [(1_700_000_000_000, False), (1_700_000_060_000, True)]
)
def test_a_first_record_later_than_asked_says_its_time(first_ms: int, is_told: bool) -> None:
    first: Any = SimpleNamespace(timestamp_ms=first_ms)
    browsed = Browsed(
        records=(first,),
        read_count=484,
        read_bytes=0,
        skipped=Skipped(),
        rest={},
        is_backward=False,
        since_ms=1_700_000_000_000,
    )
    words, _ = summary(browsed, is_search=False)
    assert words.startswith("484 records read")
    assert (f"the first is of {moment_text(first_ms)}" in words) is is_told
    assert "the first" not in summary(replace(browsed, since_ms=None), is_search=False)[0]
