"""The filter language of every table: ``lag>10000 broker:102 status:under-replicated orders``.

A filter is a list of terms; a row passes when all do. A term is a word (found anywhere in the
row's name), or ``field`` ``operator`` ``value``; a ``-`` in front turns it round; quotes keep
blanks together. A field is a column's name, which ``column_name`` makes of its head.

- ``:`` finds a part of a text, one of a list (``broker:102``: any replica on 102; ``status:``:
  any state that applies), or an equal number.
- ``=`` ``!=`` compare whole values, ``>`` ``>=`` ``<`` ``<=`` numbers, and texts by their
  letters (``topic>=a topic<c``). Numbers take ``k``,
  ``M``, ``G`` (thousands) and ``Ki``, ``Mi``, ``Gi``, ``Ti`` (``size>1.5Gi``); times take
  ``ms``, ``s``, ``m``, ``h``, ``d`` (``clears>1h``, ``loses<2d``).

Unknown (n/a) passes no comparison but ``lag:unknown``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import BoolColumn, exploded, floats
from control.model.ids import other_names
from control.model.units import DECIMAL, parse_duration

TERMS_MAX: Final = 20
CHARACTERS_MAX: Final = 2_000
"""A longer filter is a mistake, such as a pasted text."""


class FilterError(ValueError):
    """A filter that cannot be understood; its text says why and what would be."""


class FieldKind(Enum):
    """Kind of a field's values, which decides how they are compared."""

    TEXT = "text"
    NUMBER = "number"
    DURATION = "duration in ms"
    IDS = "list of numbers"
    WORDS = "list of words"


@dataclass(frozen=True, slots=True)
class FilterField:
    """Where a field of the language finds its values in a table."""

    column: str
    kind: FieldKind
    name: str = ""
    """How it is called first, of its several names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term. ``field`` is empty for a bare word."""

    field: str
    operator: str
    value: str
    is_negated: bool = False


_TERM: Final = re.compile(
    r"""(?P<no>-)?(?:(?P<field>[A-Za-z_][\w/-]*|"[^"]+")(?P<op>:|>=|<=|!=|=|>|<))?(?P<value>"[^"]*"|\S+)"""
)
_HALF_TERM: Final = re.compile(r"-?[A-Za-z_][\w/-]*(?::|>=|<=|!=|=|>|<)")
"""``lag>`` with nothing after it: the pattern above takes it for a bare word."""
_NUMBER: Final = re.compile(rf"(?P<digits>{DECIMAL})(?P<unit>[A-Za-z]*)")
_UNITS: Final = {
    "": 1.0, "k": 1e3, "m": 1e6, "g": 1e9,
    "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40,
    "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40,
}  # fmt: skip


def parse_filter(text: str) -> tuple[Term, ...]:
    """Cut a filter into terms.

    Raises:
        FilterError: more than ``TERMS_MAX`` terms or ``CHARACTERS_MAX`` characters, or a quote
            that is not closed.
    """
    if len(text) > CHARACTERS_MAX:
        raise FilterError(
            f"it has {len(text):,} characters, and a filter {CHARACTERS_MAX:,} at most; it begins "
            f"with {text[:40]!r}"
        )
    if text.count('"') % 2:
        raise FilterError(f"{text[text.rindex(chr(34)) :]} is not closed by a second quote")
    terms = tuple(_term(found) for found in _TERM.finditer(text))
    if len(terms) > TERMS_MAX:
        raise FilterError(f"more than {TERMS_MAX} terms")
    return terms


def _term(found: re.Match[str]) -> Term:
    term = Term(
        field=column_name((found["field"] or "").strip('"')),
        operator=found["op"] or ":",
        value=found["value"].strip('"'),
        is_negated=bool(found["no"]),
    )
    if not term.value or _HALF_TERM.fullmatch(found[0]):
        raise FilterError(f"{found[0]!r} has no value after it")
    return term


def filter_mask(
    table: pa.Table, text: str, fields: Mapping[str, FilterField], *, name_column: str
) -> BoolColumn:
    """Which rows of ``table`` pass. ``name_column`` is where bare words are looked for.

    Raises:
        FilterError: an unknown field, a value of the wrong kind, too many terms.
    """
    mask: BoolColumn = np.ones(table.num_rows, dtype=np.bool_)
    for _, _, passed in _judged_terms(table, text, fields, name_column):
        mask &= passed
    return mask


def filter_truth(
    table: pa.Table, text: str, fields: Mapping[str, FilterField], *, name_column: str
) -> tuple[BoolColumn, BoolColumn]:
    """Rows that are known to pass, and rows that nobody can judge: a figure that a term asks for is
    unknown, and no other term rules the row out.

    Raises:
        FilterError: as ``filter_mask``.
    """
    passes: BoolColumn = np.ones(table.num_rows, dtype=np.bool_)
    may_pass = passes.copy()
    for term, place, passed in _judged_terms(table, text, fields, name_column):
        is_unknown = _bools(pc.is_null(table[place.column], nan_is_null=True))
        if term.value.lower() in _UNKNOWN:
            is_unknown &= False
        passes &= passed & ~is_unknown
        may_pass &= passed | is_unknown
    return passes, may_pass & ~passes


def _judged_terms(
    table: pa.Table, text: str, fields: Mapping[str, FilterField], name_column: str
) -> Iterator[tuple[Term, FilterField, BoolColumn]]:
    """Each term with the column that it asks, and which rows pass it."""
    named = {**fields, "": FilterField(name_column, FieldKind.TEXT)}
    for term in parse_filter(text):
        place = named.get(term.field)
        if place is None:
            raise FilterError(unknown_column(term.field, fields))
        try:
            passed = _MATCHERS[place.kind](table[place.column], term)
        except FilterError as error:
            raise FilterError(f"{term.field}{term.operator}{term.value}: {error}") from error
        yield term, place, ~passed if term.is_negated else passed


def column_name(words: str) -> str:
    """A column's head, or any other name of it, as one word: ``Lag trend`` is ``lag_trend``."""
    return re.sub(r"[\s-]+", "_", words.strip().lower())


def unknown_column(name: str, fields: Mapping[str, FilterField]) -> str:
    """Message about a column that is not there; a near name is offered first."""
    named = {called: each.name or called for called, each in fields.items()}
    first = dict.fromkeys(named.values())
    return f"no column {name!r}; {other_names(column_name(name), first, synonyms=named)}"


def parse_number(text: str) -> float:
    """``10000``, ``10k``, ``1.5Gi``.

    Raises:
        FilterError: not a number.
    """
    found = _NUMBER.fullmatch(text)
    unit = found["unit"].lower() if found else ""
    if found is None or unit not in _UNITS:
        raise FilterError(f"{text!r} is not a number (such as 10000, 10k or 1.5Gi)")
    return float(found["digits"].replace(",", "")) * _UNITS[unit]


def _match_text(column: pa.ChunkedArray, term: Term) -> BoolColumn:
    if term.operator in {"=", "!="}:
        equal = _bools(pc.equal(column, term.value))
        return equal if term.operator == "=" else ~equal
    if term.operator in _TEXT_COMPARISONS:
        return _bools(_TEXT_COMPARISONS[term.operator](column, term.value))
    return _bools(pc.match_substring(column, term.value, ignore_case=True))


def _match_number(column: pa.ChunkedArray, term: Term) -> BoolColumn:
    return _compared(column, term, parse_number)


def _match_duration(column: pa.ChunkedArray, term: Term) -> BoolColumn:
    return _compared(column, term, _parse_time)


def _compared(column: pa.ChunkedArray, term: Term, parse: Callable[[str], float]) -> BoolColumn:
    values = floats(column)
    is_unknown = np.isnan(values)
    if term.value.lower() in _UNKNOWN and term.operator in {":", "=", "!="}:
        return ~is_unknown if term.operator == "!=" else is_unknown
    passed: BoolColumn = _COMPARISONS[term.operator](values, parse(term.value)) & ~is_unknown
    return passed


def _parse_time(text: str) -> float:
    if (wanted := parse_duration(text)) is None:
        raise FilterError(f"{text!r} is not a time (such as 90s, 10m, 1.5h or 2d)")
    return wanted


def _match_ids(column: pa.ChunkedArray, term: Term) -> BoolColumn:
    if term.operator not in {":", "=", "!="}:
        raise FilterError(f"{term.field} is a list of ids: use {term.field}:101")
    row, element = exploded(column)
    holds = np.zeros(len(column), dtype=np.bool_)
    holds[row[element == parse_number(term.value)]] = True
    return ~holds if term.operator == "!=" else holds


def _match_words(column: pa.ChunkedArray, term: Term) -> BoolColumn:
    """Words are kept as one text, each between blanks: `` at-min-isr under-replicated ``."""
    if term.operator not in {":", "=", "!="}:
        raise FilterError(f"{term.field} is a word: use {term.field}:… or {term.field}=…")
    exact = term.operator in {"=", "!="}
    wanted = f" {term.value} " if exact else f" {term.value}"
    holds = _bools(pc.match_substring(column, wanted, ignore_case=True))
    return ~holds if term.operator == "!=" else holds


def _bools(values: pa.ChunkedArray) -> BoolColumn:
    mask: BoolColumn = pc.fill_null(values, False).to_numpy()
    return mask


_UNKNOWN: Final = ("unknown", "n/a")
_COMPARISONS: Final = {
    ":": np.equal,
    "=": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
}
_TEXT_COMPARISONS: Final = {
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}
_MATCHERS: Final = {
    FieldKind.TEXT: _match_text,
    FieldKind.NUMBER: _match_number,
    FieldKind.DURATION: _match_duration,
    FieldKind.IDS: _match_ids,
    FieldKind.WORDS: _match_words,
}
