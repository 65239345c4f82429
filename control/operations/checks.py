"""Checks of single form fields: each answers what is wrong with a text, or None."""

import math
import re
from collections.abc import Callable
from typing import Final

from control.model.config_values import plain_value
from control.model.ids import partition_numbers
from control.model.units import parse_byte_rate, parse_duration
from control.move.throttle import (
    RATE_MAX_BYTES_PER_S,
    RATE_MIN_BYTES_PER_S,
    THROTTLE_AUTO,
    THROTTLE_NONE,
    Throttle,
)
from control.move.window import parse_day_time
from control.operations.errors import InvalidInputError
from planner.by_hand import HandError, parse_edits

FieldCheck = Callable[[str], str | None]

TOPIC_CHARACTERS_MAX: Final = 249
PARTITIONS_MAX: Final = 100_000
FACTOR_MAX: Final = 100
"""Replicas of a partition; more than a cluster of today has brokers."""
SPREAD_MS_MAX: Final = 86_400_000
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name(text: str) -> str | None:
    """Kafka's rule for topic names."""
    if text in (".", "..") or not _TOPIC.fullmatch(text):
        return "letters, digits, '.', '_' and '-' only"
    if len(text) > TOPIC_CHARACTERS_MAX:
        return f"at most {TOPIC_CHARACTERS_MAX} characters"
    return None


def whole(low: int, high: int) -> FieldCheck:
    """A whole number from `low` to `high`."""

    def check(text: str) -> str | None:
        if re.fullmatch("-?[0-9]{1,19}", text) and low <= int(text) <= high:
            return None
        return f"a whole number from {low} to {high}"

    return check


def partitions(text: str) -> str | None:
    """Numbers of partitions and ranges of them."""
    try:
        partition_numbers(text)
    except ValueError as error:
        return str(error)
    return None


def positive_number(text: str) -> str | None:
    """A number above zero."""
    try:
        is_fine = 0 < float(text) < math.inf
    except ValueError:
        is_fine = False
    return None if is_fine else "a number above 0"


def broker_id(text: str) -> str | None:
    """One id."""
    return None if text.isascii() and text.isdigit() else "a broker's id such as 101"


def broker_ids(text: str) -> str | None:
    """Ids with commas between."""
    is_fine = all(re.fullmatch("[0-9]{1,10}", part) for part in split_pairs(text))
    return None if is_fine else "broker ids with commas between, like 101,102"


def throttle(text: str) -> str | None:
    """auto, none or a rate."""
    rate = parse_byte_rate(text)
    if text in ("auto", "none") or (rate is not None and rate >= RATE_MIN_BYTES_PER_S):
        return None
    return "auto, none, or a rate from 1 KiB such as 50MiB"


def fixed_rate(throttle: Throttle) -> int | None:
    """Bytes per second of a throttle that no plan decides: null for none and auto.

    :raises InvalidInputError: neither auto, none nor a rate.
    """
    if throttle in (THROTTLE_AUTO, THROTTLE_NONE):
        return None
    rate = throttle if isinstance(throttle, int) else parse_byte_rate(throttle)
    if rate is None:
        raise InvalidInputError({"throttle": f"{throttle!r} is not auto, none or a rate: 50MiB"})
    if rate > RATE_MAX_BYTES_PER_S:
        reason = f"{throttle!r} is more than Kafka takes: 50MiB, or none"
        raise InvalidInputError({"throttle": reason})
    return rate


def spread(text: str) -> str | None:
    """none or a time."""
    return None if spread_seconds(text) is not None else "none, or a time up to a day such as 5m"


def spread_seconds(text: str) -> float | None:
    """Seconds of ``none`` or of a time with its unit; null: the text is neither."""
    if text == "none":
        return 0.0
    milliseconds = parse_duration(text) if text.strip()[-1:].isalpha() else None
    if milliseconds is None or not 0 <= milliseconds <= SPREAD_MS_MAX:
        return None
    return milliseconds / 1000


def yield_time(text: str) -> str | None:
    """A time of seconds at least."""
    return None if (spread_seconds(text) or 0.0) >= 1.0 else "a time from 1s to a day such as 30s"


def day_time(text: str) -> str | None:
    """A time of the day."""
    return None if parse_day_time(text) else "a time of the day from 00:00 to 23:59, such as 01:00"


def by_hand(text: str) -> str | None:
    """Partitions placed by hand."""
    try:
        parse_edits(text)
    except HandError as error:
        return str(error)
    return None


def config_pairs(text: str) -> str | None:
    """name=value with commas or line breaks between."""
    found: dict[str, str] = {}
    for part in _pair_texts(text):
        name, equals, value = part.partition("=")
        if not equals or not name:
            return f"'{part}' is not name=value"
        if found.setdefault(name, value) != value:
            return f"'{part}': {name} is {found[name]!r} before it"
    return None


def headers(text: str) -> str | None:
    """name=value as of configs; a name may be there more than once."""
    try:
        header_pairs(text)
    except ValueError as error:
        return str(error)
    return None


def header_pairs(text: str) -> tuple[tuple[str, bytes], ...]:
    """Names and values of headers, in their order.

    :raises ValueError: a part is not name=value, or has half a surrogate pair.
    """
    found = []
    for part in _pair_texts(text):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise ValueError(f"'{part}' is not name=value")
        try:
            name.encode()
            found.append((name, value.encode()))
        except UnicodeEncodeError:
            message = f"{part!r} holds half a surrogate pair, which has no bytes"
            raise ValueError(message) from None
    return tuple(found)


def split_pairs(text: str) -> list[str]:
    """The parts between commas or line breaks, blanks removed."""
    return [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]


def pairs(text: str) -> dict[str, str]:
    """Checked name=value text of configs as a mapping, with values as Kafka takes them."""
    given = dict(part.split("=", 1) for part in _pair_texts(text))
    return {name: plain_value(name, value) for name, value in given.items()}


def is_on(text: str) -> bool:
    """Whether a field of kind flag is set."""
    return text in ("1", "true", "yes", "on")


def _pair_texts(text: str) -> list[str]:
    """A part without ``=`` on the same line goes on with the value before it, as in
    ``cleanup.policy=compact,delete``."""
    found: list[str] = []
    for line in text.splitlines():
        is_first = True
        for part in (part.strip() for part in line.split(",")):
            if part and "=" not in part and not is_first:
                found[-1] += f",{part}"
            elif part:
                found.append(part)
                is_first = False
    return found
