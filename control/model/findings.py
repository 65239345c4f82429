"""What is wrong, where, since when, and what to do about it.

A finding's words are templates, its figures facts: text of numbers is made in one place only
(``control.views.format.phrase``), where ``{lag:count}`` or ``{age:duration}`` is filled in.
Findings of one kind are gathered: three hundred partitions that lack a replica are one finding
that leads to their list.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from control.model.status import Severity

Fact = float | int | str | None


class Operation(StrEnum):
    """What a finding offers to open (the names of the operations' registry)."""

    REASSIGN = "reassign"
    ELECT = "elect"
    OPEN = "open"


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
    since_ms: int | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, str]:
        """Two findings with one identity are the same finding at two moments."""
        return self.kind, self.label


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first; among equals the oldest, then by label."""
    return tuple(
        sorted(
            findings,
            key=lambda item: (-item.severity, item.since_ms or 0, item.kind, item.label),
        )
    )


def carry_since(
    findings: Sequence[Finding], earlier: Iterable[Finding], *, now_ms: int
) -> tuple[Finding, ...]:
    """Date what has no date of its own: from when it was first seen, or now."""
    seen = {item.identity: item.since_ms for item in earlier}
    return tuple(
        item
        if item.since_ms is not None
        else replace(item, since_ms=seen.get(item.identity) or now_ms)
        for item in findings
    )
