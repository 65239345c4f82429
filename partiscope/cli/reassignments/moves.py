"""``partiscope moves``: running and past reassignments."""

import asyncio
import json
import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from control.kafka.errors import KafkaPortError, UnreachableError
from control.model.watched_cluster import WatchedCluster
from control.move.events import MoveProgress, Outcome
from control.move.state import HELD, OperationState
from control.operations.bus.client import WATCH_OUTAGE_S, MovesReader, whoami
from control.operations.bus.topics import Outage
from control.operations.catalogue import move_operation
from control.operations.catalogue.moves.control import MoveOperation
from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.operation_session import OperationSession
from control.operations.previews import Previewed
from control.views.format import byte_rate_text, bytes_text, duration_text, plural_text
from control.views.tables.moves import (
    MOVES,
    change_columns_of,
    ended_rows,
    fate_words,
    move_row,
    spread_words,
    status_word,
)
from control.views.tables.rows import Row
from partiscope.cli.reassignments.move_report import (
    ReportFile,
    ReportKind,
    ReportWish,
    write_report,
)
from partiscope.cli.reassignments.previews import show_rollback
from partiscope.cli.shared.arguments import zone_text, zoned
from partiscope.cli.shared.confirm import require_control, require_typed
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Bus,
    Json,
    known_bus,
    note,
    now_ms,
    seconds_of_spread,
    settings_with,
    target_with,
    write_json,
    write_lines,
)
from partiscope.cli.shared.tables import check_line, write_progress, write_rows
from partiscope.cli.shared.watching import watchable
from partiscope.identity import cluster_by_name, watched_here
from partiscope.settings import load_settings


class Action(StrEnum):
    """Actions on a move."""

    LIST = "list"
    SHOW = "show"
    WATCH = "watch"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    ROLLBACK = "rollback"
    THROTTLE = "throttle"
    REPORT = "report"


_STATUS = {
    Outcome.DONE: Exit.DONE,
    Outcome.CANCELLED: Exit.FAILED,
    Outcome.FAILED: Exit.FAILED,
    Outcome.REFUSED: Exit.REFUSED,
}


def _check_watch(flags: dict[str, Any]) -> None:
    if flags.get("action", Action.LIST) not in (Action.LIST, Action.SHOW):
        raise CommandError("--watch goes with `moves list` and `moves show`", Exit.WRONG_USE)


@watchable(_check_watch)
def moves(
    action: Annotated[Action, typer.Argument(help="What to do.")] = Action.LIST,
    move: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Id of the reassignment; default: the newest."),
    ] = None,
    *,
    bootstrap: Bootstrap = None,
    bus: Bus = None,
    reason: Annotated[str, typer.Option(help="For the journal.")] = "",
    throttle: Annotated[
        str, typer.Option(help="With `throttle`: auto, none, or a rate such as 50MiB.")
    ] = "",
    after_wave: Annotated[
        bool, typer.Option("--after-wave", help="With `cancel`: let partitions in flight arrive.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With `rollback`: pre-flight only.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With `rollback`: do not ask.")] = False,
    spread: Annotated[
        str,
        typer.Option(
            help="With `rollback`: longest time until the last partition begins, or none."
            "  [default: as it ran]"
        ),
    ] = "",
    kind: ReportKind = None,
    out: ReportFile = None,
    as_json: Json = False,
) -> None:
    """List reassignments; show, watch, pause, resume, throttle, cancel, roll back or report one.

    Without an ID it is about the newest. To change a move of another user, type its ID.

    For example: partiscope moves throttle mv-3f9a21c4 --throttle 20MiB
    """
    address, cluster = _place(bootstrap, bus)
    if action is Action.REPORT:
        asked = ReportWish(move=move, kind="json" if as_json else kind, out=out)
        asyncio.run(write_report(address, cluster, asked, store=_store(bootstrap, bus)))
        return
    if kind or out:
        raise CommandError("--format and -o go with `moves report`", Exit.WRONG_USE)
    if (action is Action.THROTTLE) != bool(throttle):
        raise CommandError("`moves throttle` goes with --throttle RATE", Exit.WRONG_USE)
    if after_wave and action is not Action.CANCEL:
        raise CommandError("--after-wave goes with `moves cancel`", Exit.WRONG_USE)
    for flag, is_given in {"dry-run": dry_run, "yes": yes, "spread": bool(spread)}.items():
        if is_given and action is not Action.ROLLBACK:
            raise CommandError(f"--{flag} goes with `moves rollback`", Exit.WRONG_USE)
    wish = Wish(
        action=action,
        move=move,
        reason=reason,
        throttle=throttle,
        after_wave=after_wave,
        dry_run=dry_run,
        is_confirmed=yes,
        spread_s=seconds_of_spread(spread) if spread else None,
        named=bootstrap,
        cluster=cluster,
    )
    if action is Action.ROLLBACK:
        raise typer.Exit(_roll_back(address, wish, as_json=as_json))
    raise typer.Exit(asyncio.run(_act(address, wish, as_json=as_json)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """An action, and the move that it is about."""

    action: Action
    move: str | None
    reason: str
    throttle: str
    after_wave: bool
    dry_run: bool
    is_confirmed: bool
    spread_s: float | None
    """None: as it went."""
    named: str | None
    cluster: WatchedCluster | None
    """The one that was named; None: any that shares the bus."""


def _place(bootstrap: str | None, bus: str | None) -> tuple[str | None, WatchedCluster | None]:
    """The bus, and the cluster on it that was named (None: any): not those of whatever runs on
    the usual ports. A bus that is known has the moves also of a cluster that is away."""
    settings = settings_with(bootstrap=bootstrap)
    given = bus or load_settings().bus
    if bootstrap is None:
        return given or known_bus(settings), None
    named = cluster_by_name(settings, bootstrap)
    here = next((it for it in watched_here(settings) if it.owns(named.site)), None)
    if here is not None:
        return given or known_bus(settings), here
    if given is not None and bootstrap in settings.clusters:
        return given, named
    try:
        target = target_with(bootstrap=bootstrap, bus=bus)
    except UnreachableError:
        if given is None:
            raise
        return given, named
    return target.bus, target.watched


def _store(bootstrap: str | None, bus: str | None) -> str:
    """Where figures are kept; empty: that is not known while the cluster is away."""
    try:
        return target_with(bootstrap=bootstrap, bus=bus).store
    except UnreachableError:
        return ""


async def _act(address: str | None, wish: Wish, *, as_json: bool) -> int:
    action = wish.action
    async with MovesReader(address) as client:
        if action is Action.LIST:
            _list(await _known(client, wish, is_whole=as_json), as_json=as_json)
            return Exit.DONE
        chosen = wish.move or await _newest(client, wish)
        state = await client.get(chosen)  # refuses an unknown id
        if action is Action.SHOW:
            _show(state, as_json=as_json)
            return Exit.DONE
        if action is Action.WATCH:
            return await follow(client, chosen, as_json=as_json)
    watched, previewed = await _previewed(address, wish, state)
    async with OperationSession(watched, bus=address) as session:
        note((await session.perform(previewed, typed=previewed.word)).words)
    if as_json:
        write_json({"id": chosen, "asked": action})
    return Exit.DONE


async def _previewed(
    address: str | None, wish: Wish, state: OperationState
) -> tuple[WatchedCluster, Previewed]:
    """The cluster of a move, which may be changed, and what the action would do there."""
    asked = _operation(wish, state.operation_id)
    # In a thread: clusters may have to be asked who they are.
    watched = await asyncio.to_thread(
        require_control, asked, state.site, wish.named, is_dry_run=wish.dry_run
    )
    async with OperationSession(watched, bus=address) as session:
        return watched, await session.preview(asked)


def _roll_back(address: str | None, wish: Wish, *, as_json: bool) -> int:
    """Tells what a rollback would do, asks, and follows it. No loop runs while somebody is asked:
    it would keep Ctrl-C to itself."""

    async def preview() -> tuple[WatchedCluster, Previewed]:
        async with MovesReader(address) as client:
            state = await client.get(wish.move or await _newest(client, wish))
        return await _previewed(address, wish, state)

    async def perform() -> int:
        async with OperationSession(watched, bus=address) as session:
            done = await session.perform(previewed, typed=previewed.word)
            note(done.words)
            return await follow(session.moves, done.params["move"], as_json=as_json)

    watched, previewed = asyncio.run(preview())
    if not _may_go_back(previewed, wish, as_json=as_json):
        return Exit.DONE
    require_typed("yes", "this moves data back", is_confirmed=wish.is_confirmed)
    return asyncio.run(perform())


def _operation(wish: Wish, move: str) -> MoveOperation:
    """Raises InvalidInputError: no such rate."""
    name = "cancel_after_wave" if wish.after_wave else wish.action.value
    if wish.action is Action.ROLLBACK:
        return RollBack(move=move, reason=wish.reason, spread_s=wish.spread_s)
    operation = move_operation(name)
    given = {"move": move, "throttle": wish.throttle, "reason": wish.reason}
    return operation.of(operation.FORM.parse(given))


def _may_go_back(previewed: Previewed, wish: Wish, *, as_json: bool) -> bool:
    """Tell what a rollback would do; where the cluster does not answer, it waits for it."""
    effect = previewed.effect
    if wish.dry_run:
        if effect.review is None:
            raise CommandError(effect.notes[0], Exit.UNREACHABLE)
        show_rollback(effect, as_json=as_json)
    if effect.refusal:
        raise CommandError(effect.refusal.reason, Exit.REFUSED)
    if not wish.dry_run:
        for line in (*effect.lines, *map(check_line, effect.doubts)):
            note(line)
    return not wish.dry_run


async def _known(
    client: MovesReader, wish: Wish, *, is_whole: bool = False
) -> list[OperationState]:
    """The newest first; of the named cluster, where one was."""
    named, states = wish.cluster, await client.list(is_whole=is_whole)
    if client.unreadable:
        note(client.unreadable)
    return [it for it in states if named is None or named.owns(it.site)]


async def _newest(client: MovesReader, wish: Wish) -> str:
    """The newest move that goes on, if the action is about such a move and there is one. Moves of
    others are only looked at."""
    known = await _known(client, wish)
    if not known:
        raise CommandError("there is no reassignment yet", Exit.WRONG_USE)
    looks = wish.action in (Action.SHOW, Action.WATCH)
    is_of_any = looks or wish.action is Action.ROLLBACK
    going = [] if is_of_any else [state for state in known if not state.is_finished]
    newest = (going or known)[0]
    is_ours = looks or newest.who in ("", whoami())
    if not is_ours:
        name = newest.operation_id
        raise CommandError(
            f"the newest, {name}, is of {newest.who}; name it if you mean it: "
            f"`partiscope moves {wish.action} {name}`",
            Exit.WRONG_USE,
        )
    return newest.operation_id


async def follow(client: MovesReader, operation_id: str, *, as_json: bool = False) -> int:
    """Show an operation until it ends; its outcome as an exit status."""
    state: OperationState | None = None
    said = ""
    outage = Outage(WATCH_OUTAGE_S, _tell_outage)
    async for state in client.watch(operation_id, outage=outage):
        said, before = progress_line(state), said
        if as_json:
            sys.stdout.write(json.dumps(state.document()) + "\n")
            sys.stdout.flush()
        elif sys.stderr.isatty():
            write_progress(said)
        elif said != before:
            note(said)
    assert state is not None
    if sys.stderr.isatty() and not as_json:
        note("")
    return _STATUS[state.outcome] if state.outcome is not None else Exit.FAILED


def _tell_outage(error: KafkaPortError | None) -> None:
    patience = duration_text(WATCH_OUTAGE_S * 1000)
    words = f"does not answer; waiting up to {patience} for it: {error}"
    note(f"the operations bus {'answers again' if error is None else words}")


def progress_line(state: OperationState) -> str:
    """One line on where an operation stands."""
    progress = state.progress
    head = f"{state.operation_id} {status_word(state)}"
    if progress is None or state.is_finished:
        return f"{head}  {state.message}"
    eta = ""
    if progress.eta_s_low is not None and progress.eta_s_high is not None:
        low, high = progress.eta_s_low * 1000, progress.eta_s_high * 1000
        eta = f"  ≈ {duration_text(low)} to {duration_text(high)} left"
    waits = f"  {words}" if (words := spread_words(progress)) else ""
    is_held = state.phase in HELD or state.is_outside_window
    held = f"  {state.message}" if is_held else ""
    yields = f"  ▲ {state.yield_words}" if state.yield_words else ""
    return (
        f"{head}{held}  wave {progress.wave} of {progress.waves}  "
        f"{progress.partitions_done:,} of {plural_text(progress.partitions_total, 'partition')}  "
        f"{bytes_text(progress.bytes_done)} of {bytes_text(progress.bytes_total)}  "
        f"{byte_rate_text(progress.rate_bytes_per_s)}{eta}{waits}{yields}{_stalls(progress)}"
    )


def _stalls(progress: MoveProgress) -> str:
    """The first partition that does not get on, why, and how many more there are."""
    if not progress.stalled:
        return ""
    first, more = progress.stalled[0], len(progress.stalled) - 1 + progress.stalled_more
    others = f" (and {more} more)" if more else ""
    return f"  ▲ {first.topic}-{first.partition} stands still: {first.reason}{others}"


def _show(state: OperationState, *, as_json: bool) -> None:
    """One operation, partition by partition."""
    if as_json:
        write_json(state.document())
        return
    lines = [progress_line(state), *(f"◆ {note}" for note in state.remarks)]
    lines += [fate_words(state)] if state.fates else []
    write_lines(*lines)
    write_rows(change_columns_of(state), ended_rows(state))


def _list(states: list[OperationState], *, as_json: bool) -> None:
    if as_json:
        write_json({"moves": [state.document() for state in states]})
        return
    now = now_ms()
    rows = [move_row(state, now_ms=now) for state in states]
    write_rows(MOVES.columns, [_with_zone(row, now) for row in rows])


def _with_zone(row: Row, now: int) -> Row:
    eta = row.eta
    if ":" in eta.text:  # not one that is told as a duration
        eta = replace(eta, text=f"{eta.text}{zone_text(now)}")
    return row.with_cells(submitted=zoned(row.submitted), eta=eta)
