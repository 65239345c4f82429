"""Findings about alerts: those that fire, and why some are not delivered.

The process that delivers alerts writes what they rest on to the bus. They are gone as soon as it
cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from control.alerts.alert import AlertStatus
from control.model.finding import Finding, Operation
from control.model.status import Severity
from control.views.alert_tables import AlertsTold

if TYPE_CHECKING:  # a Kafka client comes with it, and screens start without one
    from control.operations.bus.alert_records import AlertRecords, AlertsTopic

FIRING_KIND: Final = "alerts-firing"
"""No rule looks at it: an alert about it would never end."""
LATE_MS: Final = 60_000
"""The process that delivers alerts says each ten seconds that it runs."""
NAMES_MAX: Final = 5


def alert_findings(records: AlertRecords, *, cluster: str, now_ms: int) -> Iterator[Finding]:
    """Alerts of this cluster that fire, and faults of their delivery."""
    firing = [
        it
        for it in records.alerts.values()
        if it.status is AlertStatus.FIRING and it.cluster == cluster
    ]
    if firing:
        named = [f"{it.rule} ({it.subject})" for it in firing[:NAMES_MAX]]
        more = f"; and {len(firing) - NAMES_MAX:,} more" if len(firing) > NAMES_MAX else ""
        rules = {it.rule for it in firing}
        told = sorted({name for it in firing for name in it.deliveries})
        yield Finding(
            kind=FIRING_KIND,
            severity=Severity.NOTICE,
            subject="alerts",
            label="alerts",
            title="{count:plural:alert} firing",
            reason="{names}. {told}",
            next_step="Mend what they tell, or silence them; `partiscope alerts` lists them",
            operation=Operation.SILENCE,
            given=(("rule", rules.pop()),) if len(rules) == 1 else (),
            is_only_one=True,
            since_ms=min(it.fired_ms or it.since_ms for it in firing),
            facts={
                "count": len(firing),
                "names": "; ".join(named) + more,
                "told": f"Told to {', '.join(told)}." if told else "Nobody was told.",
            },
        )
    yield from _delivery_findings(records, now_ms=now_ms)


def _delivery_findings(records: AlertRecords, *, now_ms: int) -> Iterator[Finding]:
    report = records.delivery
    if report is None or not report.rules:
        return
    if now_ms - report.at_ms > LATE_MS:
        yield Finding(
            kind="alerts-not-delivered",
            severity=Severity.WARNING,
            subject="alerts",
            label="alerts",
            title="not delivered for {age:duration}",
            reason="The process that delivers them says nothing: nobody is told of a fault.",
            next_step="`partiscope alerts run` delivers them, as `up` does; without rules it ends "
            "them",
            operation=Operation.OUTSIDE,
            since_ms=report.at_ms,
            facts={"age": now_ms - report.at_ms},
        )
        return
    for name, why in report.failures.items():
        yield Finding(
            kind="receiver-failing",
            severity=Severity.WARNING,
            subject="alerts",
            label=f"receiver {name}",
            title="takes no alerts",
            # Words of others may hold braces, which templates would take for fields.
            reason="{why}. It is tried again, at most 5 minutes apart; nothing is lost.",
            next_step=f"`partiscope alerts test {name}` once it is mended",
            operation=Operation.OUTSIDE,
            since_ms=report.failing_since_ms.get(name),
            facts={"why": why},
        )


def alerts_told(records: AlertRecords, *, cluster: str) -> AlertsTold:
    """Alerts of this cluster, and silences of all: one that names no alert of it may be planned."""
    report = records.delivery
    return AlertsTold(
        alerts=tuple(it for it in records.alerts.values() if it.cluster == cluster),
        silences=tuple(records.silences.values()),
        windows=() if report is None else tuple(report.windows),
        rules={} if report is None else report.open_rules,
        is_delivered=report is not None and report.rules > 0,
    )


class AlertWatch:
    """Reads the alerts topic again and again, each time the news alone."""

    def __init__(self, topic: AlertsTopic, cluster: str) -> None:
        self._topic = topic
        self._cluster = cluster
        self._records: AlertRecords | None = None

    async def read(self, *, now_ms: int) -> tuple[tuple[Finding, ...], AlertsTold]:
        """Findings about alerts, and the alerts.

        :raises KafkaPortError: the bus does not answer.
        """
        self._records = await self._topic.read(self._records)
        found = tuple(alert_findings(self._records, cluster=self._cluster, now_ms=now_ms))
        return found, alerts_told(self._records, cluster=self._cluster)
