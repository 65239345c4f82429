"""Makes foreign text printable: names, keys, values and messages that others chose.

A terminal obeys escape sequences, a reader is misled by characters that turn the order of writing,
and a table is torn by line breaks. All of them are written as escapes, on every screen alike; JSON
and exported files have the text as it is.
"""

import json
import re
from base64 import b64encode
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from control.messages.decoding.json_text import one_line_json, pretty_json

NULL: Final = "null"
_LOOKS_ESCAPED: Final = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_LOOKS_LIKE_BYTES: Final = re.compile(r"0x(?:[0-9a-f]{2})*|null")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LINES: Final = frozenset("\n\t")
_PICTURES: Final = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
_UNKNOWN: Final = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, *, keeps_lines: bool = False) -> str:
    r"""The text without characters that a terminal obeys or nobody sees, as escapes.

    A backslash stays as it is, unless the text holds what looks like such an escape: then all of
    its backslashes are doubled, so that nothing reads alike.

    >>> printable("\x1b[2Jevil")
    '\\x1b[2Jevil'

    `keeps_lines`: line breaks and tabs stay, where a whole text is shown and not a table's cell.
    """
    if text.isprintable() and "\\" not in text:
        return text
    if _LOOKS_ESCAPED.search(text):
        text = text.replace("\\", "\\\\")
    if text.isprintable():
        return text
    kept = _LINES if keeps_lines else frozenset()
    return "".join(char if char.isprintable() or char in kept else _escaped(char) for char in text)


def visible(text: str, *, keeps_lines: bool = False) -> str:
    """``printable``, for what may have been made printable already."""
    kept = text.replace("\n", "").replace("\t", "") if keeps_lines else text
    return text if kept.isprintable() else printable(text, keeps_lines=keeps_lines)


def paragraph(text: str) -> str:
    """``visible``, with its lines; all but the first begin with blanks, so that no name that has a
    line break makes up a message of its own."""
    first, *others = visible(text, keeps_lines=True).split("\n")
    return "\n".join((first, *(f"  {line.lstrip()}" for line in others)))


def printable_in_place(text: str) -> str:
    """The same number of characters, all of them visible, for text whose styles are kept by
    place."""
    if text.isprintable():
        return text
    pictured = text.translate(_PICTURES | {ord("\n"): "\n"})
    return "".join(c if c.isprintable() or c == "\n" else _UNKNOWN for c in pictured)


def readable(value: bytes | None, *, keeps_lines: bool = False, is_cut: bool = False) -> str:
    """Bytes of a record for people: text where it is text, else hexadecimal; ``null`` for null.

    Text that could be taken for bytes or for null stands in quotes. `is_cut`: the bytes may end
    within a character.
    """
    if value is None:
        return NULL
    try:
        text = getincrementaldecoder("utf-8")().decode(value, final=not is_cut)
    except UnicodeDecodeError:
        return "0x" + value.hex()
    if _LOOKS_LIKE_BYTES.fullmatch(text):
        return f'"{text}"'
    return printable(text, keeps_lines=keeps_lines)


def told_bytes(value: bytes | None) -> str | dict[str, str] | None:
    """Bytes of a record for JSON: text as it is, other bytes as ``{"base64": …}``, null as null."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


@dataclass(frozen=True, slots=True)
class JsonPart:
    """JSON within a document, which keeps its numbers and names as they are written."""

    text: str


def json_text(document: Any, *, indent: int | None = None) -> str:
    """A document as JSON: what a terminal obeys or nobody sees is escaped, and so stays exact."""
    parts: list[str] = []
    mark = f"json-{uuid4().hex}-"

    def marked(part: Any) -> str:
        if not isinstance(part, JsonPart):
            raise TypeError(f"{type(part).__name__} has no JSON")
        parts.append(part.text)
        return f"{mark}{len(parts) - 1}"

    text = json.dumps(document, indent=indent, ensure_ascii=False, default=marked)
    for number, part in enumerate(parts):
        before, _, after = text.partition(f'"{mark}{number}"')
        line = before[before.rfind("\n") + 1 :]
        margin = "\n" + " " * (len(line) - len(line.lstrip(" ")))
        laid_out = one_line_json(part) if indent is None else pretty_json(part)
        text = before + laid_out.replace("\n", margin) + after
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _escaped(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def cut_middle(text: str, width: int, *, cells: Callable[[str], int] = len) -> str:
    """Begin and end of a longer text: names often differ in what they end with. `cells` tells how
    many cells of a terminal a text takes.

    >>> cut_middle("prod.orders.payment-events.v2", 20)
    'prod.orders.…ents.v2'
    """
    if cells(text) <= width:
        return text
    tail = _fitting(range(1, len(text) + 1), (width - 1) * 2 // 5, lambda n: cells(text[-n:]))
    end = text[len(text) - tail :]
    head = _fitting(range(1, len(text) + 1), width - 1 - cells(end), lambda n: cells(text[:n]))
    return f"{text[:head].rstrip()}…{end}"


def _fitting(lengths: range, room: int, cells: Callable[[int], int]) -> int:
    """The largest of the lengths that fits into the room; 0: none does."""
    return bisect_right(lengths, room, key=cells)
