"""``partiscope groups``: list, describe, alter offsets, delete."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import GroupDescription, ListedGroup, OffsetSpec, ShareOffset
from control.model.ids import TopicPartition, partition_numbers
from control.operations.catalogue.groups.delete_group import DeleteGroup
from control.operations.catalogue.groups.delete_offsets import DeleteOffsets
from control.operations.catalogue.groups.offset_targets import TARGET_HELP, target_problem
from control.operations.catalogue.groups.reset_offsets import ResetOffsets
from control.operations.catalogue.operation import Operation
from control.views.format import plural_text
from control.views.group_facts import Fact, read_facts
from control.views.tables.members import member_rows, member_words
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.grammar import ListByDefault
from partiscope.cli.shared.operations import Partitions, Reason, run_operations
from partiscope.cli.shared.options import (
    Bootstrap,
    DryRun,
    Json,
    Yes,
    known_bootstrap,
    note,
    settings_with,
    write_json,
)
from partiscope.cli.shared.tables import figure, words, write_table

app = typer.Typer(
    cls=ListByDefault,
    help="List (what `partiscope groups` alone does), describe, alter (offsets), delete groups.",
)
TO_HELP: Final = f"{TARGET_HELP}."
Group = Annotated[str, typer.Argument(help="Group id.")]
Offsets = Mapping[TopicPartition, int]
Told = tuple[tuple[Fact, ...], dict[str, Any]]


def _admin(bootstrap: str | None) -> KafkaAdmin:
    return KafkaAdmin.to(known_bootstrap(settings_with(bootstrap=bootstrap)))


@app.command("list", epilog="Example: partiscope groups list --json")
def list_groups(bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Every group with its state."""

    async def run() -> tuple[ListedGroup, ...]:
        async with _admin(bootstrap) as admin:
            return await admin.groups.list_groups()

    found = asyncio.run(run())
    if as_json:
        rows = [{"group": g.group_id, "state": g.state, "type": g.group_type} for g in found]
        write_json({"groups": rows})
        return
    heads = [words("group", is_long=True), words("state"), words("type")]
    write_table(heads, [[g.group_id, g.state, g.group_type] for g in found])


@app.command("describe", epilog="Example: partiscope groups describe billing --json")
def describe(group: Group, bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Members, and committed offset, end offset and lag of every partition. Of a share group also
    its delivery limit and dead letters, of a streams group its topology."""

    async def run() -> tuple[GroupDescription, list[dict[str, Any]], Told]:
        async with _admin(bootstrap) as admin:
            described = await admin.groups.describe_group(group)
            now_ms = time.time_ns() // 1_000_000
            told = await read_facts(admin, group, described.group_type, now_ms)
            if described.group_type == "share":
                shared = await admin.groups.share_offsets(group)
                ends = await admin.offsets.list_offsets(list(shared))
                at = {key: ends[key].offset for key in shared}
                return described, share_rows(shared, at), told
            # Committed offsets first, ends after: lag can then never come out negative.
            committed = await admin.groups.committed_offsets(group)
            owners = {key: m.client_id for m in described.members for key in m.assignment}
            keys = list({**committed, **owners})
            first = await admin.offsets.list_offsets(keys, OffsetSpec.EARLIEST)
            end = await admin.offsets.list_offsets(keys)
            bounds = {key: (first[key].offset, end[key].offset) for key in keys}
            return described, described_rows(committed, owners, bounds), told

    described, rows, (facts, document) = asyncio.run(run())
    if as_json:
        write_json({**_described_head(described), **document, "partitions": rows})
        return
    note(_described_note(described))
    lags = {TopicPartition(it["topic"], it["partition"]): it["lag"] or 0 for it in rows}
    for member in member_rows(described, lags):
        note(f"member: {member_words(member)}")
    for fact in facts:
        note(f"{fact.title}: {fact.text}")
    heads = _SHARE_HEADS if described.group_type == "share" else _HEADS
    cells = [["–" if row[name] is None else str(row[name]) for name in heads] for row in rows]
    write_table(list(heads.values()), cells)


_HEADS: Final = {
    "topic": words("topic", is_long=True),
    "partition": figure("partition"),
    "committed": figure("committed", rank=2),
    "end": figure("end", rank=3),
    "lag": figure("lag"),
    "to_read": figure("to read", rank=2),
    "note": words("note", is_long=True),
    "client": words("client", rank=2, is_long=True),
}
_SHARE_HEADS: Final = {
    "topic": words("topic", is_long=True),
    "partition": figure("partition"),
    "start": figure("start", rank=2),
    "end": figure("end", rank=3),
    "lag": figure("lag"),
    "note": words("note", is_long=True),
}


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


def share_rows(
    offsets: Mapping[TopicPartition, ShareOffset], ends: Offsets
) -> list[dict[str, Any]]:
    """Where a share group stands, most lag first. A lag that no broker tells stays unknown:
    records beyond the start may be acknowledged already."""
    rows = []
    for key, offset in offsets.items():
        most = None if offset.start is None else max(0, ends[key] - offset.start)
        is_bounded = offset.lag is None and most is not None
        rows.append(
            {
                "topic": key.topic,
                "partition": key.partition,
                "start": offset.start,
                "end": ends[key],
                "lag": offset.lag,
                "note": f"lag unknown, at most {most}" if is_bounded else None,
            }
        )
    return sorted(rows, key=lambda row: (-(row["lag"] or 0), row["topic"], row["partition"]))


def described_rows(
    committed: Offsets,
    owners: Mapping[TopicPartition, str],
    bounds: Mapping[TopicPartition, tuple[int, int]],
) -> list[dict[str, Any]]:
    """Committed offsets and owners of a group: the worst first, then the most lag.

    ``bounds``: first offset and end of each log. Without a commit, and of one beyond the end,
    there is no lag. Records to read are those still there: without a commit the whole log.
    """
    rows = []
    for key, (first, end) in bounds.items():
        at = committed.get(key)
        is_beyond = at is not None and at > end
        rows.append(
            {
                "topic": key.topic,
                "partition": key.partition,
                "committed": at,
                "end": end,
                "lag": None if at is None or is_beyond else end - at,
                "to_read": 0 if is_beyond else end - max(first, at or 0),
                "note": _commit_note(at, first, end),
                "client": owners.get(key),
            }
        )
    return sorted(rows, key=_severity)


def _commit_note(at: int | None, first: int, end: int) -> str | None:
    if at is None:
        return "no commit"
    if at > end:
        return f"committed {at - end} beyond the end; reset it"
    lost = min(first, end) - at
    return f"{lost} lost: deleted before they were read" if lost > 0 else None


def _severity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Lost and beyond the end, then without a commit but with records, then by lag."""
    is_owned = row["committed"] is None
    rank = 2 if row["note"] is None or (is_owned and not row["to_read"]) else int(is_owned)
    return rank, -(row["lag"] or 0), row["topic"], row["partition"]


@app.command("alter", epilog="Example: partiscope groups alter billing --topic orders --to 10m")
def alter(
    *,
    group: Group,
    topic: Annotated[str, typer.Option(help="Topic whose offsets to reset.")],
    to: Annotated[str, typer.Option(help=TO_HELP)],
    partitions: Partitions = "",
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Set other committed offsets of a group without members, after typing its name."""
    problem = target_problem(to)
    if problem is not None:
        raise CommandError(f"--to: {problem}", Exit.WRONG_USE)
    numbers = partition_numbers(partitions)
    asked = ResetOffsets(group=group, topic=topic, to=to, partitions=numbers, reason=reason)
    run_operations([asked], {"group": group, "topic": topic}, bootstrap=bootstrap,
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


@app.command("delete", epilog="Example: partiscope groups delete billing")
def delete(
    *,
    group: Group,
    topic: Annotated[str | None, typer.Option(help="Only its offsets of this topic.")] = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Forget a group without members and its offsets, after typing its name; with --topic only
    its offsets of that topic."""
    asked: Operation = DeleteGroup(group=group, reason=reason)
    if topic is not None:
        asked = DeleteOffsets(group=group, topic=topic, reason=reason)
    document = {"group": group} if topic is None else {"group": group, "topic": topic}
    run_operations([asked], document, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip
