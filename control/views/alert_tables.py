"""Tables of alerts, silences and rules, for all faces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from control.alerts.alert import Alert, AlertStatus
from control.alerts.rules import SEVERITIES, AlertRule
from control.alerts.silences import Quiet
from control.views import format as text
from control.views.tables import cells, units
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.rows import Cell, Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldAlert:
    """An alert, with who was told of it and whether it is silenced now."""

    alert: Alert
    is_silenced: bool = False
    undelivered: str = ""
    """Receivers that have not taken it yet."""


_TONES: Final = {"critical": Tone.CRITICAL, "warning": Tone.WARNING, "notice": Tone.MUTED}
_STATUS_TONES: Final = {
    AlertStatus.FIRING: Tone.CRITICAL,
    AlertStatus.PENDING: Tone.WARNING,
    AlertStatus.RESOLVED: Tone.FINE,
}


def _time_cell(at_ms: int | None) -> Cell:
    return cells.NOTHING if at_ms is None else Cell(at_ms, text.date_time_text(at_ms))


def _status_cell(told: ToldAlert) -> Cell:
    status = told.alert.status
    if told.is_silenced and told.alert.is_open:
        return Cell("silenced", f"silenced ({status})", Tone.MUTED)
    return Cell(str(status), str(status), _STATUS_TONES[status])


def _told_cell(told: ToldAlert) -> Cell:
    taken = sorted(told.alert.deliveries)
    if told.undelivered:
        return Cell(told.undelivered, f"not yet: {told.undelivered}", Tone.WARNING)
    return Cell(", ".join(taken) or None, ", ".join(taken) or text.NONE)


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
        name_column("told", "told", "Receivers that have taken it", rank=2, cell=_told_cell),
        name_column("words", "figures", "When it fired, or changed last", rank=2,
                    cell=worded(lambda it: it.alert.match.words)),
        name_column("cluster", "cluster", cell=worded(lambda it: it.alert.cluster)),
        column("id", "id", cell=worded(lambda it: it.alert.id)),
    ),
)  # fmt: skip

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
    alert: Alert, rules: Mapping[str, AlertRule], quiet: Iterable[Quiet], now_ms: int
) -> ToldAlert:
    """An alert as the table shows it."""
    rule = rules.get(alert.rule)
    wanted = () if rule is None or alert.fired_ms is None else rule.receivers
    lacking = [it for it in wanted if it not in alert.deliveries]
    is_silenced = any(it.covers(alert, now_ms) for it in quiet)
    return ToldAlert(
        alert=alert,
        is_silenced=is_silenced,
        undelivered="" if is_silenced else ", ".join(lacking),
    )


def alert_order(alert: Alert) -> tuple[int, int, int]:
    """Order of the list: firing ones first, the worst first, then the oldest."""
    statuses = (AlertStatus.FIRING, AlertStatus.PENDING, AlertStatus.RESOLVED)
    severity = SEVERITIES.index(alert.severity) if alert.severity in SEVERITIES else 0
    return statuses.index(alert.status), severity, alert.since_ms
