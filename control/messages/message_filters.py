"""Which records of a topic are looked for: by text, pattern, key, header, JSON path, expression.

All patterns are RE2's, whose time grows with the text alone, so that none of them hangs a process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import re2

from control.kafka.records.record import FetchedRecord, Matches, MayMatch
from control.messages.decoding.decoder import Decoder
from control.messages.judged_records import FilterError, Judge, Judged, pattern_of

CHARACTERS_MAX: Final = 500
"""Of a filter."""
_LOOKS_AROUND: Final = re.compile(r"[\^$]|\\[bBAzZ]")
_HEX_DIGITS: Final = re.compile(r"0?x?[0-9a-f]*", re.IGNORECASE)
_NULL: Final = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterTexts:
    """As an operator writes them; a record must pass all that are not empty."""

    text: str = ""
    regex: str = ""
    key: str = ""
    header: str = ""
    json_path: str = ""
    cel: str = ""

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))


NO_FILTERS: Final = FilterTexts()
FILTER_HELP: Final = {
    "text": "held by key, value or a header, whatever its case",
    "regex": "RE2 pattern found in key, value or a header",
    "key": "the whole key; * stands for anything, null for no key",
    "header": "name, or name=value; * stands for anything",
    "json_path": "RFC 9535; finds something in the value: $.order[?@.price > 10]",
    "cel": "expression, e.g. value.status == 'failed' && size > 100",
}


@dataclass(slots=True)
class MessageFilter:
    """A test of records, the cheapest first; counts those that it cannot judge, and says why."""

    judges: Sequence[tuple[str, Judge]] = ()
    decoder: Decoder | None = None
    may_match: MayMatch | None = None
    unjudged_count: int = 0
    unjudged_reason: str = ""

    @property
    def matches(self) -> Matches | None:
        """None: every record passes."""
        return self._passes if self.judges else None

    def _passes(self, record: FetchedRecord) -> bool:
        judged = Judged(record, self.decoder)
        for name, judge in self.judges:
            try:
                if not judge(judged):
                    return False
            except ValueError as error:
                self.unjudged_count += 1
                self.unjudged_reason = self.unjudged_reason or f"{name}: {error}"
                return False
        return True


def build_filter(texts: FilterTexts, decoder: Decoder | None = None) -> MessageFilter:
    """The test that the texts describe; JSON path and expression see what the decoder gives.

    :raises FilterError: one of them cannot be used.
    """
    judges: list[tuple[str, Judge]] = []
    for name, build in _BUILDERS.items():
        if text := getattr(texts, name):
            if len(text) > CHARACTERS_MAX:
                words = f"{len(text):,} characters; at most {CHARACTERS_MAX:,} are taken"
                raise FilterError(name, words)
            _typed_bytes(text, name)
            judges.append((name.replace("_", " "), build(text)))
    return MessageFilter(judges=judges, decoder=decoder, may_match=_batch_test(texts))


def _holds_text(text: str) -> Judge:
    pattern = _literal(text)
    small = text.lower()
    may_be_hex = _HEX_DIGITS.fullmatch(text) is not None

    def holds(part: bytes) -> bool:
        if pattern.search(part):
            return True
        if not may_be_hex or part.isascii():
            return False
        try:
            part.decode()
        except UnicodeDecodeError:
            return small in "0x" + part.hex()
        return False

    return lambda judged: any(map(holds, judged.parts))


def _holds_pattern(text: str) -> Judge:
    search = pattern_of(text, "regex").search
    return lambda judged: any(search(part) for part in judged.parts)


def _has_key(text: str) -> Judge:
    if text == _NULL:
        return lambda judged: judged.record.key is None
    pattern = _glob(text, "key")
    return lambda judged: judged.record.key is not None and pattern(judged.record.key)


def _has_header(text: str) -> Judge:
    name, sign, value = text.partition("=")
    is_name = _glob(name, "header")
    is_value = _glob(value, "header")

    def has(judged: Judged) -> bool:
        return any(
            is_name(each.encode(errors="replace")) and (not sign or is_value(content or b""))
            for each, content in judged.record.headers
        )

    return has


def _glob(text: str, field_name: str) -> Callable[[bytes], bool]:
    if text.startswith("0x") and re.fullmatch(r"0x(?:[0-9a-fA-F]{2})+", text):
        wanted = bytes.fromhex(text[2:])
        return lambda part: part == wanted
    first, *middle = _typed_bytes(text, field_name).split(b"*")
    if not middle:
        return lambda part: part == first
    last = middle.pop()

    def matches(part: bytes) -> bool:
        at, end = len(first), len(part) - len(last)
        if at > end or not (part.startswith(first) and part.endswith(last)):
            return False
        for piece in middle:
            found = part.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return matches


def _literal(text: str) -> Any:
    escaped = re2.escape(_typed_bytes(text, "text")).decode(errors="surrogateescape")
    return pattern_of(escaped, "text", ignores_case=True)


def _typed_bytes(text: str, field_name: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        words = f"{text!r} holds half a surrogate pair, which has no bytes"
        raise FilterError(field_name, words) from None


def _json_path(text: str) -> Judge:
    """Loaded here: most searches need neither library."""
    from control.messages.value_filters import json_path_judge

    return json_path_judge(text)


def _expression(text: str) -> Judge:
    from control.messages.value_filters import expression_judge

    return expression_judge(text)


def _batch_test(texts: FilterTexts) -> MayMatch | None:
    """A test of a whole batch's bytes: they hold the text and the pattern, or no record
    of it does."""
    searches: list[Callable[[bytes], object]] = []
    if texts.text and not _HEX_DIGITS.fullmatch(texts.text):
        searches.append(_literal(texts.text).search)
    if texts.regex and not _LOOKS_AROUND.search(texts.regex):
        searches.append(pattern_of(texts.regex, "regex").search)
    key = texts.key
    if key and key != _NULL and not key.startswith("0x"):
        parts = [part for part in _typed_bytes(key, "key").split(b"*") if part]
        searches.append(lambda plain: all(part in plain for part in parts))
    if not searches:
        return None
    return lambda plain: all(search(bytes(plain)) for search in searches)


_BUILDERS: Final[Mapping[str, Callable[[str], Judge]]] = {
    "text": _holds_text,
    "regex": _holds_pattern,
    "key": _has_key,
    "header": _has_header,
    "json_path": _json_path,
    "cel": _expression,
}
