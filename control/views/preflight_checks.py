"""Checks of a pre-flight as all faces show them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from control.move.check import Check
from control.views.tables.rows import SHAPES, Tone

TONES: Final[Mapping[str, Tone]] = {
    "ok": Tone.FINE,
    "warn": Tone.WARNING,
    "fail": Tone.CRITICAL,
}
"""By verdict."""


def check_words(check: Check) -> str:
    """Its verdict's shape, its name and reason, on one line."""
    return f"{SHAPES[TONES[check.verdict]]} {check.name}: {check.reason}"
