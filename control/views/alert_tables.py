"""Tables of alerts, silences and rules, for all faces."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from control.alerts.alert import Alert, AlertStatus
from control.alerts.rules import SEVERITIES, AlertRule, RuleReport
from control.alerts.silences import Silence
from control.views import format as text
from control.views.tables import cells, units
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.rows import Cell, Row, Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldAlert:
    """An alert, with who was told of it and what silences it now."""

    alert: Alert
    now_ms: int
    silence: Silence | None = None
    """The silence, of those that hold it back now, that lasts longest."""
    undelivered: Sequence[str] = ()
    """Receivers that have not taken it yet."""
    repeat_ms: int | None = None
    """When it is told again next; None: it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsTold:
    """Alerts, silences and rules, as the bus told them last."""

    alerts: Sequence[Alert] = ()
    silences: Sequence[Silence] = ()
    """Those that were set by somebody."""
    windows: Sequence[Silence] = ()
    """Maintenance windows of the settings that last now."""
    rules: Mapping[str, RuleReport] = field(default_factory=dict)
    """Those that have alerts."""
    is_delivered: bool = False
    """A process has delivered alerts from this bus."""

    def alert_rows(self, now_ms: int) -> tuple[Row, ...]:
        """Rows of ``ALERTS``: firing ones first, the worst first, then the oldest."""
        quiet = (*self.silences, *self.windows)
        told = (told_alert(it, self.rules, quiet, now_ms) for it in self.alerts)
        return ALERTS.rows(sorted(told, key=lambda it: alert_order(it.alert)))

    def silence_rows(self, now_ms: int) -> tuple[Row, ...]:
        """Rows of ``SILENCES`` that last or are planned: those that end first, first."""
        known = (it for it in (*self.silences, *self.windows) if not it.is_over(now_ms))
        return SILENCES.rows(sorted(known, key=lambda it: it.until_ms))

    def given_of(self, row: Row) -> dict[str, str]:
        """Values of forms about the alert, or the silence, of a row; none of a window, which ends
        in the settings."""
        for alert in self.alerts:
            if alert.episode == row.key:
                return {"rule": alert.rule, "subject": alert.subject, "cluster": alert.cluster}
        return {"silence": row.key} if any(it.id == row.key for it in self.silences) else {}


NO_ALERTS: Final = AlertsTold()
_TONES: Final = {"critical": Tone.CRITICAL, "warning": Tone.WARNING, "notice": Tone.MUTED}
_SILENCED: Final = "silenced"
_STATUS_TONES: Final[Mapping[str, Tone]] = {
    AlertStatus.FIRING: Tone.CRITICAL,
    AlertStatus.PENDING: Tone.WARNING,
    _SILENCED: Tone.MUTED,
    AlertStatus.RESOLVED: Tone.FINE,
}
"""Worst first."""


def _time_cell(at_ms: int | None) -> Cell:
    return cells.NOTHING if at_ms is None else Cell(at_ms, text.date_time_text(at_ms))


def _status_cell(told: ToldAlert) -> Cell:
    status = told.alert.status
    is_silenced = bool(told.silence) and told.alert.is_open
    word = _SILENCED if is_silenced else str(status)
    shown = f"{word} ({status})" if is_silenced else word
    return Cell(list(_STATUS_TONES).index(word), shown, _STATUS_TONES[word])


def _told_cell(told: ToldAlert) -> Cell:
    """``slack 14:01:02; not yet: mail``."""
    taken = sorted(told.alert.deliveries.items())
    words = [f"{name} {text.clock_text(it.last_ms, now_ms=told.now_ms)}" for name, it in taken]
    if told.undelivered:
        words.append(f"not yet: {', '.join(told.undelivered)}")
    names = ", ".join(name for name, _ in taken)
    tone = Tone.WARNING if told.undelivered else Tone.PLAIN
    return Cell(names or None, "; ".join(words) or text.NONE, tone)


def _repeat_cell(told: ToldAlert) -> Cell:
    if told.repeat_ms is None:
        return cells.NOTHING
    return Cell(told.repeat_ms, text.clock_text(told.repeat_ms, now_ms=told.now_ms))


def _silence_cell(told: ToldAlert) -> Cell:
    silence = told.silence
    if silence is None:
        return cells.NOTHING
    until = text.clock_text(silence.until_ms, now_ms=told.now_ms)
    return Cell(silence.until_ms, until, Tone.MUTED)


def _duration_cell(duration_ms: float | None, missing: str) -> Cell:
    return Cell(duration_ms, missing if duration_ms is None else text.duration_text(duration_ms))


ALERTS: Final = Table(
    name="alerts",
    about="A row per alert that is open, or whose end a receiver has yet to take",
    key=lambda told: told.alert.episode,
    path=lambda told: told.alert.match.path,
    columns=(
        column("status", "status", units.TEXT,
               "Pending, firing, resolved, or silenced", rank=1, cell=_status_cell),
        name_column("rule", "rule", rank=1, cell=worded(lambda it: it.alert.rule)),
        name_column("subject", "subject", rank=1, cell=worded(lambda it: it.alert.subject)),
        column("severity", "severity", rank=2,
               cell=lambda it: Cell(it.alert.severity, it.alert.severity,
                                    _TONES.get(it.alert.severity, Tone.PLAIN))),
        column("since", "since", units.TIME, "When the row matched first", rank=2,
               cell=lambda it: _time_cell(it.alert.since_ms)),
        column("fired", "fired", units.TIME, "When it had matched for long enough",
               cell=lambda it: _time_cell(it.alert.fired_ms)),
        name_column("told", "told", "Receivers that have taken it, and when last", rank=2,
                    cell=_told_cell),
        column("repeats", "next repeat", units.TIME, "When it is told again", cell=_repeat_cell),
        column("silenced", "silenced until", units.TIME, rank=2, cell=_silence_cell),
        name_column("silenced_by", "silenced by",
                    cell=worded(lambda it: it.silence.who if it.silence else "")),
        name_column("words", "figures", "When it fired, or changed last", rank=2,
                    cell=worded(lambda it: it.alert.match.words)),
        name_column("cluster", "cluster", cell=worded(lambda it: it.alert.cluster)),
        column("id", "id", cell=worded(lambda it: it.alert.id)),
    ),
)  # fmt: skip

OF_A_CLUSTER: Final = ALERTS.without("fired", "cluster", "id")
"""Columns of the alerts of one cluster."""

SILENCES: Final = Table(
    name="silences",
    about="A row per silence that lasts or is planned",
    key=lambda silence: silence.id,
    columns=(
        column("id", "id", rank=1, cell=worded(lambda it: it.id)),
        name_column("matches", "silences", "Alerts that are not told", rank=1,
                    cell=worded(lambda it: it.matcher.words)),
        column("from", "from", units.TIME, rank=2, cell=lambda it: _time_cell(it.from_ms)),
        column("until", "until", units.TIME, rank=1, cell=lambda it: _time_cell(it.until_ms)),
        name_column("who", "who", rank=2, cell=worded(lambda it: it.who)),
        name_column("why", "why", rank=2, cell=worded(lambda it: it.why)),
    ),
)  # fmt: skip

ALERT_RULES: Final = Table(
    name="alert rules",
    about="A row per rule of the settings",
    key=lambda rule: rule.name,
    columns=(
        name_column("rule", "rule", rank=1, cell=worded(lambda it: it.name)),
        name_column("when", "when", rank=1, cell=worded(lambda it: it.when)),
        column("severity", "severity", rank=2, cell=worded(lambda it: it.severity)),
        name_column("receivers", "receivers", rank=2,
                    cell=worded(lambda it: ", ".join(it.receivers))),
        column("repeat", "repeats after", units.DURATION,
               cell=lambda it: _duration_cell(it.repeat_ms, "never")),
        column("resolve_after", "resolves after", units.DURATION,
               cell=lambda it: _duration_cell(it.resolve_after_ms, text.NONE)),
        name_column("clusters", "clusters",
                    cell=worded(lambda it: ", ".join(it.clusters) or "all")),
    ),
)  # fmt: skip

EPISODES: Final = Table(
    name="alert episodes",
    about="A row per time that a rule would have rung over stored history",
    key=lambda alert: alert.episode,
    path=lambda alert: alert.match.path,
    columns=(
        name_column("rule", "rule", rank=1, cell=worded(lambda it: it.rule)),
        name_column("subject", "subject", rank=1, cell=worded(lambda it: it.subject)),
        column("fired", "fired", units.TIME, rank=1, cell=lambda it: _time_cell(it.fired_ms)),
        column("resolved", "resolved", units.TIME, rank=1,
               cell=lambda it: _time_cell(it.resolved_ms)),
        column("lasted", "lasted", units.DURATION, rank=2, cell=lambda it: _duration_cell(
            None if it.resolved_ms is None else it.resolved_ms - it.fired_ms, "open")),
        name_column("words", "figures", "As they were last seen", rank=2,
                    cell=worded(lambda it: it.match.words)),
    ),
)  # fmt: skip


def told_alert(
    alert: Alert,
    rules: Mapping[str, AlertRule] | Mapping[str, RuleReport],
    quiet: Iterable[Silence],
    now_ms: int,
) -> ToldAlert:
    """An alert as the table shows it."""
    rule = rules.get(alert.rule)
    wanted = () if rule is None or alert.fired_ms is None else rule.receivers
    covering = (it for it in quiet if it.covers(alert, now_ms))
    silence = max(covering, key=lambda it: it.until_ms, default=None)
    told_ms = [it.last_ms for it in alert.deliveries.values()]
    repeats = rule is not None and rule.repeat_ms is not None and alert.is_open and not silence
    return ToldAlert(
        alert=alert,
        now_ms=now_ms,
        silence=silence,
        undelivered=() if silence else sorted(it for it in wanted if it not in alert.deliveries),
        repeat_ms=round(min(told_ms) + rule.repeat_ms)
        if repeats and told_ms and rule is not None and rule.repeat_ms is not None
        else None,
    )


def alert_order(alert: Alert) -> tuple[int, int, int]:
    """Order of the list: firing ones first, the worst first, then the oldest."""
    statuses = (AlertStatus.FIRING, AlertStatus.PENDING, AlertStatus.RESOLVED)
    severity = SEVERITIES.index(alert.severity) if alert.severity in SEVERITIES else 0
    return statuses.index(alert.status), severity, alert.since_ms
