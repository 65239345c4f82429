"""Judges a record's value: by JSON path (RFC 9535), or by an expression of the Common Expression
Language about all of the record."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import cel
from jsonpath import JSONPathEnvironment, JSONPathError
from jsonpath.function_extensions import ExpressionType, FilterFunction

from control.messages.judged_records import FilterError, Judge, Judged, pattern_of

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
_CEL_LOOP: Final = r"\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\("
_CEL_PARENTHESES: Final = re.compile(rf"{_CEL_LOOP}|[()]")
_CEL_LOOP_NAMES: Final = re.compile(rf"{_CEL_LOOP}\s*(\w+)\s*,")
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


def json_path_judge(text: str) -> Judge:
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

    def judge(judged: Judged) -> bool:
        try:
            return next(iter(path.finditer(judged.document)), None) is not None
        except (JSONPathError, RecursionError) as error:
            raise ValueError(_words(error)) from error

    return judge


def expression_judge(text: str) -> Judge:
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

    used = {name: _NAMES[name] for name in CEL_NAMES if name in program.variables()}

    def judge(judged: Judged) -> bool:
        try:
            found = program.execute({name: told(judged) for name, told in used.items()})
        except _CEL_ERRORS as error:
            raise ValueError(_words(error)) from error
        if not isinstance(found, bool):
            raise ValueError(f"it gives {type(found).__name__}, neither true nor false")
        return found

    return judge


def _program(text: str) -> Any:
    if _is_loop_in_loop(text):
        words = "a loop within a loop (all, exists, map, filter) may take minutes for one record"
        raise FilterError("cel", f"{text!r}: {words}; leave one of them out")
    try:
        return cel.compile(text)
    except (ValueError, RuntimeError) as error:
        told = re.search(r"<input>:(\d+):(\d+): (.*)", str(error))
        if told is None:
            raise FilterError("cel", f"{text!r}: {_words(error)}") from None
        words = f"{text!r} at character {told[2]}: {told[3].strip()}"
        raise FilterError("cel", words) from None


def _is_loop_in_loop(text: str) -> bool:
    """Only one loop at a time: the time of two grows with the square of a list's length."""
    is_loop: list[bool] = []
    for part in _CEL_PARENTHESES.findall(_CEL_LITERALS.sub(" ", text)):
        if part == ")":
            is_loop = is_loop[:-1]
        elif part.endswith("("):
            if part != "(" and any(is_loop):
                return True
            is_loop.append(part != "(")
    return False


def _key_of(judged: Judged) -> Any:
    return _text_or_bytes(judged.key) if isinstance(judged.key, bytes) else judged.key


def _value_of(judged: Judged) -> Any:
    try:
        return judged.document
    except ValueError:
        return _text_or_bytes(judged.record.value)


def _headers_of(judged: Judged) -> dict[str, Any]:
    return {name: _text_or_bytes(content) for name, content in judged.record.headers}


def _time_of(at_ms: int) -> datetime:
    """A producer that counts in another unit writes times beyond every calendar.

    :raises ValueError: this one did.
    """
    try:
        return datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    except (OverflowError, OSError):
        raise ValueError(f"{at_ms} ms is no time") from None


def _text_or_bytes(value: bytes | None) -> str | bytes | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _words(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"there is no field {error.args[0]!r}"
    words = str(error).split(". CEL does not", 1)[0].splitlines()
    return words[0] if words else type(error).__name__


_NAMES: Final[Mapping[str, Callable[[Judged], Any]]] = {
    "key": _key_of,
    "value": _value_of,
    "headers": _headers_of,
    "topic": lambda judged: judged.record.topic,
    "partition": lambda judged: judged.record.partition,
    "offset": lambda judged: judged.record.offset,
    "timestamp": lambda judged: _time_of(judged.record.timestamp_ms),
    "size": lambda judged: judged.record.size_bytes,
}
"""Only those that an expression names are looked up: a wild time spoils no other comparison."""
