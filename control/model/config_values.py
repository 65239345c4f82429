"""Values of configs: as people write them (``7d``, ``1.5 GiB``), as Kafka takes them, and told with
what they mean. Pure."""

import re
from fractions import Fraction
from typing import Final

from control.model.units import TIMES_MS, byte_rate_text, bytes_text, duration_text

UNITS_MS: Final = {".ms": 1, ".seconds": 1_000, ".minutes": 60_000, ".hours": 3_600_000}
"""Unit of a config that is a time, by the end of its name."""
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", re.IGNORECASE)
_SIZES: Final = {unit: 1024**power for power, unit in enumerate("KMGT", start=1)}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?(?:/s)?", re.IGNORECASE)
_DIGITS_MAX: Final = 40
_LIMITLESS: Final = frozenset({2**31 - 1, 2**63 - 1})


def plain_value(name: str, text: str) -> str:
    """``604800000`` of ``retention.ms`` and ``7d``, ``1073741824`` of ``segment.bytes`` and
    ``1 GiB``. A text that has no such meaning stays as it is: the cluster judges it."""
    written = text.strip()
    if len(written) > _DIGITS_MAX:
        return text
    unit_ms = next((ms for end, ms in UNITS_MS.items() if name.endswith(end)), None)
    if unit_ms is not None:
        value = _time_ms(written) / unit_ms
    elif "bytes" in name.split(".") or name.endswith(".rate"):
        found = _SIZE.fullmatch(written)
        value = Fraction(found[1]) * _SIZES[found[2].upper()] if found else Fraction(0)
    else:
        return text
    return str(value.numerator) if value and value.denominator == 1 else text


def meaning(name: str, value: str | None) -> str:
    """A number in its unit, as people say it; empty: the number says it already.

    >>> meaning("retention.ms", "604800000")
    '7 d'
    """
    try:
        number = int(value or "")
    except ValueError:
        return ""
    if number in _LIMITLESS or (number == -1 and "retention" in name):
        return "no limit"
    unit = next((factor for end, factor in UNITS_MS.items() if name.endswith(end)), 0)
    if number <= 0 or not (unit or "bytes" in name or name.endswith(".rate")):
        return ""
    if unit:
        return duration_text(number * unit)
    return byte_rate_text(number) if name.endswith(".rate") else bytes_text(number)


def value_words(name: str, value: str) -> str:
    """``604800000 (7 d)``: the value, and what it means where that is not the same."""
    means = meaning(name, value)
    return f"{value} ({means})" if means else value or "empty"


def _time_ms(text: str) -> Fraction:
    """Milliseconds of ``7d`` or ``6 d 3 h``; 0: it is no time with a unit."""
    if re.fullmatch(f"(?:{_TIME.pattern})+", text, re.IGNORECASE) is None:
        return Fraction(0)
    parts = _TIME.findall(text)
    return sum((Fraction(amount) * TIMES_MS[unit.lower()] for amount, unit in parts), Fraction(0))
