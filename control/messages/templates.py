"""Value templates: known placeholders in braces, everything else (JSON braces too) stays.

=====================  ==========================================
``{n}``                number of the record, from 0
``{key}``              its key, empty when there is none
``{ms}``, ``{now}``    wall clock in ms, or as ISO 8601 in UTC
``{uuid}``             a new UUID
``{random:LOW-HIGH}``  a whole number, both ends included
``{pad:N}``            N bytes of filling
=====================  ==========================================
"""

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import numpy as np

PAD_BYTES_MAX: Final = 10 << 20
_DIGITS_MAX: Final = 100
_QUOTED_MAX: Final = 80
_PLACEHOLDER: Final = re.compile(
    r"\{(?P<name>n|key|ms|now|uuid"
    r"|random:(?P<low>-?[0-9]+)-(?P<high>-?[0-9]+)|pad:(?P<pad>[0-9]+))\}"
)


class TemplateError(ValueError):
    """A placeholder with impossible numbers."""


class Template:
    """A parsed template.

    :raises TemplateError: `random` with low above high, or `pad` beyond PAD_BYTES_MAX.
    """

    def __init__(self, text: str, rng: np.random.Generator) -> None:
        self.text = text
        self._rng = rng
        for match in _PLACEHOLDER.finditer(text):
            _check(match)
        self._is_plain = _PLACEHOLDER.search(text) is None
        try:
            self._plain = text.encode(errors="surrogateescape")
        except UnicodeEncodeError:
            words = f"{text!r} holds half a surrogate pair, which has no bytes"
            raise TemplateError(words) from None

    def render(self, *, n: int, key: bytes | None, now_ms: int) -> bytes:
        """The value of record `n`."""
        if self._is_plain:
            return self._plain
        values: dict[str, Callable[[], str]] = {
            "n": lambda: str(n),
            "key": lambda: (key or b"").decode(errors="surrogateescape"),
            "ms": lambda: str(now_ms),
            "now": lambda: _iso(now_ms),
            "uuid": lambda: str(uuid.uuid4()),
        }

        def replace(match: re.Match[str]) -> str:
            if match["pad"] is not None:
                return "x" * int(match["pad"])
            if match["low"] is not None:
                low, high = int(match["low"]), int(match["high"])
                return str(self._rng.integers(low, high, endpoint=True))
            return values[match["name"]]()

        return _PLACEHOLDER.sub(replace, self.text).encode(errors="surrogateescape")


def replaces(text: str) -> bool:
    """Whether a template of this text would give another one."""
    return _PLACEHOLDER.search(text) is not None


def _iso(now_ms: int) -> str:
    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _check(match: re.Match[str]) -> None:
    if match["low"] is not None:
        low, high = (_bounded(match[name], 1 << 63) for name in ("low", "high"))
        if not -(1 << 63) <= low <= high < 1 << 63:
            why = (
                "the first number is above the second"
                if low > high
                else "at most 64 bits are drawn"
            )
            raise TemplateError(f"{match[0][:_QUOTED_MAX]}: {why}")
    if match["pad"] is not None and _bounded(match["pad"], PAD_BYTES_MAX + 1) > PAD_BYTES_MAX:
        raise TemplateError(f"{match[0][:_QUOTED_MAX]}: at most {PAD_BYTES_MAX} bytes")


def _bounded(digits: str, most: int) -> int:
    """The number; of one with hundreds of digits, which Python does not read, one beyond `most`."""
    if len(digits) <= _DIGITS_MAX:
        return int(digits)
    return -most - 1 if digits[0] == "-" else most
