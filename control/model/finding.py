"""Findings: something is wrong, where, since when, and the next step.

A finding's words are templates, its figures facts: text of numbers is made in one place only
(``control.views.format.phrase``), where ``{lag:count}`` or ``{age:duration}`` is filled in.
Findings of one kind are gathered: three hundred partitions that lack a replica are one finding
that leads to their list.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from control.model.status import Severity

Fact = float | int | str | None


class Operation(StrEnum):
    """Operations that a finding offers to open, by their names in the catalogue."""

    REASSIGN = "reassign"
    ELECT = "elect"
    CLEAR_THROTTLES = "clear_throttles"
    RESET_OFFSETS = "reset_offsets"
    SILENCE = "silence"
    OPEN = "open"
    OUTSIDE = "outside"
    """Something that is not done here, as to start a consumer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that an operator should know."""

    kind: str
    severity: Severity
    subject: str
    """View path of what it is about, e.g. ``topics/orders/partitions/7``."""
    label: str
    """The subject in a word or two, e.g. ``orders-7`` or ``broker 103``."""
    title: str
    reason: str
    next_step: str
    operation: Operation = Operation.OPEN
    step: str = ""
    """View path where the next step is taken; empty: the subject's."""
    given: tuple[tuple[str, str], ...] = ()
    """Values that the operation's form begins with."""
    since_ms: int | None = None
    is_date_final: bool = True
    """False: history could not date it yet (``control.views.snapshots.finding_dates``)."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    is_only_one: bool = False
    """There is one of its kind at most, whatever its label and its figures are just now."""
    consequences: tuple["Finding", ...] = ()
    """What it explains: told under it, and no findings of their own."""
    parts: tuple["Finding", ...] = ()
    """Findings of its kind, one for each broker, that are told as one."""

    @property
    def id(self) -> str:
        """The same for as long as the finding lasts, however its figures and words change."""
        return self.kind if self.is_only_one else f"{self.kind} {self.label}"


def each_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings as they were before those of several brokers were told as one."""
    return tuple(part for item in findings for part in item.parts or (item,))


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first; among equals the oldest, those without a date last, then by label."""
    return tuple(
        sorted(
            findings,
            key=lambda item: (-item.severity, item.since_ms or math.inf, item.kind, item.label),
        )
    )
