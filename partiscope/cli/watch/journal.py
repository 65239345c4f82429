"""``partiscope journal``: every change that a screen or script made to the cluster."""

import asyncio
import math
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from control.model.units import counted
from control.move.journal_lines import JournalLine
from control.operations.bus.chain import Head, Verified
from control.operations.bus.client import whoami
from control.operations.bus.journal import Journal
from control.views.tables.export import cells_of, document
from control.views.tables.journal import JOURNAL, exported, matching
from partiscope.cli.shared.arguments import TIME_HELP, moment_of, zoned
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Bus,
    Json,
    note,
    target_with,
    write_json,
    write_lines,
)
from partiscope.cli.shared.tables import write_rows
from partiscope.identity import Target
from partiscope.journal_chain import ChainFile
from partiscope.settings import load_settings

LINES: Final = 100
HASH: Final = re.compile("[0-9a-f]{64}")


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
    who: Annotated[
        str, typer.Option("--who", metavar="NAME", help="Only lines of this login or user.")
    ] = "",
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Find lines changed, removed or put in; exit 1 if any."),
    ] = False,
    noted: Annotated[
        list[str] | None,
        typer.Option(
            "--noted",
            metavar="HASH",
            help="Verify, and look for the line with a hash that was noted earlier; repeatable.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="The newest lines at most.  [default: 100; with --csv all]"),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on stdout, with every value.")] = False,
    bootstrap: Bootstrap = None,
    bus: Bus = None,
    as_json: Json = False,
) -> None:
    """Every change that was made from here: when, what, what came of it, who, why."""
    target = target_with(bootstrap=bootstrap, bus=bus)
    if verify or noted:
        _verify(target, [*map(_hash, noted or ())], as_json=as_json)
        return
    since_ms = 0 if since is None else moment_of(since, "--since")
    until_ms = math.inf if until is None else moment_of(until, "--until")
    every = matching(asyncio.run(_lines(target)), words)
    lines = [line for line in every if since_ms <= line.at_ms < until_ms and line.is_of(who)]
    ordered = sorted(lines, key=lambda line: line.at_ms, reverse=True)
    if csv:
        sys.stdout.writelines(document(exported(ordered[:limit]), "csv"))
        return
    newest = ordered[: limit or LINES]
    rows = [JOURNAL.row(line) for line in newest]
    if as_json:
        write_json({"journal": [cells_of(row) for row in rows], "total": len(lines)})
    else:
        write_rows(JOURNAL.columns, [row.with_cells(at=zoned(row.at)) for row in rows])


def _hash(words: str) -> str:
    if HASH.fullmatch(words.lower()) is None:
        raise CommandError(
            f"--noted {words!r} is no hash: `partiscope journal --verify` prints 64 hexadecimal "
            "digits",
            Exit.WRONG_USE,
        )
    return words.lower()


def _verify(target: Target, noted: Sequence[str], *, as_json: bool) -> None:
    """Exit status 1 where a line was changed, removed or put in, or a noted one is gone."""
    found = asyncio.run(_verified(target, noted))
    if as_json:
        write_json({"lines": found.lines, "earlier": found.earlier,
                    "heads": [_head(it, found.own) for it in found.heads.values()],
                    "noted": [_head(it, found.own) for it in found.noted],
                    "faults": found.faults})  # fmt: skip
    else:
        write_lines(*(f"✖ {fault}" for fault in found.faults))
        older = f", and {found.earlier:,} older ones without links" if found.earlier else ""
        write_lines(
            f"{counted(found.lines, 'line')} in {counted(len(found.heads), 'chain')}{older}"
        )
        for what, heads in (("newest", found.heads.values()), ("noted", found.noted)):
            for head in heads:
                whose = "this installation" if head.chain == found.own else "another installation"
                write_lines(f"{what} of {whose}: line {head.number:,}, hash {head.hash}")
    if found.faults:
        raise CommandError(
            f"the journal is not whole: {counted(len(found.faults), 'fault')}. Compare it with a "
            "backup of the data directory, and find out who may write to the bus"
        )


def _head(head: Head, own: str) -> dict[str, object]:
    return {
        "chain": head.chain,
        "line": head.number,
        "hash": head.hash,
        "is_own": head.chain == own,
    }


async def _verified(target: Target, noted: Sequence[str]) -> Verified:
    journal = _journal(target)
    try:
        # Read first: a line that is written meanwhile is no newer than the head.
        found = await journal.verify(ChainFile(load_settings().chain_file).known(), noted=noted)
        if journal.unreadable:
            note(journal.unreadable)
        return found
    finally:
        await journal.close()


async def _lines(target: Target) -> tuple[JournalLine, ...]:
    journal = _journal(target)
    try:
        lines = await journal.lines()
        if journal.unreadable:
            note(journal.unreadable)
        return lines
    finally:
        await journal.close()


def _journal(target: Target) -> Journal:
    if target.bus is None:
        raise CommandError(
            "this cluster has no journal: `partiscope up --bootstrap` starts a bus",
            Exit.WRONG_USE,
        )
    return Journal(target.bus, of=target.watched, who=whoami())
