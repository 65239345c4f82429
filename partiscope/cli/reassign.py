"""``partiscope reassign``: pre-flight a plan, then run it with progress."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from control.kafka.admin import KafkaAdmin
from control.model.ids import TopicPartition
from control.operations.bus.client import OperationsClient
from control.operations.bus.commands import Throttle
from control.operations.reassignment.planning import Planning, Preview
from control.operations.reassignment.preflight import failures
from control.operations.reassignment.preview import whole_preview
from control.planner.reassignment_json import ReassignmentJsonError, parse_reassignment
from control.planner.waves import USUAL_WAVES, LeaderTurn, SizeOrder, WaveRules
from partiscope.cli.confirm import require_change, require_typed
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.files import text_of
from partiscope.cli.moves import follow
from partiscope.cli.options import (
    Bootstrap,
    Bus,
    Json,
    note,
    seconds_of_spread,
    target_with,
    write_json,
)
from partiscope.cli.plan import before_file
from partiscope.cli.previews import preview_document, show_preview
from partiscope.identity import Target

Targets = dict[TopicPartition, tuple[int, ...]]


def reassign(
    *,
    plan: Annotated[Path, typer.Argument(metavar="PLAN.json", help="Kafka's reassignment JSON.")],
    throttle: Annotated[str, typer.Option(help="auto (adapts), none, or a rate: 50MiB.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Pre-flight only.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    reason: Annotated[str, typer.Option(help="For the journal.")] = "",
    partitions_per_wave: Annotated[
        int, typer.Option(min=1, help="So many partitions at a time.")
    ] = USUAL_WAVES.partitions,
    partitions_per_broker: Annotated[
        int | None, typer.Option(min=1, help="At most so many to or from one broker at a time.")
    ] = None,
    order: Annotated[SizeOrder, typer.Option(help="Which go first.")] = USUAL_WAVES.order,
    new_leaders: Annotated[
        LeaderTurn, typer.Option(help="When partitions have their turn that get another leader.")
    ] = USUAL_WAVES.leaders,
    spread: Annotated[
        str, typer.Option(help="Over at most so long, so that producers wait less; or none.")
    ] = "5m",
    bootstrap: Bootstrap = None,
    bus: Bus = None,
    as_json: Json = False,
) -> None:
    """Run a plan until it is done. Safe to interrupt: the executor goes on (`partiscope moves`)."""
    way = Way(
        throttle=throttle,
        reason=reason,
        waves=WaveRules(
            partitions=partitions_per_wave,
            per_broker=partitions_per_broker,
            order=order,
            leaders=new_leaders,
            spread_s=seconds_of_spread(spread),
        ),
    )
    target = target_with(bootstrap=bootstrap, bus=bus)
    targets, before = _targets(plan), before_file(plan)
    made_for = _targets(before) if before.exists() else {}
    preview = asyncio.run(_preview(target, plan.stem, (targets, made_for), way))
    if not as_json:
        show_preview(preview)
    elif dry_run or preview.is_refused:
        write_json(preview_document(preview))
    if preview.is_refused:
        raise CommandError(f"pre-flight refuses: {failures(preview.checks)}", Exit.REFUSED)
    if dry_run:
        note("pre-flight passed; nothing was changed")
        return
    require_change(bootstrap)
    require_typed("yes", "this moves data", is_confirmed=yes)
    raise typer.Exit(asyncio.run(_run(target, preview, way, as_json=as_json)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a plan is to be run."""

    throttle: Throttle
    waves: WaveRules
    reason: str


def _targets(plan: Path) -> Targets:
    try:
        return parse_reassignment(text_of(plan))
    except ReassignmentJsonError as error:
        raise CommandError(f"{plan}: {error}", Exit.WRONG_USE) from error


async def _preview(target: Target, name: str, files: tuple[Targets, Targets], way: Way) -> Preview:
    (targets, made_for), site = files, target.watched.site
    async with KafkaAdmin.to(str(site.bootstrap)) as admin, OperationsClient(target.bus) as client:
        planning = Planning(admin)
        proposal = await planning.proposal(targets, name=name, made_for=made_for)
        return await whole_preview(
            planning,
            client,
            proposal,
            site=site,
            throttle=way.throttle,
            rules=way.waves,
        )


async def _run(target: Target, preview: Preview, way: Way, *, as_json: bool) -> int:
    watched = target.watched
    async with OperationsClient(target.bus, of=watched) as client:
        operation_id = await client.submit_reassign(
            preview.proposal,
            bootstrap=str(watched.bootstrap),
            cluster_id=watched.cluster_id or "",
            throttle=way.throttle,
            waves=way.waves,
            reason=way.reason,
        )
        note(f"submitted {operation_id}; `partiscope moves watch {operation_id}` shows it anywhere")
        return await follow(client, operation_id, as_json=as_json)
