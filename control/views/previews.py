"""Checks of a pre-flight as screens and terminals show them. Pure.

They come from ``control.operations``, this room's sibling: the Protocol says what of them is shown.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from control.views.rows import SHAPES, Tone

TONES: Final[Mapping[str, Tone]] = {
    "ok": Tone.FINE,
    "warn": Tone.WARNING,
    "fail": Tone.CRITICAL,
}
"""By verdict."""


class ShownCheck(Protocol):
    """``control.operations.verdict.Check``."""

    @property
    def name(self) -> str:
        """What was looked at."""

    @property
    def verdict(self) -> str:
        """ok, warn or fail."""

    @property
    def reason(self) -> str:
        """Why."""


def check_words(check: ShownCheck) -> str:
    """Its verdict's shape, its name and reason, on one line."""
    return f"{SHAPES[TONES[check.verdict]]} {check.name}: {check.reason}"
