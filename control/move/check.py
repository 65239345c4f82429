"""A check of pre-flight: a verdict that is never without its reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NAMES_MAX: Final = 3
FAULTS_MAX: Final = 20
"""So many reasons of a check that fails are named, the others counted."""


class Verdict(StrEnum):
    """Verdict of one check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check with its reason."""

    name: str
    verdict: Verdict
    reason: str


def check_of(
    name: str,
    bad: Sequence[str],
    *,
    fine: str,
    verdict: Verdict = Verdict.FAIL,
    advice: str = "",
) -> Check:
    """`verdict` with the first of what is bad and what to do about it, or OK with what is fine."""
    if not bad:
        return Check(name=name, verdict=Verdict.OK, reason=fine)
    most = FAULTS_MAX if verdict is Verdict.FAIL else NAMES_MAX
    more = f" and {len(bad) - most} more" if len(bad) > most else ""
    named = "; ".join(bad[:most]) + more
    return Check(name=name, verdict=verdict, reason=f"{named}; {advice}" if advice else named)
