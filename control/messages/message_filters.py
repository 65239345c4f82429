"""Which records of a topic are looked for: by text, pattern, key, header, JSON path, expression.

Paths and expressions may take any time; they are judged in a process of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import re2

from control.kafka.records.reader import Looking
from control.kafka.records.record import (
    FetchedRecord,
    Matches,
    Matching,
    MayMatch,
    looked_for,
)
from control.messages.conditions.process import ConditionProcess
from control.messages.decoding.decoder import Decoder
from control.messages.judged_records import Judge, Judged, is_text
from control.messages.patterns import FilterError, pattern_of

CHARACTERS_MAX: Final = 500
"""Of a filter."""
_LOOKS_AROUND: Final = re.compile(r"[\^$]|\\[bBAzZ]")
_HEX_DIGITS: Final = re.compile(r"0?x?[0-9a-f]*", re.IGNORECASE)
_BYTES: Final = re.compile(r"0x((?:[0-9a-fA-F]{2}|\*)+)")
_QUOTED: Final = re.compile(r'"(|null|0x[0-9a-fA-F]*)"')
_NULL: Final = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterTexts:
    """As an operator writes them; a record must pass all that are given. An empty key is one: that
    without bytes."""

    text: str = ""
    regex: str = ""
    key: str | None = None
    header: str = ""
    json_path: str = ""
    cel: str = ""

    def __bool__(self) -> bool:
        return self.key is not None or any(getattr(self, each.name) for each in fields(self))


NO_FILTERS: Final = FilterTexts()
FILTER_HELP: Final = {
    "text": "held by key, value or a header, whatever its case",
    "regex": "RE2 pattern found in key, value or a header",
    "key": "the whole key; * stands for any bytes, null for no key, 0xff also for that byte",
    "header": "name, or name=value; * stands for anything",
    "json_path": "RFC 9535; finds something in the value: $.order[?@.price > 10]",
    "cel": "expression, e.g. value.status == 'failed' && size > 100",
}


@dataclass(slots=True)
class MessageFilter:
    """A test of records, the cheapest first; counts those that it cannot judge, and says why.

    Use as a context manager, so that no process is left at work for a search that has ended.
    """

    judges: Sequence[tuple[str, Judge]] = ()
    decoder: Decoder | None = None
    may_match: MayMatch | None = None
    conditions: ConditionProcess | None = None
    unjudged_count: int = 0
    unjudged_reason: str = ""

    def __enter__(self) -> MessageFilter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Break off what is judged now."""
        if self.conditions is not None:
            self.conditions.close()

    @property
    def looking(self) -> Looking:
        """For a reader."""
        return Looking(matches=self.matches, matching=self.matching, may_match=self.may_match)

    @property
    def matches(self) -> Matches | None:
        """The tests that are done at once; None: every record passes them."""
        return self._passes if self.judges else None

    @property
    def matching(self) -> Matching | None:
        """The tests of many records together, of those that pass the others; None: all do.

        :raises FilterError: one of them takes too long.
        """
        return None if self.conditions is None else self._passing

    def passing(self, records: Sequence[FetchedRecord]) -> list[FetchedRecord]:
        """Those that pass all tests.

        :raises FilterError: a test takes too long.
        """
        return looked_for(records, self.matches, self.matching)

    def _passes(self, record: FetchedRecord) -> bool:
        judged = Judged(record, self.decoder)
        for name, judge in self.judges:
            try:
                if not judge(judged):
                    return False
            except ValueError as error:
                self._count_unjudged(f"{name}: {error}")
                return False
        return True

    def _passing(self, records: Sequence[FetchedRecord]) -> list[bool]:
        assert self.conditions is not None
        verdicts = self.conditions.judge([Judged(record, self.decoder) for record in records])
        for verdict in verdicts:
            if isinstance(verdict, str):
                self._count_unjudged(verdict)
        return [verdict is True for verdict in verdicts]

    def _count_unjudged(self, reason: str) -> None:
        self.unjudged_count += 1
        self.unjudged_reason = self.unjudged_reason or reason


def build_filter(
    texts: FilterTexts, decoder: Decoder | None = None, *, until_ms: int | None = None
) -> MessageFilter:
    """The test that the texts describe, of records before a time; JSON path and expression see
    what the decoder gives.

    :raises FilterError: one of them cannot be used.
    """
    judges: list[tuple[str, Judge]] = []
    if until_ms is not None:
        judges.append(("until", lambda judged: judged.record.timestamp_ms < until_ms))
    conditions: dict[str, str] = {}
    for name in (each.name for each in fields(texts)):
        if (text := getattr(texts, name)) or (name == "key" and text is not None):
            if len(text) > CHARACTERS_MAX:
                words = f"{len(text):,} characters; at most {CHARACTERS_MAX:,} are taken"
                raise FilterError(name, words)
            _typed_bytes(text, name)
            if name in _BUILDERS:
                judges.append((name.replace("_", " "), _BUILDERS[name](text)))
            else:
                conditions[name] = text
    return MessageFilter(
        judges=judges,
        decoder=decoder,
        may_match=_batch_test(texts),
        conditions=ConditionProcess(conditions) if conditions else None,
    )


def _holds_text(text: str) -> Judge:
    search = _literal(text).search
    small = text.lower()
    may_be_hex = _HEX_DIGITS.fullmatch(text) is not None

    def holds(part: bytes) -> bool:
        if search(part):
            return True
        return may_be_hex and not is_text(part) and small in "0x" + part.hex()

    return lambda judged: any(map(holds, judged.parts))


def _holds_pattern(text: str) -> Judge:
    in_text, in_bytes = _searches(text)
    return lambda judged: any(
        in_text(part) if is_text(part) else in_bytes(part) for part in judged.parts
    )


def _searches(pattern: str) -> tuple[Callable[[bytes], object], Callable[[bytes], object]]:
    """For parts that are text, and for those that are not."""
    in_text = pattern_of(pattern, "regex", spans_lines=True)
    in_bytes = pattern_of(pattern, "regex", spans_lines=True, of_bytes=True)
    return in_text.search, in_bytes.search


def _has_key(text: str) -> Judge:
    matches = _glob(text, "key")
    return lambda judged: matches(judged.record.key)


def _has_header(text: str) -> Judge:
    """A name may hold an equals sign too: each of them is tried as the end of the name."""
    tests: list[tuple[Callable[[bytes], bool], Callable[[bytes | None], bool]]] = [
        (_pieces_test(_typed_bytes(text, "header").split(b"*")), lambda _: True)
    ]
    for sign in re.finditer("=", text):
        name, value = text[: sign.start()], text[sign.end() :]
        pieces = _typed_bytes(name, "header").split(b"*")
        tests.append((_pieces_test(pieces), _glob(value, "header")))

    def has(name: str, content: bytes | None) -> bool:
        named = name.encode(errors="replace")
        return any(is_name(named) and is_value(content) for is_name, is_value in tests)

    return lambda judged: any(has(name, content) for name, content in judged.record.headers)


def _glob(text: str, field_name: str) -> Callable[[bytes | None], bool]:
    """Tests a whole key or header value.

    A text finds itself, with ``*`` for any bytes; ``0x…`` finds those bytes as well. ``null`` finds
    null. In quotes null, ``0x…`` and nothing are texts.
    """
    if text == _NULL:
        return lambda part: part is None
    tests = [_pieces_test(pieces) for pieces in _readings(text, field_name)]
    return lambda part: part is not None and any(test(part) for test in tests)


def _readings(text: str, field_name: str) -> list[list[bytes]]:
    """The meanings of a text, each as the pieces between its stars."""
    readings = [_typed_bytes(text, field_name).split(b"*")]
    if (found := _BYTES.fullmatch(text)) and found[1].strip("*"):
        readings.append([bytes.fromhex(piece) for piece in found[1].split("*")])
    if quoted := _QUOTED.fullmatch(text):
        readings.append([quoted[1].encode()])
    return readings


def _pieces_test(pieces: Sequence[bytes]) -> Callable[[bytes], bool]:
    first, *middle = pieces
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
    typed = _typed_bytes(text, "text")
    escaped = re2.escape(typed).decode(errors="surrogateescape")
    return pattern_of(escaped, "text", ignores_case=True, of_bytes=not is_text(typed))


def _typed_bytes(text: str, field_name: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        words = f"{text!r} holds half a surrogate pair, which has no bytes"
        raise FilterError(field_name, words) from None


def _batch_test(texts: FilterTexts) -> MayMatch | None:
    """A test of a whole batch's bytes: they hold the text and the pattern, or no record
    of it does."""
    searches: list[Callable[[bytes], object]] = []
    if texts.text and not _HEX_DIGITS.fullmatch(texts.text):
        searches.append(_literal(texts.text).search)
    if texts.regex and not _LOOKS_AROUND.search(texts.regex):
        in_text, in_bytes = _searches(texts.regex)
        is_plain = texts.regex.isalnum() and texts.regex.isascii()
        searches.append(in_text if is_plain else lambda it: in_text(it) or in_bytes(it))
    if texts.key and texts.key != _NULL:
        readings = _readings(texts.key, "key")
        searches.append(lambda it: any(all(map(it.__contains__, pieces)) for pieces in readings))
    if not searches:
        return None
    return lambda plain: all(search(bytes(plain)) for search in searches)


_BUILDERS: Final[Mapping[str, Callable[[str], Judge]]] = {
    "text": _holds_text,
    "regex": _holds_pattern,
    "key": _has_key,
    "header": _has_header,
}
