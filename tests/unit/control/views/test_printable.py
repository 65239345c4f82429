"""What others chose is shown so that no terminal obeys it and nobody is misled; JSON is exact."""

import json
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from broker.protocol.records import NewRecord, build_batch, parse_batch_header
from control.messages.decoding.decoder import Decoder
from control.messages.decoding.formats import Format, Formats
from control.views.messages.details import copied_text, message_json
from control.views.printable import (
    cut_middle,
    json_text,
    printable,
    printable_in_place,
    readable,
    told_bytes,
    visible,
)
from control.views.tables.rows import Cell
from tests.unit.dashboard.pages import test_browse

BATCH: Final = parse_batch_header(build_batch([NewRecord(value=b"v")]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("\x1b[2Jevil", "\\x1b[2Jevil"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u200bb", "a\\u200bb"),
        ("C:\\temp", "C:\\temp"),
        ("\\x1b", "\\\\x1b"),
        ("[/b]c", "[/b]c"),
    ],
)
def test_foreign_text_is_made_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_any_text_becomes_printable_and_stays_apart(text: str) -> None:
    for shown in (printable(text), visible(text), printable_in_place(text).replace("\n", "")):
        assert shown.isprintable()
    assert len(printable_in_place(text)) == len(text)
    assert visible(visible(text)) == visible(text)
    assert Cell(text, text).text.isprintable()
    assert Cell(text, text).value == text


@given(st.text(st.characters(codec="utf-8")), st.binary(max_size=20))
def test_json_is_exact_and_printable(text: str, content: bytes) -> None:
    document = {"name": text, "value": told_bytes(content)}
    written = json_text(document, indent=2)
    assert json.loads(written) == document
    assert written.replace("\n", "").isprintable()


def test_bytes_are_told_apart_from_text() -> None:
    alike = [b"\xff", b"\\xff", b"0xff", None, b"null", b"\x1b", b"\\x1b"]
    assert len({readable(value) for value in alike}) == len(alike)
    assert told_bytes(b"\xff") == {"base64": "/w=="}
    assert told_bytes(b"\\xff") == "\\xff"


def no_constant(word: str) -> None:
    pytest.fail(f"{word} is no JSON")


@pytest.mark.parametrize(
    "value",
    [
        '{"a":1e400,"b":-1e400}',
        '{"price": 1.10, "x": 890.12500000000000000000000001, "big": 9223372036854775808}',
        '{"a":1,"a":2}',
        '{"a": NaN}',
        '"\\ud800"',
        '{"a": "\\ud800", "b": "\\u200d \u200d \\u001b", "c": [ ] , "d":{ }}',
        '{\n  "lines": [1,\r\n\t2]\n}',
        "[" * 5_000 + "]" * 5_000,
        "[" + "9" * 5_000 + "]",
    ],
)
def test_a_message_is_valid_json_with_its_document_as_it_was_written(value: str) -> None:
    each = replace(test_browse.record(0, value.encode()), batch=BATCH)
    document = message_json(each, Decoder("t").record(each))
    for indent in (None, 2):
        text = json_text(document, indent=indent)
        assert indent or "\n" not in text
        told = json.loads(text, parse_constant=no_constant, parse_float=str, parse_int=str)
        assert told["value"] == value
        its = told["decoded"]["value"]
        if its["format"] == "json":
            written = json.loads(value, parse_float=str, parse_int=str)
            assert its["document"] == written
            assert "1.10" not in value or "1.10" in text
            assert value.count('"a"') <= text.count('"a"')


@pytest.mark.parametrize(
    ("data", "kind", "copied"),
    [
        (b'{"name":"Ann \\u00e9"}', Format.AUTO, '{"name":"Ann \\u00e9"}'),
        (
            "👨\u200d👩\u200d👧 \u0645\u06cc\u200c\u062e \u0915\u094d\u200d\u0937 \x1b[2J".encode(),
            Format.AUTO,
            None,
        ),
        ("\ufeffa\r\nb\t\0".encode(), Format.AUTO, None),
        (b"\xff\0", Format.AUTO, "0xff00"),
        (b"a", Format.HEX, "0x61"),
        (b"\xff", Format.BASE64, "/w=="),
        (b"\x81\xa1a\x01", Format.MSGPACK, '{"a": 1}'),
        (b"x" * 200_000, Format.AUTO, None),
    ],
)
def test_a_clipboard_takes_the_text_and_not_its_display(
    data: bytes, kind: Format, copied: str | None
) -> None:
    found = Decoder("t", Formats(value=kind)).value(test_browse.record(0, data))
    assert found is not None
    assert copied_text(data, found) == (data.decode() if copied is None else copied)


@given(st.text(alphabet="ab 東é.", max_size=30), st.integers(min_value=1, max_value=30))
def test_a_long_name_keeps_its_begin_and_its_end_within_the_width(name: str, width: int) -> None:
    cut = cut_middle(name, width, cells=cell_len)
    assert cell_len(cut) <= width
    begin, mark, end = cut.partition("…")
    assert name.startswith(begin)
    assert name.endswith(end) if mark else cut == name
    assert cell_len(cut) >= min(width, cell_len(name)) - 3 or " " in name, "room is used"
