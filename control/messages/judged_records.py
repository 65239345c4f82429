"""A record as the filters of a search see it, and what they share: patterns and errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

import re2

from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import Decoder

JUDGED_BYTES_MAX: Final = 1 << 20
"""A larger value is not parsed as JSON: it is counted among the records that cannot be judged."""
_PATTERN_BYTES_MAX: Final = 8 << 20

Judge = Callable[["Judged"], bool]


class FilterError(ValueError):
    """A filter that cannot be used; `field` is its name, the text says what is wrong and where."""

    def __init__(self, field_name: str, words: str) -> None:
        super().__init__(f"{field_name.replace('_', ' ')}: {words}")
        self.field = field_name
        self.words = words


class Judged:
    """A record as the filters see it; parsed once, and only when one of them asks."""

    def __init__(self, record: FetchedRecord, decoder: Decoder | None = None) -> None:
        self.record = record
        self._decoder = decoder

    @cached_property
    def parts(self) -> Sequence[bytes]:
        """Key, value, and the headers' names and values."""
        record = self.record
        found = [part for part in (record.key, record.value) if part]
        for name, value in record.headers:
            found.append(name.encode(errors="replace"))
            if value:
                found.append(value)
        return found

    @cached_property
    def key(self) -> Any:
        """The key: a document where it is decoded to one, else its bytes."""
        decoded = None if self._decoder is None else self._decoder.key(self.record)
        is_document = decoded is not None and decoded.is_document
        return decoded.document if decoded is not None and is_document else self.record.key

    @cached_property
    def document(self) -> Any:
        """The value as a document: as it is decoded, else as JSON.

        :raises ValueError: it is none, or too large.
        """
        value = self.record.value
        if value is None:
            return None
        if len(value) > JUDGED_BYTES_MAX:
            raise ValueError(f"a value of more than {JUDGED_BYTES_MAX >> 20} MiB is not parsed")
        if self._decoder is not None:
            decoded = self._decoder.value(self.record)
            if decoded is not None and decoded.is_document:
                return decoded.document
            if decoded is not None and decoded.error:
                raise ValueError(decoded.error)
        try:
            return json.loads(value)
        except RecursionError:
            raise ValueError("JSON that is nested too deeply") from None


def is_text(part: bytes) -> bool:
    """Whether it is UTF-8."""
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True


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
