"""``partiscope reassign``: pre-flight a plan, then run it with progress."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from broker.named_file import NamedFileError, read_text
from control.model.ids import TopicPartition
from control.move.yields import NEVER_YIELDS, YieldMode
from control.operations.catalogue.moves.reassign import (
    REASSIGN,
    Reassign,
    move_window,
    yield_rules,
)
from control.operations.errors import InvalidInputError
from control.operations.operation_session import OperationSession
from control.operations.previews import Previewed
from control.views.previews import reassignment_document
from partiscope.cli.reassignments.moves import follow
from partiscope.cli.reassignments.plan import before_file
from partiscope.cli.reassignments.previews import show_preview
from partiscope.cli.shared.confirm import require_change, require_typed
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Bus,
    Json,
    note,
    seconds_of_spread,
    target_with,
    write_json,
)
from partiscope.identity import Target
from planner.reassignment_json import ReassignmentJsonError, parse_reassignment
from planner.waves import USUAL_WAVES, LeaderTurn, SizeOrder, WaveRules

PerWave = Annotated[int, typer.Option(min=1, help="Number of partitions at a time.")]
PerBroker = Annotated[
    int | None, typer.Option(min=1, help="Partitions at a time to or from one broker, at most.")
]
Order = Annotated[SizeOrder, typer.Option(help="Partitions that move first.")]
NewLeaders = Annotated[
    LeaderTurn, typer.Option(help="When to move partitions that get another leader.")
]
Spread = Annotated[
    str,
    typer.Option(help="Longest time until the last partition begins, to spare producers; or none."),
]
YieldTo = Annotated[
    YieldMode,
    typer.Option(help="While groups that read what moves fall behind: pause, slow, or no."),
]
YieldAfter = Annotated[
    str, typer.Option(metavar="TIME", help="Age of unread records from which they do.")
]
YieldAtMost = Annotated[str, typer.Option(metavar="TIME", help="Longest time that a move yields.")]
Start = Annotated[
    str, typer.Option(metavar="HH:MM", help="Time of day from which waves begin; with --until.")
]
Until = Annotated[
    str, typer.Option(metavar="HH:MM", help="Time of day from which none begins, until --start.")
]
Targets = dict[TopicPartition, tuple[int, ...]]


def reassign(
    *,
    plan: Annotated[Path, typer.Argument(metavar="PLAN.json", help="Kafka's reassignment JSON.")],
    throttle: Annotated[str, typer.Option(help="auto (adapts), none, or a rate: 50MiB.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Pre-flight only.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    reason: Annotated[str, typer.Option(help="For the journal.")] = "",
    partitions_per_wave: PerWave = USUAL_WAVES.partitions,
    partitions_per_broker: PerBroker = None,
    order: Order = USUAL_WAVES.order,
    new_leaders: NewLeaders = USUAL_WAVES.leaders,
    spread: Spread = "5m",
    yield_to_consumers: YieldTo = NEVER_YIELDS.mode,
    yield_after: YieldAfter = "30s",
    yield_at_most: YieldAtMost = "10m",
    start: Start = "",
    until: Until = "",
    bootstrap: Bootstrap = None,
    bus: Bus = None,
    as_json: Json = False,
) -> None:
    """Run a plan until it is done. Safe to interrupt: the executor goes on (`partiscope moves`)."""
    waves = WaveRules(
        partitions=partitions_per_wave,
        per_broker=partitions_per_broker,
        order=order,
        leaders=new_leaders,
        spread_s=seconds_of_spread(spread),
    )
    given = _checked({
        "yield_to_consumers": yield_to_consumers.value,
        "yield_after": yield_after,
        "yield_at_most": yield_at_most,
        "start": start,
        "until": until,
    })  # fmt: skip
    asked = Reassign(
        throttle=throttle,
        waves=waves,
        yields=yield_rules(given),
        window=move_window(given),
        reason=reason,
    )
    targets, made_for = _targets(plan), _made_for(plan)
    target = target_with(bootstrap=bootstrap, bus=bus)
    previewed = asyncio.run(_preview(target, plan.stem, (targets, made_for), asked))
    effect = previewed.effect
    assert effect.review is not None
    if not as_json:
        show_preview(effect.review)
    elif dry_run or effect.refusal:
        write_json(reassignment_document(effect.review))
    if effect.refusal:
        raise CommandError(effect.refusal.reason, Exit.REFUSED)
    if dry_run:
        note("pre-flight passed; nothing was changed")
        return
    require_change(bootstrap)
    require_typed("yes", "this moves data", is_confirmed=yes)
    raise typer.Exit(asyncio.run(_run(target, previewed, as_json=as_json)))


def _checked(given: dict[str, str]) -> dict[str, str]:
    """:raises InvalidInputError: a time that cannot be."""
    wrong = {name: why for name, why in REASSIGN.errors(given).items() if name in given}
    if wrong:
        raise InvalidInputError(wrong)
    return given


def _targets(plan: Path) -> Targets:
    try:
        return parse_reassignment(read_text(plan, "plan", takes_pipes=True))
    except ReassignmentJsonError as error:
        raise CommandError(f"{plan}: {error}", Exit.WRONG_USE) from error


def _made_for(plan: Path) -> Targets:
    """Where the plan's partitions were when it was made; nothing where no file tells."""
    try:
        return _targets(before_file(plan))
    except NamedFileError as error:
        if error.is_missing:
            return {}
        raise


async def _preview(
    target: Target, name: str, files: tuple[Targets, Targets], asked: Reassign
) -> Previewed:
    targets, made_for = files
    async with OperationSession(target.watched, bus=target.bus) as session:
        proposal = await session.planning.proposal(targets, name=name, made_for=made_for)
        return await session.preview(replace(asked, proposal=proposal))


async def _run(target: Target, previewed: Previewed, *, as_json: bool) -> int:
    async with OperationSession(target.watched, bus=target.bus) as session:
        done = await session.perform(previewed, typed=previewed.word)
        move = done.params["move"]
        note(f"{done.words}; `partiscope moves watch {move}` shows it anywhere")
        return await follow(session.moves, move, as_json=as_json)
