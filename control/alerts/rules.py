"""Alert rules: ``groups: time_lag>10m for 5m`` is a table, a filter of that table, and how long.

The filter is that of the screens (``control.views.tables.filters``), so a rule is tried by typing
it there. ``findings`` is a table like the others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from control.model.units import parse_duration

TABLES: Final = ("findings", "groups", "lags", "topics", "partitions", "brokers")
"""Tables that a rule can look at: the findings, and the lists of the screens."""
SEVERITIES: Final = ("critical", "warning", "notice")
RULES_MAX: Final = 1_000
RECEIVERS_MAX: Final = 64
_WHEN: Final = re.compile(r"\s*(?P<table>\w+)\s*:\s*(?P<filter>.*?)\s*")
_FOR: Final = re.compile(r"(?P<filter>.*)(?:^|\s)for\s+(?P<time>\S+)", re.DOTALL)


class RuleError(ValueError):
    """A rule that cannot be followed; its text says why and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on the rows of a table."""

    table: str
    filter: str
    for_ms: float = 0.0
    """A row must match for so long before it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """One rule, and who hears of it."""

    name: str
    when: str
    """The condition, as the operator wrote it."""
    condition: Condition
    severity: str = "warning"
    receivers: Sequence[str] = ()
    clusters: Sequence[str] = ()
    """Names of clusters; none: all that are watched."""
    repeat_ms: float | None = None
    """It is told again after each such time while it fires; None: never."""
    resolve_after_ms: float = 60_000.0
    """A row that matches again within this time has not resolved."""

    def is_for(self, cluster: str) -> bool:
        return not self.clusters or cluster in self.clusters


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReport:
    """The part of a rule that whoever looks at its alerts wants to know."""

    receivers: Sequence[str] = ()
    repeat_ms: float | None = None


def parse_condition(text: str) -> Condition:
    """Read ``TABLE: FILTER for TIME``; without a time a row is told at once.

    Raises:
        RuleError: it is no condition, or there is no such table.
    """
    found = _WHEN.fullmatch(text)
    if found is None:
        raise RuleError(
            f"{text!r} is no condition; write TABLE: FILTER for TIME, such as "
            "'groups: time_lag>10m for 5m'"
        )
    table, wanted, for_ms = found["table"].lower(), found["filter"], 0.0
    if table not in TABLES:
        raise RuleError(f"there is no table {table!r}; there are {', '.join(TABLES)}")
    timed = _FOR.fullmatch(wanted)
    if timed is not None and timed["filter"].count('"') % 2 == 0:  # else it stands in a name
        given = parse_duration(timed["time"])
        if given is None and timed["time"][:1].isdigit():
            raise RuleError(f"{timed['time']!r} is not a time such as 90s, 10m or 1h")
        if given is not None:
            wanted, for_ms = timed["filter"].strip(), given
    if not wanted:
        raise RuleError(
            f"{text!r} has no filter: it would match every row; write {table}: and a filter"
        )
    return Condition(table=table, filter=wanted, for_ms=for_ms)
