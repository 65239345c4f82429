"""``partiscope plan``: alternatives for a better placement; changes nothing."""

import asyncio
import os
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from broker.named_file import NamedFileError, read_text
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.units import counted
from control.operations import checks
from control.operations.catalogue.moves.reassign import plan_request, with_task
from control.operations.reassignment.planning import Planning
from control.views.format import NONE
from control.views.plans import gap_percent, nothing_to_move
from control.views.tables.cells import bytes_cell, count_cell, percent_cell
from control.views.tables.rows import Cell, Tone
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
from partiscope.cli.shared.tables import figure, mark, words, write_table
from planner.by_hand import NOTHING, LeaderOrder, edited, parse_edits
from planner.figures import Balance
from planner.goals import Goal, GoalError, ImpossibleError, PlanRequest
from planner.optimizer import Alternative, Plan, judged_plan
from planner.optimizer import plan as make_plan
from planner.reassignment_json import (
    ReassignmentJsonError,
    decoded_json,
    format_reassignment,
)
from planner.report import plan_document
from planner.topology import Topology, TopologyError, parse_topology

_QUOTED_MAX: Final = 60
Hand = tuple[str, LeaderOrder]
Edit = Annotated[
    str,
    typer.Option(
        metavar="TEXT|FILE",
        help="Check this placement instead of planning: orders-3: 101,102; … or Kafka's JSON.",
    ),
]
Leaders = Annotated[
    LeaderOrder, typer.Option(help="Leaders with --edit: as given, those of now, or balanced.")
]


def _ids_of(words: str) -> Any:
    return typer.Option(metavar="ID,…", help=words)


Choose = Annotated[
    int, typer.Option(metavar="N", min=1, help="With --out: the N-th plan of the table.")
]
Out = Annotated[Path | None, typer.Option(help="Write a plan here, as Kafka's reassignment JSON.")]
ChosenGoal = Annotated[
    Goal | None,
    typer.Option(help="Goal of the plan; as its form, minimal with --add-brokers, else balance."),
]
NewFactor = Annotated[
    int | None,
    typer.Option(
        min=1, max=checks.FACTOR_MAX, help="New replication factor; sets --goal replication."
    ),
]
RequireRacks = Annotated[
    bool, typer.Option("--require-racks", help="Refuse while a broker has no rack.")
]


def plan(
    *,
    bootstrap: Bootstrap = None,
    topology: Annotated[
        Path | None, typer.Option(help="Plan offline, for the cluster in this JSON file.")
    ] = None,
    goal: ChosenGoal = None,
    topics: Annotated[str, typer.Option(metavar="NAME,…", help="Only topics; * matches.")] = "",
    partitions: Annotated[str, typer.Option(metavar="TOPIC-N,…", help="Only partitions.")] = "",
    exclude_topics: Annotated[
        str, typer.Option(metavar="NAME,…", help="Without these topics; * matches.")
    ] = "",
    keep: Annotated[
        str, typer.Option(metavar="TOPIC-N,…", help="Partitions that stay as they are.")
    ] = "",
    exclude_brokers: Annotated[str, _ids_of("Brokers that neither lose nor get a replica.")] = "",
    add_brokers: Annotated[str, _ids_of("Brokers that have joined and shall carry a share.")] = "",
    remove_brokers: Annotated[str, _ids_of("Brokers to empty.")] = "",
    relieve_brokers: Annotated[str, _ids_of("Brokers to take bytes from.")] = "",
    replication_factor: NewFactor = None,
    require_racks: RequireRacks = False,
    edit: Edit = "",
    leaders: Leaders = LeaderOrder.GIVEN,
    alternatives: Annotated[int, typer.Option(min=1, max=9, help="Most plans to offer.")] = 3,
    choose: Choose = 1,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Plan a reassignment: what would move, how even it would get, and the least that must."""
    given = {
        "goal": (goal or Goal.BALANCE).value,
        "topics": topics,
        "partitions": partitions,
        "exclude_topics": exclude_topics,
        "keep_partitions": keep,
        "exclude_brokers": exclude_brokers,
        "add_brokers": add_brokers,
        "remove_brokers": remove_brokers,
        "relieve_brokers": relieve_brokers,
        "replication_factor": str(replication_factor or ""),
        "require_racks": "yes" if require_racks else "",
    }
    request = replace(_request(given), alternatives=alternatives)
    if goal is not None and replication_factor is None:
        request = replace(request, goal=goal)
    before = None if topology is None else topology_in(topology)
    hand = (_entries(edit), leaders)
    started_s = time.perf_counter()
    made = _made(before, bootstrap, request, hand)
    seconds = time.perf_counter() - started_s
    if out is not None:
        _write(out, made, choose)
    if as_json:
        write_json(plan_document(made, seconds=seconds))
    else:
        _print(made, seconds)


def _request(given: Mapping[str, str]) -> PlanRequest:
    """As the form makes it of the same fields."""
    for name, text in given.items():
        if name.endswith("_brokers") and (wrong := checks.broker_ids(text)):
            told = text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}…"
            raise CommandError(f"{told!r} is not what --{name.replace('_', '-')} takes: {wrong}",
                               Exit.WRONG_USE)  # fmt: skip
    return plan_request(with_task(given))


def topology_in(path: Path) -> Topology:
    """The cluster that a file describes.

    Raises:
        CommandError: status 2; it is no topology.
    """
    try:
        text = read_text(path, "--topology", takes_pipes=True)
        return parse_topology(decoded_json(text)).in_order()
    except (ReassignmentJsonError, TopologyError) as error:
        raise CommandError(f"{path}: {error}", Exit.WRONG_USE) from error


def _entries(edit: str) -> str:
    """The text itself, or what the file of this name holds: every entry has ``:`` or ``=``."""
    is_text = not edit or (re.search("[:=]", edit) and not os.path.lexists(edit))
    try:
        return edit if is_text else read_text(edit, "--edit", takes_pipes=True)
    except NamedFileError as error:
        if not error.is_missing:
            raise
        told = f"--edit {edit!r} is no entry like orders-3: 101,102,103, and there is no such file"
        raise CommandError(told, Exit.WRONG_USE) from error


def _made(before: Topology | None, bootstrap: str | None, request: PlanRequest, hand: Hand) -> Plan:
    """For a cluster in a file, or as it is now."""
    try:
        if before is not None:
            return _offline(before, request, hand)
        return asyncio.run(_for_cluster(bootstrap, request, hand))
    except ImpossibleError as error:
        raise CommandError(str(error), Exit.REFUSED) from error
    except GoalError as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error


def _offline(before: Topology, request: PlanRequest, hand: Hand) -> Plan:
    entries, leaders = hand
    if not entries:
        return make_plan(before, request)
    edits = parse_edits(entries)
    return judged_plan(before, request, edited(before, NOTHING, edits, leaders=leaders))


async def _for_cluster(bootstrap: str | None, request: PlanRequest, hand: Hand) -> Plan:
    entries, leaders = hand
    settings = settings_with(bootstrap=bootstrap)
    async with KafkaAdmin.to(known_bootstrap(settings)) as admin:
        planning = Planning(admin)
        if not entries:
            return await planning.plan(request)
        return await planning.by_hand(request, entries, leaders=leaders)


def before_file(plan: Path) -> Path:
    """Beside PLAN.json: where its partitions were when it was made. By it `reassign` knows a
    stale plan, and kafka-reassign-partitions takes it to go back."""
    return plan.with_suffix(f".before{plan.suffix}")


def _write(out: Path, made: Plan, number: int) -> None:
    offered = len(made.alternatives)
    if number > offered:
        raise CommandError(
            f"--choose {number}: {counted(offered, 'plan')} on offer; nothing was written",
            Exit.WRONG_USE,
        )
    chosen = made.alternatives[number - 1]
    proposal = chosen.proposal
    if not out.name:
        raise CommandError(f"cannot write {str(out)!r}: it names no file", Exit.WRONG_USE)
    # The rollback first: a plan is never there without it.
    files = {before_file(out): proposal.inverse().targets(), out: proposal.targets()}
    for path in files:
        if path.is_dir():
            raise CommandError(f"cannot write {path}: it is a directory")
    for path, targets in files.items():
        try:
            path.write_text(format_reassignment(targets))
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror}") from error
    if not proposal.changes:
        title, broken = nothing_to_move(chosen.violations, made.limits)
        note(f"{chosen.name}: {'; '.join((title, *broken))}. {out} is empty")
        return
    note(f"wrote {chosen.name} to {out}, and the rollback to {before_file(out)}")


def _print(made: Plan, seconds: float) -> None:
    now = made.balance_before
    heads = [
        words("plan", is_long=True),
        figure("moves"),
        figure("least moves", rank=3),
        figure("bytes"),
        figure("least bytes", rank=3),
        figure("above", rank=2),
        figure("leaders", rank=2),
        figure("replicas", rank=2),
        figure("leads", rank=2),
        figure("max bytes", rank=2),
    ]
    nothing, unknown = count_cell(0), Cell(None, NONE)
    moved = [nothing, unknown, bytes_cell(0), unknown, unknown, nothing]
    rows: list[list[str | Cell]] = [["(now)", *moved, *_spreads(now)]]
    rows.extend(_row(alternative) for alternative in made.alternatives)
    write_table(heads, rows)
    for alternative in made.alternatives:
        for violation in alternative.violations:
            write_lines(f"{mark(Tone.WARNING)} {alternative.name}: {violation}")
    write_lines(*(f"{mark(Tone.NOTICE)} {limit}" for limit in made.limits))
    note(f"planned in {seconds:.2f} s; nothing was changed")


def _row(alternative: Alternative) -> list[str | Cell]:
    proposal, balance = alternative.proposal, alternative.balance
    return [
        alternative.name,
        count_cell(proposal.moved_replicas),
        count_cell(alternative.lower_bound_replicas),
        bytes_cell(proposal.moved_bytes),
        bytes_cell(alternative.lower_bound_bytes),
        percent_cell(gap_percent(alternative)),
        count_cell(proposal.moved_leaders),
        *_spreads(balance),
    ]


def _spreads(balance: Balance) -> list[Cell]:
    """Replicas and leaders of the brokers with least and most, and most bytes; a program reads the
    most of each."""
    counts = (balance.replicas, balance.leaders)
    cells = [Cell(it.max, f"{it.min}–{it.max}") for it in counts]
    return [*cells, bytes_cell(balance.bytes.max)]
