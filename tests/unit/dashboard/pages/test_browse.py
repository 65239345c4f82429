"""Messages are one element for the page's framework, however many they are, and stay text."""

from types import SimpleNamespace
from typing import Any

from control.kafka.reader import FetchedRecord
from dashboard.components.markup import MARKUP
from dashboard.pages.browse import messages
from tests.unit.dashboard.screens import words_of


def record(offset: int, value: bytes) -> FetchedRecord:
    header: Any = SimpleNamespace(codec=0, base_offset=offset)
    return FetchedRecord(
        topic="orders",
        partition=1,
        offset=offset,
        timestamp_ms=1_700_000_000_000,
        key=b"k",
        value=value,
        headers=(("trace", b"9f"),),
        batch=header,
        crc_is_valid=True,
    )


def test_messages_are_one_element_with_all_that_is_known_of_each() -> None:
    shown = messages([record(offset, b"<b>hello</b>") for offset in range(100)])
    drawn = getattr(shown, MARKUP)

    assert not getattr(shown, "children", None)
    assert drawn.count('class="message"') == 100
    assert 'href="/browse/orders?partition=1&amp;offset=99"' in drawn
    assert "<b>hello" not in drawn
    assert "1 @ 99" in words_of(shown)
    assert "header trace" in words_of(shown)
