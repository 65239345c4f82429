"""Readings: rows that match each rule at one moment, and rows that nobody can judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A row that matches a rule."""

    subject: str
    """The row's key: ``billing``, ``orders-7``, ``broker-fenced broker 103``."""
    words: str = ""
    """The figures that matter, in words."""
    path: str = ""
    """View path of the row."""
    next_step: str = ""
    """What an operator can do, where a finding says so."""
    step: str = ""
    """View path where the next step is taken, such as a plan; empty: ``path``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReading:
    """The rows of one rule. A row that is neither here nor unknown does not match."""

    matches: Mapping[str, Match] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    """Rows of which a figure is unknown: they neither fire nor resolve."""
    is_known: bool = True
    """False: nothing of the table is known now; no row fires or resolves."""
    left_out: int = 0
    """Rows that match as well, beyond what one rule tells one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The readings of all rules of one cluster at one moment."""

    cluster: str
    at_ms: int
    rules: Mapping[str, RuleReading]
    """By the rule's name."""
