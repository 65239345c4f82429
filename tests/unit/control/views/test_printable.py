"""What others chose is shown so that no terminal obeys it and nobody is misled; JSON is exact."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.views.printable import (
    json_text,
    printable,
    printable_in_place,
    readable,
    told_bytes,
    visible,
)
from control.views.tables.rows import Cell


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
