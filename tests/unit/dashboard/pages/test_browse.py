"""Messages are one element for the page's framework, however many they are, and stay text."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from control.kafka.records.record import KEPT_BYTES, FetchedRecord, cut_record
from control.messages.decoding.decoder import Decoder
from control.messages.message_search import MessageSearch
from control.views.paths import parse_path
from dashboard.components.markup import MARKUP
from dashboard.live.message_reading import Seen
from dashboard.pages.browse import layout, messages
from tests.unit.dashboard.page_context import context_on, words_of

SEEN = Seen(search=MessageSearch(topic="orders"), decoder=Decoder("orders"))


def record(offset: int, value: bytes) -> FetchedRecord:
    header: Any = SimpleNamespace(
        codec=0,
        base_offset=offset,
        magic=2,
        records_count=1,
        size_bytes=80,
        partition_leader_epoch=0,
        producer_id=-1,
        is_log_append_time=False,
    )
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
    shown = messages([record(offset, b"<b>hello</b>") for offset in range(100)], SEEN)
    drawn = getattr(shown, MARKUP)

    assert not getattr(shown, "children", None)
    assert drawn.count('class="message"') == 100
    assert 'href="/browse/orders?partition=1&amp;offset=99"' in drawn
    assert "<b>hello" not in drawn
    assert "1 @ 99" in words_of(shown)
    assert "header trace" in words_of(shown)


def test_the_page_says_how_it_reads(tmp_path: Path) -> None:
    shown = words_of(layout(context_on(tmp_path), parse_path("browse/topic-1")))
    assert "read_uncommitted: aborted and open records are marked" in shown


def test_large_records_are_cut_and_a_link_gives_the_whole() -> None:
    large = [cut_record(record(offset, b"x" * (12 << 20)), KEPT_BYTES) for offset in range(100)]
    shown = messages(large, SEEN)
    drawn = getattr(shown, MARKUP)
    assert len(drawn) < 4 << 20
    assert 'href="/record/orders/1/99?part=value"' in drawn
    assert "12.0 MiB" in drawn


def test_what_others_wrote_is_made_visible() -> None:
    drawn = getattr(messages([record(0, "\x1b[2J\u202eevil".encode())], SEEN), MARKUP)
    assert "\x1b" not in drawn
    assert "\u202e" not in drawn
    assert "\\x1b[2J\\u202eevil" in drawn
