"""The state machine of alerts: readings and deliveries go in, changed alerts and due tellings out.

| status | reading | then |
|---|---|---|
| none | matches | PENDING; FIRING at once where the rule has no ``for`` |
| PENDING | matches | FIRING once it was seen to match for long enough |
| PENDING | does not match | forgotten |
| FIRING | does not match, for ``resolve_after`` | RESOLVED |
| FIRING | matches again before | FIRING |
| any | unknown | as it was: unknown time counts neither for nor against |
| RESOLVED | – | forgotten once every receiver that has to know has taken it |

A receiver is told of each alert that fires, once, and then of its end, once. A telling is due until
the receiver has taken it. A pause between two readings longer than ``gap_ms`` counts for nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from control.alerts.alert import Alert, AlertStatus, Delivery
from control.alerts.readings import Match, Reading, RuleReading
from control.alerts.rules import AlertRule
from control.alerts.silences import Quiet

GAP_MS: Final = 60_000
"""Nobody looked for longer than this: what was the case in between is not known."""
ALERTS_MAX: Final = 1_000
"""Open alerts of one rule and cluster; further rows are counted, and not told one by one."""
OWED_MAX: Final = 5_000
"""Ended alerts that receivers have yet to take; the oldest are given up beyond."""
PENDING_SAVED_MS: Final = 30_000
"""So often the time that a pending alert has held is saved."""


class Tell(StrEnum):
    """Kinds of tellings."""

    FIRES = "fires"
    REPEATS = "repeats"
    RESOLVES = "resolves"


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """One alert that one receiver is to be told of."""

    receiver: str
    kind: Tell
    alert: Alert

    @property
    def number(self) -> int:
        """Which repeat it is; 0: the first telling, or the end."""
        taken = self.alert.deliveries.get(self.receiver)
        return taken.repeats + 1 if taken and self.kind is Tell.REPEATS else 0

    @property
    def id(self) -> str:
        """A receiver that gets a telling twice, as after a crash, gets the same id twice."""
        return f"{self.alert.episode}-{self.kind}-{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverRules:
    """The needs of a receiver that the machine respects."""

    refresh_ms: int | None = None
    """It forgets what is not told again after such a time, as an Alertmanager does."""


class AlertMachine:
    """Alerts of all rules and clusters. ``handle``, ``end_unwatched`` and ``take`` answer the
    alerts that have changed: whoever keeps them saves those."""

    def __init__(
        self,
        rules: Sequence[AlertRule],
        receivers: Mapping[str, ReceiverRules],
        *,
        gap_ms: int = GAP_MS,
        group_wait_ms: int = 0,
    ) -> None:
        self.alerts: dict[str, Alert] = {}
        """By episode."""
        self.left_out: dict[tuple[str, str], int] = {}
        """Matching rows beyond ``ALERTS_MAX``, by rule and cluster."""
        self._rules = {it.name: it for it in rules}
        self._receivers = receivers
        self._gap_ms = gap_ms
        self._group_wait_ms = group_wait_ms
        self._read_ms: dict[str, int] = {}
        self._clear_ms: dict[str, int] = {}
        """Since when firing alerts match no more, by episode."""
        self._matched: set[str] = set()
        """Episodes that matched at the reading before."""

    def load(self, alerts: Iterable[Alert]) -> None:
        """Go on with what was saved."""
        self.alerts = {it.episode: it for it in alerts}

    def end_unwatched(self, clusters: Collection[str], at_ms: int) -> list[Alert]:
        """End alerts whose rule is gone, or whose cluster is not watched any more."""
        ended = []
        for alert in [it for it in self.alerts.values() if it.is_open]:
            rule = self._rules.get(alert.rule)
            if rule is None:
                ended += self._end(alert, at_ms, why="its rule is gone")
            elif alert.cluster not in clusters or not rule.is_for(alert.cluster):
                ended += self._end(alert, at_ms, why="its cluster is not watched by the rule")
        return ended

    def handle(self, reading: Reading) -> list[Alert]:
        """Take what one moment says of a cluster."""
        before_ms = self._read_ms.get(reading.cluster)
        self._read_ms[reading.cluster] = reading.at_ms
        step_ms = 0 if before_ms is None else reading.at_ms - before_ms
        if not 0 <= step_ms <= self._gap_ms:
            step_ms = 0
            self._forget_times(reading.cluster)
        changed, open_ones = list[Alert](), self._open(reading.cluster)
        for name, of_rule in reading.rules.items():
            known = open_ones.get(name, {})
            if of_rule.is_known:
                changed += self._handle_rule(self._rules[name], of_rule, known, reading, step_ms)
            else:
                self._matched -= {it.episode for it in known.values()}
        return changed

    def _forget_times(self, cluster: str) -> None:
        for episode, alert in self.alerts.items():
            if alert.cluster == cluster:
                self._clear_ms.pop(episode, None)
                self._matched.discard(episode)

    def _open(self, cluster: str) -> dict[str, dict[str, Alert]]:
        """Open alerts of a cluster, by rule and subject."""
        found: dict[str, dict[str, Alert]] = {}
        for alert in self.alerts.values():
            if alert.is_open and alert.cluster == cluster:
                found.setdefault(alert.rule, {})[alert.subject] = alert
        return found

    def _handle_rule(
        self,
        rule: AlertRule,
        told: RuleReading,
        known: dict[str, Alert],
        reading: Reading,
        step_ms: int,
    ) -> list[Alert]:
        changed, left_out = list[Alert](), told.left_out
        for subject, match in told.matches.items():
            alert = known.get(subject)
            if alert is None and len(known) >= ALERTS_MAX:
                left_out += 1
            elif alert is None:
                known[subject] = began = self._begin(rule, match, reading)
                changed += [began] if _is_saved(began, rule) else []
            else:
                changed += self._goes_on(alert, match, rule, reading.at_ms, step_ms)
        for subject, alert in known.items():
            if subject in told.unknown:
                self._matched.discard(alert.episode)
            elif subject not in told.matches:
                changed += self._is_over(alert, rule, reading.at_ms)
        self.left_out[rule.name, reading.cluster] = left_out
        return changed

    def _begin(self, rule: AlertRule, match: Match, reading: Reading) -> Alert:
        is_due = rule.condition.for_ms <= 0
        alert = Alert(
            rule=rule.name,
            cluster=reading.cluster,
            match=match,
            severity=rule.severity,
            status=AlertStatus.FIRING if is_due else AlertStatus.PENDING,
            since_ms=reading.at_ms,
            fired_ms=reading.at_ms if is_due else None,
        )
        while alert.episode in self.alerts:  # it fired, and ended, at this very time
            alert = replace(alert, since_ms=alert.since_ms + 1)
        self.alerts[alert.episode] = alert
        self._matched.add(alert.episode)
        return alert

    def _goes_on(
        self, alert: Alert, match: Match, rule: AlertRule, at_ms: int, step_ms: int
    ) -> list[Alert]:
        episode = alert.episode
        self._clear_ms.pop(episode, None)
        held_ms = alert.held_ms + (step_ms if episode in self._matched else 0)
        self._matched.add(episode)
        if alert.status is AlertStatus.FIRING:
            if match is not alert.match:
                self.alerts[episode] = replace(alert, match=match)
            return []
        newer = replace(alert, match=match, held_ms=held_ms)
        if held_ms >= rule.condition.for_ms:
            newer = replace(newer, status=AlertStatus.FIRING, fired_ms=at_ms)
        self.alerts[episode] = newer
        is_news = newer.status is AlertStatus.FIRING
        return [newer] if is_news or _saved_steps(newer) > _saved_steps(alert) else []

    def _is_over(self, alert: Alert, rule: AlertRule, at_ms: int) -> list[Alert]:
        episode = alert.episode
        self._matched.discard(episode)
        if alert.status is AlertStatus.PENDING:
            del self.alerts[episode]
            gone = replace(alert, status=AlertStatus.RESOLVED)
            return [gone] if _is_saved(alert, rule) else []
        since_ms = self._clear_ms.setdefault(episode, at_ms)
        return self._end(alert, since_ms) if at_ms - since_ms >= rule.resolve_after_ms else []

    def _end(self, alert: Alert, at_ms: int, *, why: str = "") -> list[Alert]:
        self._clear_ms.pop(alert.episode, None)
        ended = replace(alert, status=AlertStatus.RESOLVED, resolved_ms=at_ms, why_resolved=why)
        if alert.fired_ms is None:
            del self.alerts[alert.episode]
        else:
            self.alerts[alert.episode] = ended
        return [ended]

    def open_matches(self, cluster: str) -> dict[str, dict[str, Match]]:
        """Rows of the open alerts of each rule, by subject, as they were told last."""
        return {
            rule: {subject: alert.match for subject, alert in some.items()}
            for rule, some in self._open(cluster).items()
        }

    def due(self, quiet: Collection[Quiet], at_ms: int) -> list[Telling]:
        """Tellings that receivers are to take now, the oldest alerts first."""
        found = []
        for alert in self.alerts.values():
            if alert.fired_ms is None:
                continue
            is_quiet = any(it.covers(alert, at_ms) for it in quiet)
            for receiver in self._receivers_of(alert):
                kind = self._kind_due(alert, receiver, at_ms, is_quiet=is_quiet)
                if kind is not None:
                    found.append(Telling(receiver=receiver, kind=kind, alert=alert))
        return sorted(found, key=lambda it: (it.alert.fired_ms or 0, it.id))

    def _receivers_of(self, alert: Alert) -> list[str]:
        """Those of its rule; of an alert whose rule is gone, those that were told of it."""
        rule = self._rules.get(alert.rule)
        wanted = () if rule is None else rule.receivers
        return [it for it in dict.fromkeys((*wanted, *alert.deliveries)) if it in self._receivers]

    def _kind_due(self, alert: Alert, receiver: str, at_ms: int, *, is_quiet: bool) -> Tell | None:
        taken = alert.deliveries.get(receiver)
        if taken is None:
            waits = alert.is_open and 0 <= at_ms - (alert.fired_ms or 0) < self._group_wait_ms
            return None if is_quiet or waits else Tell.FIRES
        if not alert.is_open:
            return None if taken.is_resolved else Tell.RESOLVES
        refresh_ms = self._receivers[receiver].refresh_ms
        rule = self._rules.get(alert.rule)
        repeat_ms = refresh_ms or (None if rule is None or is_quiet else rule.repeat_ms)
        is_due = repeat_ms is not None and not 0 <= at_ms - taken.last_ms < repeat_ms
        return Tell.REPEATS if is_due else None

    def take(self, tellings: Iterable[Telling], at_ms: int) -> list[Alert]:
        """A receiver has taken these. An episode may have gone on meanwhile."""
        changed = {}
        for telling in tellings:
            alert = self.alerts.get(telling.alert.episode)
            if alert is None:
                continue
            taken = alert.deliveries.get(telling.receiver)
            if telling.kind is Tell.RESOLVES and taken is not None:
                taken = replace(taken, is_resolved=True)
            elif telling.kind is Tell.REPEATS and taken is not None:
                taken = replace(taken, last_ms=at_ms, repeats=taken.repeats + 1)
            else:
                taken = Delivery(fired_ms=at_ms, last_ms=at_ms)
            newer = replace(alert, deliveries={**alert.deliveries, telling.receiver: taken})
            self.alerts[alert.episode] = changed[alert.episode] = newer
        return list(changed.values())

    def forget_told(self, quiet: Collection[Quiet], at_ms: int) -> list[Alert]:
        """Drop ended alerts that nobody has to be told of any more: all have taken the end, or were
        never told because the alert was silenced. Answers those that were dropped."""
        ended = [it for it in self.alerts.values() if not it.is_open]
        owed = {it.alert.episode for it in self.due(quiet, at_ms)}
        done = [it for it in ended if it.episode not in owed]
        left = len(ended) - len(done)
        if left > OWED_MAX:
            waiting = [it for it in ended if it.episode in owed]
            done += sorted(waiting, key=lambda it: it.resolved_ms or 0)[: left - OWED_MAX]
        for alert in done:
            del self.alerts[alert.episode]
        return done


def _is_saved(alert: Alert, rule: AlertRule) -> bool:
    """Whether it is kept across a crash; a short pending one is seen anew."""
    return alert.status is AlertStatus.FIRING or rule.condition.for_ms > PENDING_SAVED_MS


def _saved_steps(alert: Alert) -> int:
    return alert.held_ms // PENDING_SAVED_MS
