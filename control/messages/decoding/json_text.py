"""JSON for people, with each number as it was written.

Python's own printer writes another number where one has more digits than a float keeps.
"""

import re
from typing import Final

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
