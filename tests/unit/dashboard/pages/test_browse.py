"""Messages are one element for the page's framework, however many they are, and stay text."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.records.record import KEPT_BYTES, FetchedRecord, cut_record
from control.messages.decoding.decoder import Decoder
from control.messages.message_search import MessageSearch
from control.views.messages.details import resend_path
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


def test_a_copy_and_large_json_come_from_the_server_whole() -> None:
    large = b'{"text": "' + b"x" * 20_000 + b'"}'
    huge = cut_record(record(9, b'{"text": "' + b"x" * 158_000 + b'"}'), KEPT_BYTES)
    for each in (record(9, large), huge):
        drawn = getattr(messages([each], SEEN), MARKUP)
        assert 'data-copies="/record/orders/1/9?part=value&amp;text=copied"' in drawn
        assert 'data-loads="/record/orders/1/9?part=value&amp;text=laid-out"' in drawn
        assert 'data-key="orders-1@9:value"' in drawn
        assert len(drawn) < 30_000
    small = getattr(messages([record(9, b'{"a": 1}')], SEEN), MARKUP)
    assert "data-loads" not in small
    assert "&quot;a&quot;: 1\n}" in small


@pytest.mark.parametrize(
    ("value", "is_sent"),
    [
        (b'{"a": "\\u00e9"}', True),
        ("\u0645\u06cc\u200c\u062e".encode(), True),
        (b"a\tb", True),
        (b" a ", True),
        (b"a\r\nb", False),
        (b"a\x1b[2J", False),
        (b"\xff", False),
    ],
)
def test_what_a_form_would_change_is_not_sent_again_from_it(value: bytes, is_sent: bool) -> None:
    path, reason = resend_path(record(0, value))
    assert (path is not None) is is_sent
    assert bool(reason) is not is_sent
    assert path is None or path.query["value"].encode() == value
