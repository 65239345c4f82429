"""``partiscope alerts``: rules that ring, what rings now, silences, a test, and a look back."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final, TypeVar

import typer
from pydantic import ValidationError

from control.alerts.rules import RuleError
from control.alerts.silences import ANY, SILENCE_MS_MAX, Matcher, Silence
from control.kafka.connection.connections import settings_of
from control.model.units import parse_duration
from control.operations.bus.alert_records import AlertRecords, AlertsTopic
from control.operations.bus.client import whoami
from control.operations.bus.journal import Journal
from control.operations.bus.topics import Bus
from control.operations.permission import check_writable
from control.operations.role_check import check_role_named
from control.views.alert_tables import (
    ALERT_RULES,
    ALERTS,
    SILENCES,
    AlertsTold,
    alert_order,
    told_alert,
)
from control.views.format import duration_text, plural_text
from control.views.tables.export import cells_of
from partiscope.alert_settings import AlertsSettings, RuleSettings
from partiscope.cli.shared.arguments import moment_of, zoned
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.grammar import ListByDefault
from partiscope.cli.shared.options import (
    Bootstrap,
    Data,
    Json,
    Store,
    note,
    now_ms,
    target_with,
    write_json,
    write_lines,
)
from partiscope.cli.shared.options import (
    Bus as BusAddress,
)
from partiscope.cli.shared.tables import write_rows
from partiscope.cli.shared.watching import watchable
from partiscope.identity import Target
from partiscope.running import say
from partiscope.setting_types import TEXT_CHARACTERS_MAX
from partiscope.settings import load_settings, plain_errors

app = typer.Typer(
    cls=ListByDefault,
    help="List alerts (what `partiscope alerts` alone does) and rules, silence, test, try rules on "
    "history, deliver.",
)
NO_RULE: Final = "the settings have no alert rule"
LATE_MS: Final = 60_000
"""A process that delivers says so every ten seconds."""
_T = TypeVar("_T")


@app.command("list", epilog="Example: partiscope alerts list --json")
@watchable()
def list_alerts(
    *, bootstrap: Bootstrap = None, bus: BusAddress = None, as_json: Json = False
) -> None:
    """Alerts that are pending or firing, whom they were told to, and whether anybody delivers; exit
    5 while a critical one fires."""
    target = target_with(bootstrap=bootstrap, bus=bus)
    records, now = _ask(target, lambda topic: topic.read()), now_ms()
    rules = {it.name: it for it in load_settings().alerts.to_rules()}
    quiet = [*records.silences.values(), *_windows(now)]
    alerts = sorted(records.alerts.values(), key=alert_order)
    rows = [ALERTS.row(told_alert(it, rules, quiet, now)) for it in alerts]
    problems = delivery_problems(records, has_rules=bool(rules), now=now)
    if as_json:
        delivery = None if records.delivery is None else asdict(records.delivery)
        write_json(
            {"alerts": [cells_of(it) for it in rows], "problems": problems, "delivery": delivery}
        )
    else:
        columns = ALERTS.columns
        shown = [it.with_cells(since=zoned(it.since), fired=zoned(it.fired)) for it in rows]
        write_rows(columns, shown)
        for problem in problems:
            note(problem)
    if any(it.severity == "critical" and it.fired_ms and it.is_open for it in alerts):
        raise typer.Exit(Exit.FINDING)


@app.command("describe", epilog="Example: partiscope alerts describe 237b013d3f639f00")
def describe(
    alert: Annotated[str, typer.Argument(metavar="ID", help="Id of the alert, or its subject.")],
    *,
    bootstrap: Bootstrap = None,
    bus: BusAddress = None,
    as_json: Json = False,
) -> None:
    """Everything about an alert: figures, times, whom it was told to, and the next step."""
    target = target_with(bootstrap=bootstrap, bus=bus)
    records, now = _ask(target, lambda topic: topic.read()), now_ms()
    found = [it for it in records.alerts.values() if alert in (it.id, it.subject, it.episode)]
    if not found:
        known = ", ".join(sorted({it.subject for it in records.alerts.values()})[:5]) or "none"
        raise CommandError(f"there is no alert {alert!r}; there are {known}", Exit.FAILED)
    rules = {it.name: it for it in load_settings().alerts.to_rules()}
    quiet = [*records.silences.values(), *_windows(now)]
    told = [told_alert(it, rules, quiet, now) for it in sorted(found, key=alert_order)]
    if as_json:
        write_json({"alerts": [{**cells_of(ALERTS.row(it)), **asdict(it.alert)} for it in told]})
        return
    for each in told:
        write_lines(f"{each.alert.rule}: {each.alert.subject}")
        for column in ALERTS.columns:
            write_lines(f"    {column.title.ljust(10)}{column.cell(each).text}")
        step = each.alert.match.next_step
        write_lines(*([f"    next step {step}"] if step else []))


def delivery_problems(records: AlertRecords, *, has_rules: bool, now: int) -> list[str]:
    """Why alerts are not delivered, one by one; empty: they are."""
    report = records.delivery
    if report is None:
        how = "`partiscope alerts run` delivers them, as `up` does"
        return [f"alerts were never delivered from here: {how}"] if has_rules else []
    problems = []
    if now - report.at_ms > LATE_MS and report.rules:
        ago = duration_text(now - report.at_ms)
        problems.append(
            f"alerts are not delivered since {ago}: start `partiscope alerts run`, or `up`"
        )
    for name, why in report.failures.items():
        ago = duration_text(now - report.failing_since_ms.get(name, now))
        problems.append(f"{name} has not taken alerts for {ago}, and is tried again: {why}")
    for rule, count in report.left_out.items():
        problems.append(f"rule {rule} matches {count:,} rows more than are told one by one")
    return problems


@app.command("rules", epilog="Example: partiscope alerts rules")
def rules(*, as_json: Json = False) -> None:
    """The rules of the settings, and their receivers."""
    rows = [ALERT_RULES.row(it) for it in load_settings().alerts.to_rules()]
    if as_json:
        write_json({"rules": [cells_of(it) for it in rows]})
    else:
        write_rows(ALERT_RULES.columns, rows)


@app.command("check", epilog="Example: partiscope alerts check")
def check(
    *,
    bootstrap: Bootstrap = None,
    store: Store = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Check rules and receivers, and tell what each rule matches now; nothing is sent. Exit 2 where
    a rule cannot be followed."""
    from partiscope.cli.watch.alert_trials import matches_now

    settings = checked(load_settings().alerts)
    target = target_with(data=data, bootstrap=bootstrap, store=store)
    found = matches_now(target, settings)
    if as_json:
        write_json({"rules": found})
        return
    if not found:
        note(f"{NO_RULE}: write one as [[alerts.rules]] into the settings file")
    for each in found:
        rows = plural_text(each["matching"], "row")
        matches = f"matches {rows}" if each["known"] else "cannot be judged now: no figures"
        write_lines(f"{each['rule']}: {each['when']}  {matches}")
        write_lines(*(f"    {it['subject']}: {it['words']}" for it in each["rows"]))
    for name, receiver in settings.receivers.items():
        write_lines(f"receiver {name}: {receiver.kind}")


@app.command("backtest", epilog="Example: partiscope alerts backtest --since 7d")
def backtest(
    *,
    since: Annotated[str, typer.Option(metavar="TIME", help="Where it begins.")] = "1d",
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Where it ends.")] = None,
    step: Annotated[
        str,
        typer.Option(metavar="TIME", help="Look so often.  [default: 1,500 times in all]"),
    ] = "",
    rule: Annotated[
        list[str] | None, typer.Option(help="Only the rule of this name; repeatable.")
    ] = None,
    when: Annotated[
        str | None, typer.Option(metavar="RULE", help="Try this instead: 'groups: lag>10k for 5m'.")
    ] = None,
    bootstrap: Bootstrap = None,
    store: Store = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """When each rule would have rung over stored history; nothing is sent."""
    from partiscope.cli.watch.alert_trials import Stretch, show_backtest

    settings = load_settings().alerts
    if when is not None:
        settings = settings.model_copy(update={"rules": (_tried(when),)})
    chosen = [it for it in checked(settings).to_rules() if not rule or it.name in rule]
    if not chosen:
        names = ", ".join(it.name for it in settings.rules)
        told = (
            f"there is no such rule; there are {names}"
            if names
            else f"{NO_RULE}: try one by --when"
        )
        raise CommandError(told, Exit.WRONG_USE)
    target = target_with(data=data, bootstrap=bootstrap, store=store)
    step_ms = None
    if step:
        step_ms = duration_of(step, "--step")
    stretch = Stretch(
        since_ms=moment_of(since, "--since"),
        until_ms=now_ms() if until is None else moment_of(until, "--until"),
        step_ms=step_ms,
    )
    show_backtest(target, chosen, stretch, as_json=as_json)


@app.command("test", epilog="Example: partiscope alerts test slack")
def try_receiver(
    receiver: Annotated[str, typer.Argument(help="Name of the receiver.")], *, as_json: Json = False
) -> None:
    """Send one message to a receiver, as an alert that fires and resolves at once would."""
    from partiscope.cli.watch.alert_trials import send_test

    taken = send_test(load_settings().alerts, receiver)
    if as_json:
        write_json({"receiver": receiver, "place": taken, "taken": True})
    else:
        write_lines(f"{receiver} has taken a test alert and its end: {taken}")


@app.command("silence", epilog="Example: partiscope alerts silence --subject 'orders-*' --for 2h")
def silence(
    *,
    rule: Annotated[str, typer.Option(help="Rules by name or glob.")] = ANY,
    subject: Annotated[str, typer.Option(help="Subjects by name or glob: 'orders-*'.")] = ANY,
    cluster: Annotated[str, typer.Option("--of", help="Clusters by name or glob.")] = ANY,
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="How long.")] = "1h",
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="When it begins; a planned maintenance."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, for the journal and for colleagues.")] = "",
    bootstrap: Bootstrap = None,
    bus: BusAddress = None,
    as_json: Json = False,
) -> None:
    """Do not tell matching alerts for a while. What fires goes on, and is told when it ends."""
    for text, flag in ((rule, "--rule"), (subject, "--subject"), (cluster, "--of")):
        _require_text(text, flag)
    _require_text(reason, "--reason")
    matcher = Matcher(rule=rule, subject=subject, cluster=cluster)
    if matcher == Matcher() and not reason:
        raise CommandError(
            "this silences all alerts: choose some by --rule, --subject or --of, or give a "
            "--reason",
            Exit.WRONG_USE,
        )
    from_ms = now_ms() if begin is None else moment_of(begin, "--from")
    if from_ms < now_ms() - LATE_MS:
        raise CommandError(
            f"--from {begin}: that is in the past; write a time to come, such as "
            "'2026-12-01 22:00'",
            Exit.WRONG_USE,
        )
    until_ms = from_ms + duration_of(for_, "--for")
    if until_ms - from_ms > SILENCE_MS_MAX:
        raise CommandError("--for: a silence lasts a year at most", Exit.WRONG_USE)
    made = Silence(
        id=f"si-{secrets.token_hex(4)}",
        matcher=matcher,
        from_ms=from_ms,
        until_ms=until_ms,
        who=whoami(),
        why=reason,
    )
    target = target_with(bootstrap=bootstrap, bus=bus)
    after = {"silences": matcher.words, "for": for_}
    _change(target, f"silence {made.id}", reason, after, lambda it: it.save_silence(made))
    if as_json:
        write_json({"silence": cells_of(SILENCES.row(made))})
    else:
        write_lines(f"{made.id} silences {matcher.words} for {for_}")


@app.command("unsilence", epilog="Example: partiscope alerts unsilence si-3f9a21c4")
def unsilence(
    silence: Annotated[str, typer.Argument(metavar="ID", help="Id of the silence.")],
    *,
    reason: Annotated[str, typer.Option(help="Why, for the journal.")] = "",
    bootstrap: Bootstrap = None,
    bus: BusAddress = None,
    as_json: Json = False,
) -> None:
    """End a silence now."""
    _require_text(reason, "--reason")
    target = target_with(bootstrap=bootstrap, bus=bus)
    known = _ask(target, lambda topic: topic.read()).silences
    if silence not in known:
        names = ", ".join(known) or "none"
        raise CommandError(f"there is no silence {silence!r}; there are {names}", Exit.WRONG_USE)
    after = {"silences": known[silence].matcher.words}
    _change(target, f"end {silence}", reason, after, lambda it: it.drop_silence(silence))
    if as_json:
        write_json({"silence": silence, "ended": True})
    else:
        write_lines(f"{silence} has ended")


@app.command("silences", epilog="Example: partiscope alerts silences")
def silences(*, bootstrap: Bootstrap = None, bus: BusAddress = None, as_json: Json = False) -> None:
    """Silences that last or are planned, and maintenance windows that last."""
    found = _ask(target_with(bootstrap=bootstrap, bus=bus), lambda topic: topic.read()).silences
    known = AlertsTold(silences=[*found.values()], windows=_windows(now_ms()))
    rows = known.silence_rows(now_ms())
    if as_json:
        write_json({"silences": [cells_of(it) for it in rows]})
    else:
        shown = [row.with_cells(**{"from": zoned(row.cell("from"))}) for row in rows]
        write_rows(SILENCES.columns, shown)


@app.command("run", epilog="Example: partiscope alerts run --data /srv/partiscope")
def run(
    *,
    bootstrap: Bootstrap = None,
    store: Store = None,
    bus: BusAddress = None,
    data: Data = None,
) -> None:
    """Deliver alerts until SIGTERM, as `up` does where there are rules; a second one waits. Without
    rules it tells the end of what is open, and ends."""
    from control.alert_delivery import serving
    from partiscope.alert_receivers import alert_settings

    settings = checked(load_settings().alerts)
    target = target_with(data=data, bootstrap=bootstrap, bus=bus, store=store)
    if target.bus is None:
        raise _no_bus()
    names = [it.name for it in target.clusters]
    if strange := sorted({it for rule in settings.rules for it in rule.clusters} - set(names)):
        known = ", ".join(filter(None, names)) or "one without a name"
        note(f"no rule is judged on {strange[0]!r}, which is not watched here (watched: {known})")
    serving.run(
        alert_settings(settings, names),
        target.clusters,
        store=target.store,
        bus=target.bus,
        say=_say,
    )


def _say(line: str) -> None:
    if line.startswith("ready"):
        say(line)
    else:
        note(f"alerts: {line}")


def checked(settings: AlertsSettings) -> AlertsSettings:
    """The same settings, once every filter is known to be one.

    Raises:
        CommandError: status 2; naming the rule that cannot be followed.
    """
    from control.alert_delivery.evaluate import check_rule

    for rule in settings.to_rules():
        try:
            check_rule(rule)
        except RuleError as error:
            raise CommandError(f"rule {rule.name}: {error}", Exit.WRONG_USE) from error
    return settings


def duration_of(text: str, flag: str) -> int:
    """Milliseconds of a time as it is typed after ``flag``.

    Raises:
        CommandError: status 2; it is none.
    """
    found = parse_duration(text)
    if not found or found < 1:
        raise CommandError(f"{flag} {text!r} is not a time such as 90s, 10m or 2h", Exit.WRONG_USE)
    return round(found)


def _tried(when: str) -> RuleSettings:
    try:
        return RuleSettings(name="tried", when=when)
    except ValidationError as error:
        words = plain_errors(error, RuleSettings).removeprefix("when: ")
        raise CommandError(f"--when: {words}", Exit.WRONG_USE) from error


def _require_text(text: str, flag: str) -> None:
    """Refuse what no record could hold."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise CommandError(
            f"{flag} has {len(text):,} characters, and {TEXT_CHARACTERS_MAX:,} at most",
            Exit.WRONG_USE,
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CommandError(f"{flag} {text!r} is not UTF-8", Exit.WRONG_USE) from error


def _windows(now: int) -> list[Silence]:
    """Maintenance windows of the settings that last now."""
    windows = [it.to_window().silence_at(now) for it in load_settings().alerts.maintenance]
    return [it for it in windows if it is not None]


def _no_bus() -> CommandError:
    return CommandError(
        "alerts are kept on a bus, and none is known: name it by --bus, or start `partiscope up`",
        Exit.WRONG_USE,
    )


def _ask(target: Target, act: Callable[[AlertsTopic], Coroutine[Any, Any, _T]]) -> _T:
    if target.bus is None:
        raise _no_bus()
    address = target.bus

    async def ask() -> _T:
        async with Bus(settings_of(address)) as bus:
            return await act(AlertsTopic(bus))

    return asyncio.run(ask())


def _change(
    target: Target,
    what: str,
    reason: str,
    after: Mapping[str, str],
    act: Callable[[AlertsTopic], Coroutine[Any, Any, None]],
) -> None:
    """Do it, with its lines in the journal."""
    if target.bus is None:
        raise _no_bus()
    check_writable(target.watched, what)
    check_role_named(target.watched, "silence", what)
    address = target.bus

    async def change() -> None:
        journal = Journal(address, of=target.watched, who=whoami())
        try:
            async with Bus(settings_of(address)) as bus:
                topic = AlertsTopic(bus)
                await topic.ensure()
                async with journal.entry(what, reason=reason, before={}, after=after):
                    await act(topic)
        finally:
            await journal.close()

    asyncio.run(change())
