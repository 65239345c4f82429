"""An alert: one row that matched one rule, from its first match until its end is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from control.alerts.readings import Match


class AlertStatus(StrEnum):
    """Where an alert stands."""

    PENDING = "pending"
    """It matches, and not yet for long enough."""
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Tellings of an alert that one receiver has taken."""

    fired_ms: int
    last_ms: int
    """When it was told last that the alert fires."""
    repeats: int = 0
    is_resolved: bool = False
    """It has taken that the alert has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One episode of a rule and a subject."""

    rule: str
    cluster: str
    match: Match
    severity: str
    status: AlertStatus = AlertStatus.PENDING
    since_ms: int
    """When the row matched first, as far as anybody looked."""
    held_ms: int = 0
    """So long it was seen to match, while it is pending."""
    fired_ms: int | None = None
    resolved_ms: int | None = None
    """When the row matched no more."""
    why_resolved: str = ""
    """Where that was not its figures: the rule is gone, the cluster is not watched."""
    deliveries: Mapping[str, Delivery] = field(default_factory=dict)
    """By the receiver's name."""

    @property
    def subject(self) -> str:
        return self.match.subject

    @property
    def id(self) -> str:
        """The same for each episode of a rule and a subject: receivers open one case for it."""
        return alert_id(self.rule, self.cluster, self.subject)

    @property
    def episode(self) -> str:
        """The id with the begin: no two episodes have one."""
        return f"{self.id}-{self.since_ms:x}"

    @property
    def is_open(self) -> bool:
        return self.status is not AlertStatus.RESOLVED


def alert_id(rule: str, cluster: str, subject: str) -> str:
    """Sixteen letters that a rule, a cluster and a subject always have. Lengths go first, so that
    no letter can move from one name to the next."""
    named = "".join(f"{len(it)}:{it}" for it in (rule, cluster, subject))
    return sha256(named.encode(errors="surrogateescape")).hexdigest()[:16]
