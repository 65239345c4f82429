"""``partiscope check``: judges a reassignment file of any tool; changes nothing."""

import asyncio
import sys
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from broker.named_file import read_text
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.command_line import command
from control.move.check import Verdict
from control.move.throttle import THROTTLE_AUTO
from control.operations.reassignment.plan_check import (
    PlanCheck,
    Targets,
    check_document,
    check_offline,
    check_plan,
)
from control.operations.reassignment.preflight import failures
from control.views.checked_plan import BALANCES, FIGURES, balance_rows, figure_rows
from partiscope.cli.reassignments.plan import topology_in
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Json,
    known_bootstrap,
    note,
    settings_with,
    write_json,
    write_lines,
)
from partiscope.cli.shared.tables import check_line, figure, words, write_table
from planner.reassignment_json import ReassignmentJsonError, parse_reassignment


def check(
    *,
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN.json",
            help="Kafka's reassignment JSON, or what its tool prints with --generate.",
        ),
    ],
    topology: Annotated[
        Path | None, typer.Option(help="Check offline, for the cluster in this JSON file.")
    ] = None,
    throttle: Annotated[str, typer.Option(help="auto, none, or a rate: 50MiB.")] = THROTTLE_AUTO,
    max_waste: Annotated[
        float,
        typer.Option(min=0, max=100, help="Fail if more percent of the bytes move needlessly."),
    ] = 100.0,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail as well.")] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Judge a plan: bytes, the least for the same balance, racks, min ISR, disks, cordons, leaders,
    throttle. Ends with 3 if a check fails."""
    try:
        targets = parse_reassignment(read_text(plan, "plan", takes_pipes=True))
    except ReassignmentJsonError as error:
        told = f"{plan}: {error}"
        if error.sound:
            found = _judged(topology, bootstrap, error.sound, (throttle, max_waste))
            others = failures(found.checks)
            told += f". Of its other entries: {others}" if others else ""
        raise CommandError(told, Exit.WRONG_USE) from error
    found = _judged(topology, bootstrap, targets, (throttle, max_waste))
    if as_json:
        write_json(check_document(found, is_strict=strict))
    else:
        _print(found)
    if found.verdict(is_strict=strict) is Verdict.FAIL:
        raise typer.Exit(Exit.REFUSED)
    if plan.is_file():
        note(f"to run it: {_command(plan, throttle, bootstrap)}")


def _command(plan: Path, throttle: str, bootstrap: str | None) -> str:
    """The command that runs the plan, quoted for a shell."""
    name = str(plan)
    words = ["reassign", quote(f"./{name}" if name.startswith("-") else name)]
    words += [] if throttle == THROTTLE_AUTO else ["--throttle", quote(throttle)]
    words += [] if bootstrap is None else ["--bootstrap", quote(bootstrap)]
    return command(" ".join(words))


def _judged(
    topology: Path | None, bootstrap: str | None, targets: Targets, limits: tuple[str, float]
) -> PlanCheck:
    if topology is None:
        return asyncio.run(_online(bootstrap, targets, limits))
    return check_offline(topology_in(topology), targets, waste_percent_max=limits[1])


async def _online(bootstrap: str | None, targets: Targets, limits: tuple[str, float]) -> PlanCheck:
    throttle, max_waste = limits
    async with KafkaAdmin.to(known_bootstrap(settings_with(bootstrap=bootstrap))) as admin:
        return await check_plan(admin, targets, throttle=throttle, waste_percent_max=max_waste)


def _print(found: PlanCheck) -> None:
    for heads, rows in ((FIGURES, figure_rows(found)), (BALANCES, balance_rows(found))):
        first, *others = heads
        write_table([words(first, is_long=True), *map(figure, others)], rows)
        sys.stdout.write("\n" if heads is FIGURES else "")
    write_lines(*map(check_line, found.checks))
