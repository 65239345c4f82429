"""``partiscope groups``: list, describe, alter offsets, delete."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import typer

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import GroupDescription, ListedGroup, OffsetSpec
from control.model.ids import TopicPartition
from control.views.format import plural_text
from partiscope.cli.confirm import require_change, require_typed
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.grammar import ListByDefault
from partiscope.cli.options import (
    Bootstrap,
    DryRun,
    Json,
    Yes,
    known_bootstrap,
    note,
    settings_with,
    write_json,
)
from partiscope.cli.tables import figure, words, write_table
from partiscope.cli.words import moment_of

app = typer.Typer(
    cls=ListByDefault,
    help="List (what `partiscope groups` alone does), describe, alter (offsets), delete groups.",
)
TO_HELP: Final = "earliest, latest, an offset, +N or -N from now, or a time such as 10m (ago)."
_NUMBER: Final = re.compile(r"[+-]?\d{1,18}")
Group = Annotated[str, typer.Argument(help="Group id.")]
Offsets = Mapping[TopicPartition, int]


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
    """Members, and committed offset, end offset and lag of every partition."""

    async def run() -> tuple[GroupDescription, list[dict[str, Any]]]:
        async with _admin(bootstrap) as admin:
            described = await admin.groups.describe_group(group)
            # Committed offsets first, ends after: lag can then never come out negative.
            committed = await admin.groups.committed_offsets(group)
            owners = {key: m.client_id for m in described.members for key in m.assignment}
            keys = list({**committed, **owners})
            first = await admin.offsets.list_offsets(keys, OffsetSpec.EARLIEST)
            end = await admin.offsets.list_offsets(keys)
            bounds = {key: (first[key].offset, end[key].offset) for key in keys}
            return described, described_rows(committed, owners, bounds)

    described, rows = asyncio.run(run())
    if as_json:
        members = [{"member": m.member_id, "client": m.client_id} for m in described.members]
        head = {"group": group, "state": described.state, "members": members}
        write_json({**head, "partitions": rows})
        return
    note(f"{group}: {described.state}, {plural_text(len(described.members), 'member')}")
    heads = {
        "topic": words("topic", is_long=True),
        "partition": figure("partition"),
        "committed": figure("committed", rank=2),
        "end": figure("end", rank=3),
        "lag": figure("lag"),
        "to_read": figure("to read", rank=2),
        "note": words("note", is_long=True),
        "client": words("client", rank=2, is_long=True),
    }
    write_table(list(heads.values()), _cells(rows, heads))


def described_rows(
    committed: Offsets,
    owners: Mapping[TopicPartition, str],
    bounds: Mapping[TopicPartition, tuple[int, int]],
) -> list[dict[str, Any]]:
    """What a group has committed and what its members own: what is wrong first, then most lag.

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
    topic: Annotated[str, typer.Option(help="Whose partitions.")],
    to: Annotated[str, typer.Option(help=TO_HELP)],
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Set other committed offsets of a group without members, after typing its name."""
    if not dry_run:
        require_change(bootstrap)
    rows = _reset(group, topic, to, bootstrap=bootstrap, does_it=False)
    if as_json:
        document = {"group": group, "topic": topic, "executed": not dry_run, "partitions": rows}
        write_json(document)
    else:
        _show_reset(rows)
    if dry_run:
        note("nothing was changed")
        return
    require_typed(group, f"{group} will read {topic} from other offsets", is_confirmed=yes)
    _reset(group, topic, to, bootstrap=bootstrap, does_it=True)
    note("done")


@app.command("reset", hidden=True)
def reset(
    *,
    group: Group,
    topic: Annotated[str, typer.Option(help="Whose partitions.")],
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


def _show_reset(rows: list[dict[str, Any]]) -> None:
    heads = ["partition", "now", "then"]
    write_table(list(map(figure, heads)), _cells(rows, heads))


def _cells(rows: list[dict[str, Any]], names: Iterable[str]) -> list[list[str]]:
    return [["–" if row[name] is None else str(row[name]) for name in names] for row in rows]


def _reset(
    group: str, topic: str, to: str, *, bootstrap: str | None, does_it: bool
) -> list[dict[str, Any]]:
    async def run() -> list[dict[str, Any]]:
        async with _admin(bootstrap) as admin:
            before, after = await _new_offsets(admin, group, topic, to)
            if does_it:
                await admin.groups.commit_offsets(group, after)
            return [
                {"partition": key.partition, "now": before.get(key), "then": offset}
                for key, offset in sorted(after.items())
            ]

    return asyncio.run(run())


async def _new_offsets(
    admin: KafkaAdmin, group: str, topic: str, to: str
) -> tuple[Offsets, Offsets]:
    (found,) = await admin.topics([topic])
    keys = [partition.key for partition in found.partitions]
    before = await admin.groups.committed_offsets(group)
    first = await admin.offsets.list_offsets(keys, OffsetSpec.EARLIEST)
    end = await admin.offsets.list_offsets(keys)
    at_time = {}
    if to not in ("earliest", "latest") and not _NUMBER.fullmatch(to):
        at_time = await admin.offsets.list_offsets(keys, moment_of(to, "--to"))

    def wanted(key: TopicPartition) -> int:
        if to in ("earliest", "latest"):
            return (first if to == "earliest" else end)[key].offset
        if key in at_time:
            found = at_time[key].offset
            return end[key].offset if found < 0 else found
        number = int(to)
        return before.get(key, end[key].offset) + number if to[0] in "+-" else number

    after = {key: min(max(wanted(key), first[key].offset), end[key].offset) for key in keys}
    return before, after


@app.command("delete", epilog="Example: partiscope groups delete billing")
def delete(
    *,
    group: Group,
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Forget a group without members and its offsets, after typing its name."""
    if not dry_run:
        require_change(bootstrap)
        require_typed(group, f"the offsets of {group} will be gone for ever", is_confirmed=yes)

    async def run() -> GroupDescription:
        async with _admin(bootstrap) as admin:
            found = await admin.groups.describe_group(group)
            if not dry_run:
                await admin.groups.delete_group(group)
            return found

    found = asyncio.run(run())
    if dry_run and found.members:
        raise CommandError(
            f"{group} has {len(found.members)} members: stop its consumers first", Exit.REFUSED
        )
    if as_json:
        write_json({"group": group, "dry_run": dry_run})
    note(f"would delete {group}; nothing was changed" if dry_run else f"deleted {group}")
