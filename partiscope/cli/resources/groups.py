"""``partiscope groups``: list, describe, alter offsets, delete."""

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from broker.named_file import read_text
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import GroupDescription, ListedGroup
from control.kafka.records.log_bounds import LogExtents
from control.model.ids import TopicPartition, partition_numbers
from control.operations.catalogue.groups.group_offsets import GroupOffsets
from control.operations.catalogue.groups.offset_lines import offset_lines
from control.operations.catalogue.groups.offset_targets import TARGET_HELP, target_problem
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.views.format import plural_text
from control.views.group_facts import Fact, read_facts
from control.views.snapshots.snapshot import group_page
from control.views.tables.export import cells_of
from control.views.tables.group_parts import (
    LISTED,
    OFFSETS,
    SHARE_OFFSETS,
    lags_of,
    listed_rows,
    member_rows,
    member_words,
    offset_rows,
    share_offset_rows,
)
from control.views.tables.rows import Row
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.grammar import ListByDefault
from partiscope.cli.shared.listing import (
    At,
    Columns,
    Csv,
    Filter,
    Limit,
    Sort,
    Wish,
    show_list,
    snapshot_for,
)
from partiscope.cli.shared.operations import Partitions, Reason, run_operations, several
from partiscope.cli.shared.options import (
    Bootstrap,
    DryRun,
    Json,
    Store,
    Yes,
    known_bootstrap,
    note,
    settings_with,
    write_json,
)
from partiscope.cli.shared.tables import write_rows
from partiscope.cli.shared.watching import watchable

app = typer.Typer(
    cls=ListByDefault,
    help="List (what `partiscope groups` alone does), describe, alter (offsets), delete groups.",
)
TO_HELP: Final = f"{TARGET_HELP}."
Group = Annotated[str, typer.Argument(help="Group id.")]
Told = tuple[tuple[Fact, ...], dict[str, Any]]


def _admin(bootstrap: str | None) -> KafkaAdmin:
    return KafkaAdmin.to(known_bootstrap(settings_with(bootstrap=bootstrap)))


@app.command("list", epilog="Example: partiscope groups list --sort -lag --filter status:STOP")
@watchable()
def list_groups(
    *,
    filter_: Filter = "",
    sort: Sort = "",
    columns: Columns = "",
    limit: Limit = None,
    at: At = None,
    bootstrap: Bootstrap = None,
    store: Store = None,
    csv: Csv = False,
    as_json: Json = False,
) -> None:
    """Every group with its state; with a filter, an order, columns, a limit, CSV or a time also
    status, lag and its trend, as the screens show them."""
    wish = Wish(name="groups", filter=filter_, sort=sort, columns=columns, limit=limit, csv=csv,
                as_json=as_json)  # fmt: skip
    if at or wish.needs_figures:
        snapshot = snapshot_for(bootstrap=bootstrap, store=store, at=at)
        show_list(lambda query: group_page(snapshot, query), wish)
        return

    async def run() -> tuple[ListedGroup, ...]:
        async with _admin(bootstrap) as admin:
            return await admin.groups.list_groups()

    rows = listed_rows(asyncio.run(run()))
    if as_json:
        write_json({"groups": [cells_of(row) for row in rows]})
    else:
        write_rows(LISTED.columns, rows)


@app.command("describe", epilog="Example: partiscope groups describe billing --json")
def describe(group: Group, bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Members, and committed offset, end offset and lag of every partition. Of a share group also
    its delivery limit and dead letters, of a streams group its topology."""

    async def run() -> tuple[GroupDescription, tuple[Row, ...], Told]:
        async with _admin(bootstrap) as admin:
            described = await admin.groups.describe_group(group)
            now_ms = time.time_ns() // 1_000_000
            told = await read_facts(admin, group, described.group_type, now_ms)
            if described.group_type == "share":
                shared = await admin.groups.share_offsets(group)
                extents, unread = await LogExtents(admin).known(shared)
                at = {key: it.end for key, it in extents.items()}
                return described, share_offset_rows(shared, at, unread), told
            # Committed offsets first, ends after: lag can then never come out negative.
            committed = await admin.groups.committed_offsets(group)
            owners = {key: m.client_id for m in described.members for key in m.assignment}
            extents, unread = await LogExtents(admin).known({**committed, **owners})
            bounds = {key: (it.first, it.end) for key, it in extents.items()}
            return described, offset_rows(committed, owners, bounds, unread), told

    described, rows, (facts, document) = asyncio.run(run())
    if as_json:
        offsets = [cells_of(row) for row in rows]
        write_json({**_described_head(described), **document, "partitions": offsets})
        return
    note(_described_note(described))
    for member in member_rows(described, lags_of(rows)):
        note(f"member: {member_words(member)}")
    for fact in facts:
        note(f"{fact.title}: {fact.text}")
    table = SHARE_OFFSETS if described.group_type == "share" else OFFSETS
    write_rows(table.columns, rows)


def _described_head(described: GroupDescription) -> dict[str, Any]:
    members = [
        {
            "member": m.member_id,
            "client": m.client_id,
            "host": m.client_host,
            "rack": m.rack or None,
            "assignment": [f"{key.topic}-{key.partition}" for key in m.assignment],
        }
        for m in described.members
    ]
    return {
        "group": described.group_id,
        "type": described.group_type,
        "state": described.state,
        "assignor": described.protocol,
        "group_epoch": described.group_epoch,
        "assignment_epoch": described.assignment_epoch,
        "members": members,
    }


def _described_note(described: GroupDescription) -> str:
    members = plural_text(len(described.members), "member")
    parts = [f"{described.group_id}: {described.group_type}, {described.state}, {members}"]
    if described.protocol:
        parts.append(f"assignor {described.protocol}")
    if described.group_epoch is not None:
        parts.append(
            f"group epoch {described.group_epoch}, assignment epoch {described.assignment_epoch}"
        )
    return ", ".join(parts)


@app.command("export", epilog="Example: partiscope groups export billing > billing.csv")
def export(
    *,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP…", help="Their ids.")],
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Write committed offsets as CSV, without a header: topic, partition, offset; of several groups
    with the group first. `groups alter --from-file` and Kafka's own tool take it."""

    async def run() -> dict[str, Mapping[TopicPartition, int]]:
        async with _admin(bootstrap) as admin:
            found = [await GroupOffsets.of(admin, group, must_exist=True) for group in groups]
            return {it.group: await it.read() for it in found}

    offsets = asyncio.run(run())
    if as_json:
        write_json({"offsets": [
            {"group": group, "topic": key.topic, "partition": key.partition, "offset": offset}
            for group, known in offsets.items()
            for key, offset in sorted(known.items())
        ]})  # fmt: skip
    else:
        sys.stdout.write(offset_lines(offsets))


@app.command("alter", epilog="Example: partiscope groups alter billing --topic orders --to 10m")
def alter(
    *,
    group: Group,
    to: Annotated[str, typer.Option(help=TO_HELP)] = "",
    from_file: Annotated[
        Path | None,
        typer.Option("--from-file", help="CSV of offsets, as `groups export` writes it; for --to."),
    ] = None,
    topic: Annotated[
        str, typer.Option(help="Topic whose offsets to set; all that it committed by default.")
    ] = "",
    partitions: Partitions = "",
    creates: Annotated[
        bool, typer.Option("--create", help="Create the group where there is none of this name.")
    ] = False,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Set other committed offsets of a group without members, after typing its name."""
    if bool(to) == (from_file is not None):
        raise CommandError("one of --to and --from-file is needed", Exit.WRONG_USE)
    problem = target_problem(to) if to else None
    if problem is not None:
        raise CommandError(f"--to: {problem}", Exit.WRONG_USE)
    lines = "" if from_file is None else read_text(from_file, "--from-file")
    if from_file is not None and not lines.strip():
        raise CommandError(f"--from-file {from_file} holds no offsets", Exit.WRONG_USE)
    numbers = partition_numbers(partitions)
    asked = ResetOffsets(group=group, topic=topic, to=to, partitions=numbers, lines=lines,
                         creates=creates, reason=reason)  # fmt: skip
    run_operations([asked], {"group": group, "topic": topic or None}, bootstrap=bootstrap,
                   dry_run=dry_run, yes=yes, as_json=as_json)  # fmt: skip


@app.command("reset", hidden=True)
def reset(
    *,
    group: Group,
    topic: Annotated[str, typer.Option(help="Topic whose offsets to reset.")],
    to: Annotated[str, typer.Option(help=TO_HELP)],
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without it nothing is changed.")
    ] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """`groups alter` by its older name: without --execute as with --dry-run, with it as --yes."""
    alter(group=group, topic=topic, to=to, dry_run=not execute, yes=True,
          bootstrap=bootstrap, as_json=as_json)  # fmt: skip


@app.command("delete", epilog="Example: partiscope groups delete billing audit")
def delete(
    *,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP…", help="Their ids.")],
    topic: Annotated[str | None, typer.Option(help="Only its offsets of this topic.")] = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Forget groups without members and their offsets, after typing the name, or how many
    (`3 groups`); with --topic only their offsets of that topic."""
    form, about = ("delete_group", {}) if topic is None else ("delete_offsets", {"topic": topic})
    asked, document = several(form, groups, {**about, "reason": reason})
    run_operations([asked], {**document, **about}, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip
