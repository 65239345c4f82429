"""Choosers of keys: which key the next record has.

``none`` · ``seq`` (k-0, k-1, …) · ``uniform:N`` (N keys, equally often) · ``zipf:N[:S]`` (N keys,
the first ones hot, exponent S) · anything else is one fixed key, ``{n}`` in it the number.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

KEYS_MAX: Final = 1_000_000
ZIPF_EXPONENT: Final = 1.1
_DRAWN_AT_ONCE: Final = 1024

_DESCRIPTIONS: Final = r"none|seq|(?:uniform|zipf):.+"

KeyChooser = Callable[[int], bytes | None]
"""From the number of a record to its key."""


class KeySpecError(ValueError):
    """A key description that cannot be read."""


def parse_keys(spec: str | None, rng: np.random.Generator) -> KeyChooser:
    """The chooser that `spec` describes; None is no key.

    :raises KeySpecError: bad numbers.
    """
    if spec is None or spec == "none":
        return lambda _: None
    if spec == "seq":
        return lambda n: b"k-%d" % n
    kind, _, arguments = spec.partition(":")
    if kind == "uniform" and arguments:
        keys = _numbered(arguments, spec)
        return _drawn(keys, np.full(len(keys), 1.0 / len(keys)), rng)
    if kind == "zipf" and arguments:
        count, _, exponent = arguments.partition(":")
        keys = _numbered(count, spec)
        return _drawn(keys, zipf_weights(len(keys), _exponent(exponent, spec)), rng)
    if "{n}" in spec:
        return lambda n: bytes_of(spec.replace("{n}", str(n)))
    fixed = bytes_of(spec)
    return lambda _: fixed


def bytes_of(text: str) -> bytes:
    """A text as UTF-8; bytes of a command line that are not UTF-8, as they were typed.

    :raises KeySpecError: half a surrogate pair, which has no bytes.
    """
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise KeySpecError(f"{text!r} holds half a surrogate pair, which has no bytes") from None


def is_description(key: str | None) -> bool:
    """Whether a key with this text would be read as a description of other keys."""
    return key is not None and re.fullmatch(_DESCRIPTIONS, key) is not None


def from_list(keys: Sequence[bytes | None]) -> KeyChooser:
    """The keys in turn, from the start again at the end.

    :raises KeySpecError: no keys.
    """
    if not keys:
        raise KeySpecError("no keys are there")
    return lambda n: keys[n % len(keys)]


def zipf_weights(count: int, exponent: float = ZIPF_EXPONENT) -> np.ndarray:
    """Shares of `count` keys that sum to 1, the hottest first: share ~ 1 / rank^exponent."""
    weights = 1.0 / np.arange(1, count + 1, dtype=np.float64) ** exponent
    return np.asarray(weights / weights.sum())


def _drawn(keys: list[bytes], weights: np.ndarray, rng: np.random.Generator) -> KeyChooser:
    cumulated = np.cumsum(weights)
    pool: list[int] = []

    def choose(_: int) -> bytes:
        if not pool:
            drawn = np.searchsorted(cumulated, rng.random(_DRAWN_AT_ONCE))
            pool.extend(np.minimum(drawn, len(keys) - 1).tolist())
        return keys[pool.pop()]

    return choose


def _numbered(count: str, spec: str) -> list[bytes]:
    if not re.fullmatch("[0-9]{1,9}", count) or not 1 <= int(count) <= KEYS_MAX:
        raise KeySpecError(f"'{spec}': the number of keys must be 1 to {KEYS_MAX}")
    return [b"k-%d" % n for n in range(int(count))]


def _exponent(text: str, spec: str) -> float:
    if not text:
        return ZIPF_EXPONENT
    try:
        exponent = float(text)
    except ValueError as error:
        raise KeySpecError(f"'{spec}': the exponent must be a number") from error
    if not 0.0 <= exponent <= 10.0:
        raise KeySpecError(f"'{spec}': the exponent must be 0 to 10")
    return exponent
