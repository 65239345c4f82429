"""Judges a record's value: by JSON path (RFC 9535), or by an expression of the Common Expression
Language about all of the record.

What a condition costs is bounded by nothing here: only the worker's process uses these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import cel
from jsonpath import JSONPathEnvironment, JSONPathError
from jsonpath.function_extensions import ExpressionType, FilterFunction

from control.messages.patterns import FilterError, pattern_of

CEL_NAMES: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "size")
CEL_HELP: Final = f"names: {', '.join(CEL_NAMES)}; value is a document where it is decoded to one"
_PATTERNS_MAX: Final = 50
_CEL_LITERALS: Final = re.compile(
    r"""//[^\n]*
    |\b(?i:rb?|br)(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
    |\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'
    """,
    re.DOTALL | re.VERBOSE,
)
"""Comments, and strings with their prefixes: what is in them is no call."""
_CEL_LOOP_NAMES: Final = re.compile(
    r"\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(\s*(\w+)\s*,"
)
_CEL_ERRORS: Final = (ValueError, TypeError, LookupError, RuntimeError, ArithmeticError)


class _Re2Function(FilterFunction):
    """JSON path's ``match`` and ``search`` without the time that Python's patterns may take."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._patterns: dict[str, Any] = {}

    @property
    def arg_types(self) -> list[ExpressionType]:
        """The text and the pattern."""
        return [ExpressionType.VALUE, ExpressionType.VALUE]

    @property
    def return_type(self) -> ExpressionType:
        """Whether it matches."""
        return ExpressionType.LOGICAL

    def __call__(self, value: object, pattern: object) -> bool:
        if not isinstance(value, str) or not isinstance(pattern, str):
            return False
        if pattern not in self._patterns:
            if len(self._patterns) >= _PATTERNS_MAX:
                self._patterns.clear()
            self._patterns[pattern] = pattern_of(pattern, "json_path")
        found = getattr(self._patterns[pattern], self._method)(value.encode(errors="replace"))
        return found is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Judges a record by the values of the names that it needs."""

    field: str
    names: frozenset[str]
    judge: Callable[[Mapping[str, Any]], bool]
    """:raises ValueError: the record cannot be judged."""


def json_path_condition(text: str) -> Condition:
    """Whether the path finds something in a value.

    :raises FilterError: it is no path.
    """
    paths = JSONPathEnvironment(strict=True)
    paths.function_extensions["match"] = _Re2Function("fullmatch")
    paths.function_extensions["search"] = _Re2Function("search")
    try:
        path = paths.compile(text)
    except JSONPathError as error:
        at = getattr(getattr(error, "token", None), "index", -1)
        where = f"at character {at + 1}" if at >= 0 else "at its end"
        words = f"{text!r} {where}: {str(error).splitlines()[0]}"
        raise FilterError("json_path", words) from None
    except RecursionError:
        raise FilterError("json_path", "it is nested too deeply") from None

    def judge(row: Mapping[str, Any]) -> bool:
        try:
            return next(iter(path.finditer(row["value"])), None) is not None
        except (JSONPathError, RecursionError) as error:
            raise ValueError(_words(error)) from error

    return Condition(field="json_path", names=frozenset({"value"}), judge=judge)


def expression_condition(text: str) -> Condition:
    """Whether the expression is true of a record.

    :raises FilterError: it is no expression, or names what is not known.
    """
    program = _program(text)
    known = {*CEL_NAMES, *_CEL_LOOP_NAMES.findall(_CEL_LITERALS.sub(" ", text))}
    unknown = [name for name in program.variables() if name not in known]
    if unknown:
        at = text.find(unknown[0]) + 1
        words = f"{text!r} at character {at}: {unknown[0]!r} is not known; {CEL_HELP}"
        raise FilterError("cel", words)

    used = frozenset(CEL_NAMES) & frozenset(program.variables())

    def judge(row: Mapping[str, Any]) -> bool:
        known = {name: row[name] for name in used}
        if "timestamp" in used:
            known["timestamp"] = _time_of(row["timestamp"])
        try:
            found = program.execute(known)
        except _CEL_ERRORS as error:
            raise ValueError(_words(error)) from error
        if not isinstance(found, bool):
            raise ValueError(f"it gives {type(found).__name__}, neither true nor false")
        return found

    return Condition(field="cel", names=used, judge=judge)


def _program(text: str) -> Any:
    try:
        return cel.compile(text)
    except (ValueError, RuntimeError) as error:
        told = re.search(r"<input>:(\d+):(\d+): (.*)", str(error))
        if told is None:
            raise FilterError("cel", f"{text!r}: {_words(error)}") from None
        words = f"{text!r} at character {told[2]}: {told[3].strip()}"
        raise FilterError("cel", words) from None


def _time_of(at_ms: int) -> datetime:
    """A producer that counts in another unit writes times beyond every calendar.

    :raises ValueError: this one did.
    """
    try:
        return datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    except (OverflowError, OSError):
        raise ValueError(f"{at_ms} ms is no time") from None


def _words(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"there is no field {error.args[0]!r}"
    words = str(error).split(". CEL does not", 1)[0].splitlines()
    return words[0] if words else type(error).__name__


BUILDERS: Final[Mapping[str, Callable[[str], Condition]]] = {
    "json_path": json_path_condition,
    "cel": expression_condition,
}
