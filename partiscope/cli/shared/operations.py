"""Runs operations of the catalogue from the command line: preview, ask, perform."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from control.model.config_values import plain_value
from control.model.units import counted
from control.operations import checks
from control.operations.catalogue import form_named
from control.operations.catalogue.operation import Change, Done, Operation
from control.operations.catalogue.several import NOT_DONE, several_of
from control.operations.errors import StalePreviewError
from control.operations.operation_session import OperationSession
from control.operations.previews import Previewed
from partiscope.cli.shared.confirm import require_change, require_typed
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import note, target_with, write_json
from partiscope.cli.shared.tables import words, write_table
from partiscope.identity import Target

PREVIEWS_MAX: Final = 3
"""Of an operation that is stale each time it is to be done, as while brokers come and go."""
Reason = Annotated[str, typer.Option("--reason", help="Why, for the journal.")]


def _checked_partitions(text: str) -> str:
    problem = checks.partitions(text)
    if problem is not None:
        raise CommandError(f"--partitions: {problem}", Exit.WRONG_USE)
    return text


Partitions = Annotated[
    str,
    typer.Option(
        "--partitions",
        "--partition",
        callback=_checked_partitions,
        help="Only these, like 0,3-5.",
        show_default=False,
    ),
]
"""For ``partition_numbers``."""


def config_pairs(texts: Sequence[str] | None) -> dict[str, str]:
    """key=value of a repeatable option, by key, with values as Kafka takes them (7d, 1GiB).

    Raises:
        CommandError: status 2; one is not key=value.
    """
    for text in texts or ():
        if "=" not in text[1:]:
            raise CommandError(f"{text!r} is not key=value", Exit.WRONG_USE)
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        if pairs.setdefault(name, value) != value:
            raise CommandError(f"{text!r}: {name} is {pairs[name]!r} before it", Exit.WRONG_USE)
    return {name: plain_value(name, value) for name, value in pairs.items()}


def several(
    form: str, names: Sequence[str], values: Mapping[str, str]
) -> tuple[Operation, dict[str, Any]]:
    """The operation of a form on one thing or on several, and the begin of its JSON document."""
    rows = several_of(form_named(form), names, values)
    if len(rows.parts) == 1:
        ((name, part),) = rows.parts.items()
        return part, {rows.noun: name}
    return rows, {f"{rows.noun}s": list(rows.parts)}


def run_operations(
    asked: Sequence[Operation],
    document: dict[str, Any],
    *,
    bootstrap: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Preview all of them, ask once for each name that must be typed, then do them in order.

    ``document`` begins the one JSON document: what the command is about.

    Raises:
        CommandError: status 3; it may not be done, or was not confirmed. Status 1: of several
            some were not done.
        OperationError: it may not be done, is stale, or was done in part.
        KafkaPortError: the cluster refuses or does not answer.
    """
    for operation in asked:
        operation.check()
    if not dry_run:
        require_change(bootstrap)
    target = target_with(bootstrap=bootstrap)
    for is_last in (*(False,) * (PREVIEWS_MAX - 1), True):
        found = asyncio.run(_preview(target, asked))
        previews = [each for each in found if each.is_needed]
        changes = [change for each in previews for change in each.effect.changes]
        if not as_json:
            _show(changes)
        notes = [line for each in found for line in each.effect.notes]
        for line in notes:
            note(line)
        try:
            done = [] if dry_run else _ask_and_perform(target, previews, is_confirmed=yes)
            break
        except StalePreviewError as error:
            if is_last or not _is_previewed_anew(previews):
                raise
            note(f"{error.reason}: previewed again")
    left_out = [line for line in notes if NOT_DONE in line]
    if as_json:
        write_json({
            **document,
            "dry_run": dry_run,
            "changes": {it.name: {"now": it.now, "then": it.then} for it in changes},
            "notes": notes,
            "done": [_words(result) for result in done],
        })  # fmt: skip
    _tell(done, is_needed=bool(previews), is_journaled=target.bus is not None)
    failed = [line for result in done for line in result.lines if NOT_DONE in line]
    if left_out or failed:
        count = counted(len(left_out) + len(failed), "row")
        raise CommandError(f"{count} not done: {'; '.join((*left_out, *failed))}")


async def _preview(target: Target, asked: Sequence[Operation]) -> list[Previewed]:
    async with OperationSession(target.watched, bus=target.bus) as session:
        return [await session.preview(operation) for operation in asked]


def _ask_and_perform(
    target: Target, previews: Sequence[Previewed], *, is_confirmed: bool
) -> list[Done]:
    _ask(previews, is_confirmed=is_confirmed)
    return asyncio.run(_perform(target, previews)) if previews else []


def _is_previewed_anew(previews: Sequence[Previewed]) -> bool:
    """One that nobody confirmed: of several some may be done, and a yes is for what was shown."""
    return len(previews) == 1 and not previews[0].effect.command.thing


async def _perform(target: Target, previews: Sequence[Previewed]) -> list[Done]:
    async with OperationSession(target.watched, bus=target.bus) as session:
        return [await session.perform(each, typed=each.word) for each in previews]


def _ask(previews: Sequence[Previewed], *, is_confirmed: bool) -> None:
    for each in previews:
        command = each.effect.command
        if command.thing:
            require_typed(command.thing, command.what, is_confirmed=is_confirmed)


def _tell(done: Sequence[Done], *, is_needed: bool, is_journaled: bool) -> None:
    for result in done:
        note(_words(result))
    if not done:
        note("nothing was changed" if is_needed else "nothing to change")
    elif not is_journaled:
        note("the change is in no journal: no bus is known for this cluster")


def _words(done: Done) -> str:
    return " · ".join((done.words, *done.lines))


def _show(changes: Sequence[Change]) -> None:
    if changes:
        rows = [[it.name, _text(it.now), _text(it.then)] for it in changes]
        heads = [words(name, is_long=True) for name in ("change", "now", "then")]
        write_table(heads, rows)
        sys.stdout.flush()


def _text(value: str | int | None) -> str:
    return "–" if value is None else str(value)
