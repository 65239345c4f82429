"""Patterns of a search, and the error of a filter that cannot be used.

All patterns are RE2's, whose time grows with the text alone, so that none of them hangs a process.
"""

from __future__ import annotations

from typing import Any, Final

import re2

_PATTERN_BYTES_MAX: Final = 8 << 20


class FilterError(ValueError):
    """A filter that cannot be used; `field` is its name, the text says what is wrong and where."""

    def __init__(self, field_name: str, words: str) -> None:
        super().__init__(f"{field_name.replace('_', ' ')}: {words}")
        self.field = field_name
        self.words = words


def pattern_of(
    pattern: str,
    field_name: str,
    *,
    ignores_case: bool = False,
    spans_lines: bool = False,
    of_bytes: bool = False,
) -> Any:
    """RE2's, in which ``.`` is any character of UTF-8 or any byte, or, unless it spans lines, any
    but a line break.

    :raises FilterError: with the part of it that cannot be understood.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES_MAX
    options.case_sensitive = not ignores_case
    options.dot_nl = spans_lines
    if of_bytes:
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(pattern.encode(errors="surrogateescape"), options)
    except re2.error as error:
        why = error.args[0] if error.args else "not understood"
        words = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        part = words.rpartition(": ")[2]
        at = pattern.find(part) if part and part != pattern else -1
        where = f" at character {at + 1}" if at >= 0 else ""
        hint = "; RE2 knows no look-around and no back-references" if "(?" in part else ""
        raise FilterError(field_name, f"{pattern!r}: {words}{where}{hint}") from None
