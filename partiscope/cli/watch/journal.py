"""``partiscope journal``: every change that a screen or script made to the cluster."""

import asyncio
import math
from typing import Annotated

import typer

from control.move.journal_lines import JournalLine
from control.operations.bus.client import whoami
from control.operations.bus.journal import Journal
from control.views.tables.journal import JOURNAL, matching
from partiscope.cli.shared.arguments import TIME_HELP, moment_of, zoned
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.listing import cells_of
from partiscope.cli.shared.options import Bootstrap, Bus, Json, note, target_with, write_json
from partiscope.cli.shared.tables import write_rows
from partiscope.identity import Target


def journal(
    *,
    since: Annotated[str | None, typer.Option(metavar="TIME", help=TIME_HELP)] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only changes before this time.")
    ] = None,
    words: Annotated[
        str,
        typer.Option("--filter", "-q", metavar="WORDS", help="Only lines with all of these words."),
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="Lines to show at most, the newest.")] = 100,
    bootstrap: Bootstrap = None,
    bus: Bus = None,
    as_json: Json = False,
) -> None:
    """Every change that was made from here: when, what, what came of it, who, why."""
    target = target_with(bootstrap=bootstrap, bus=bus)
    since_ms = 0 if since is None else moment_of(since, "--since")
    until_ms = math.inf if until is None else moment_of(until, "--until")
    every = matching(asyncio.run(_lines(target)), words)
    lines = [line for line in every if since_ms <= line.at_ms < until_ms]
    newest = sorted(lines, key=lambda line: line.at_ms, reverse=True)[:limit]
    rows = [JOURNAL.row(line) for line in newest]
    if as_json:
        write_json({"journal": [cells_of(row) for row in rows], "total": len(lines)})
    else:
        write_rows(JOURNAL.columns, [row.with_cells(at=zoned(row.at)) for row in rows])


async def _lines(target: Target) -> tuple[JournalLine, ...]:
    if target.bus is None:
        raise CommandError(
            "this cluster has no journal: `partiscope up --bootstrap` starts a bus",
            Exit.WRONG_USE,
        )
    kept = Journal(target.bus, of=target.watched, who=whoami())
    try:
        lines = await kept.lines()
        if kept.unreadable:
            note(kept.unreadable)
        return lines
    finally:
        await kept.close()
