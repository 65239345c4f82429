"""Trials of alerts: what rules match now, when they would have rung, a message to a receiver."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from control.alert_delivery.backtest import Backtest, RuleOutcome, backtest, step_for
from control.alert_delivery.evaluate import reading_of
from control.alert_delivery.receivers.receiver import DeliveryError, Receiver
from control.alerts.alert import Alert, AlertStatus
from control.alerts.machine import Tell, Telling
from control.alerts.messages import messages_of
from control.alerts.readings import Match
from control.alerts.rules import AlertRule
from control.views.alert_tables import EPISODES
from control.views.format import clock_text, date_time_text, duration_text, plural_text
from control.views.tables.export import cells_of
from partiscope.alert_receivers import receivers_of
from partiscope.alert_settings import AlertsSettings
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.listing import snapshot_of
from partiscope.cli.shared.options import note, now_ms, write_json, write_lines
from partiscope.cli.shared.tables import write_progress, write_rows
from partiscope.identity import Target
from spark_metrics.window.aggregates import AggregatesReader, StoreUnreadableError

ROWS_MAX: Final = 5
"""Rows of one rule that `check` tells; the count is of all."""


def matches_now(target: Target, settings: AlertsSettings) -> list[dict[str, Any]]:
    """Matching rows of each rule now; receivers are made too, so that their files are read."""
    receivers_of(settings)
    snapshot, now = snapshot_of(target, now_ms(), with_operations=True), now_ms()
    rules = settings.to_rules()
    reading = reading_of(snapshot, rules, cluster=target.watched.name, at_ms=now)
    found = []
    for rule in rules:
        told = reading.rules.get(rule.name)
        rows = [] if told is None else list(told.matches.values())
        found.append(
            {
                "rule": rule.name,
                "when": rule.when,
                "known": told is not None and told.is_known,
                "matching": len(rows) + (0 if told is None else told.left_out),
                "rows": [{"subject": it.subject, "words": it.words} for it in rows[:ROWS_MAX]],
            }
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The stretch of history that is tried."""

    since_ms: int
    until_ms: int
    step_ms: int | None


def show_backtest(
    target: Target, rules: Sequence[AlertRule], stretch: Stretch, *, as_json: bool
) -> None:
    """Try the rules, and tell when each would have rung.

    Raises:
        CommandError: status 2 where nothing is kept of that time, 4 where there is no store.
    """
    try:
        reader = AggregatesReader(target.store)
        kept_ms = reader.kept_since_ms
        cluster = target.watched.cluster_id or snapshot_of(target, now_ms()).cluster.cluster
    except StoreUnreadableError as error:
        raise CommandError(str(error), Exit.UNREACHABLE) from error
    if kept_ms is None or stretch.until_ms <= max(stretch.since_ms, kept_ms):
        begins = "no history is kept yet" if kept_ms is None else date_time_text(kept_ms)
        raise CommandError(
            f"nothing is kept of that time (history begins: {begins}); choose a later --until, "
            "and a --since before it",
            Exit.WRONG_USE,
        )
    if stretch.since_ms < kept_ms:
        note(f"history begins at {date_time_text(kept_ms)}: rules are tried from there")
    since_ms = max(stretch.since_ms, kept_ms)
    step_ms = stretch.step_ms or step_for(since_ms, stretch.until_ms)
    found = backtest(
        reader,
        rules,
        cluster=cluster,
        name=target.watched.name,
        since_ms=since_ms,
        until_ms=stretch.until_ms,
        step_ms=step_ms,
        progress=lambda at_ms: write_progress(f"at {clock_text(at_ms, now_ms=now_ms())}"),
    )
    write_progress("")
    if as_json:
        write_json(_document(found))
    else:
        _write(found)


def _write(found: Backtest) -> None:
    looked = f"looked {found.steps:,} times, each {duration_text(found.step_ms)}"
    write_lines(
        f"from {date_time_text(found.since_ms)} to {date_time_text(found.until_ms)}, {looked}"
    )
    for outcome in found.outcomes:
        rung = plural_text(len(outcome.episodes) + outcome.left_out, "time")
        write_lines(f"{outcome.rule.name}: {outcome.rule.when}  rings {rung}")
        write_lines(*(f"    {it}" for it in shortcomings(outcome, found)))
    rows = [EPISODES.row(it) for outcome in found.outcomes for it in outcome.episodes]
    if rows:
        write_lines("")
        write_rows(EPISODES.columns, rows)


def shortcomings(outcome: RuleOutcome, found: Backtest) -> list[str]:
    """Limits of the trial, one by one."""
    told = []
    if outcome.not_kept:
        told.append(f"history does not hold {', '.join(outcome.not_kept)}: it rings only live")
    if outcome.unknown_steps:
        told.append(f"nothing is known of {outcome.unknown_steps:,} of {found.steps:,} moments")
    for_ms = outcome.rule.condition.for_ms
    if 0 < for_ms < found.step_ms:
        told.append("its time is shorter than a step: it may ring less often live; use --step")
    if outcome.left_out:
        told.append(f"{outcome.left_out:,} of them are counted, and not listed")
    return told


def _document(found: Backtest) -> dict[str, Any]:
    return {
        "since_ms": found.since_ms,
        "until_ms": found.until_ms,
        "step_ms": found.step_ms,
        "steps": found.steps,
        "rules": [
            {
                "rule": it.rule.name,
                "when": it.rule.when,
                "rings": len(it.episodes) + it.left_out,
                "not_kept": list(it.not_kept),
                "unknown_steps": it.unknown_steps,
                "episodes": [cells_of(EPISODES.row(each)) for each in it.episodes],
            }
            for it in found.outcomes
        ],
    }


def send_test(settings: AlertsSettings, name: str) -> str:
    """Send an alert and its end to one receiver; answers where they went.

    Raises:
        CommandError: there is no such receiver, or it does not take them.
    """
    receivers = receivers_of(settings)
    receiver = receivers.get(name)
    if receiver is None:
        known = ", ".join(sorted(receivers)) or "none: add one as [alerts.receivers.NAME]"
        raise CommandError(f"there is no receiver {name!r}; there are {known}", Exit.WRONG_USE)
    try:
        _send_both(name, receiver)
    except DeliveryError as error:
        raise CommandError(
            f"{name} has not taken the test alert: {error}. Correct [alerts.receivers.{name}], "
            "or see that it runs.",
            Exit.UNREACHABLE,
        ) from error
    return receiver.place


def _send_both(name: str, receiver: Receiver) -> None:
    at_ms = now_ms()
    fires = Alert(
        rule="test",
        cluster="",
        match=Match(subject="test", words="This is a test by `partiscope alerts test`."),
        severity="notice",
        status=AlertStatus.FIRING,
        since_ms=at_ms,
        fired_ms=at_ms,
    )
    ends = replace(fires, status=AlertStatus.RESOLVED, resolved_ms=now_ms())
    for kind, alert in ((Tell.FIRES, fires), (Tell.RESOLVES, ends)):
        for message in messages_of([Telling(receiver=name, kind=kind, alert=alert)], at_ms=at_ms):
            receiver.send(message)
