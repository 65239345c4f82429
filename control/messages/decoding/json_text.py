"""JSON with each number as it was written, for people and to be written again.

Python's own printer writes another number where one has more digits than a float keeps.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_BREAKS: Final = re.compile(r"[\r\n\t][ \r\n\t]*")
_INDENT: Final = "  "
_OPENING: Final = "{["
_CLOSING: Final = "}]"


def one_line_json(text: str) -> str:
    """Valid JSON in one line, its names and values untouched: no string holds a line break."""
    return _BREAKS.sub(" ", text)


def pretty_json(text: str) -> str:
    """Valid JSON with one entry a line, its names and values untouched."""
    out: list[str] = []
    depth = 0
    before = ""
    for token in _TOKEN.findall(text):
        if token in _CLOSING:
            depth -= 1
            if before not in _OPENING:
                out.append("\n" + _INDENT * depth)
        elif before and before in _OPENING + ",":
            out.append("\n" + _INDENT * depth)
        elif before == ":":
            out.append(" ")
        out.append(token)
        depth += token in _OPENING
        before = token
    return "".join(out)


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number as it is written: 1.10 stays 1.10."""

    text: str


@dataclass(frozen=True, slots=True)
class _NoNumber:
    """NaN or an infinity, which Python writes and no JSON has."""

    text: str


def as_written_decoder(
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> json.JSONDecoder:
    """Reads JSON with its numbers as they are written, for ``compact_json``."""
    return json.JSONDecoder(
        parse_int=WrittenNumber,
        parse_float=WrittenNumber,
        parse_constant=_NoNumber,
        object_pairs_hook=object_pairs_hook,
    )


def compact_json(found: Any) -> str:
    """JSON without blanks.

    :raises ValueError: it holds what is no JSON.
    """
    match found:
        case WrittenNumber():
            return found.text
        case _NoNumber():
            raise ValueError(f"not JSON ({found.text} is no number)")
        case dict():
            fields = (
                f"{compact_json(name)}:{compact_json(content)}" for name, content in found.items()
            )
            return f"{{{','.join(fields)}}}"
        case list():
            return f"[{','.join(map(compact_json, found))}]"
    return json.dumps(found, ensure_ascii=False)
