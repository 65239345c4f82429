"""``partiscope groups``: list, describe, reset offsets, delete."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import GroupDescription, ListedGroup, OffsetSpec
from control.model.ids import TopicPartition
from partiscope.cli.confirm import require_change, require_typed
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import Bootstrap, Json, known_bootstrap, note, settings_with, write_json
from partiscope.cli.tables import write_table

app = typer.Typer(help="List and describe groups, reset their offsets.", no_args_is_help=True)
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
    write_table(["group", "state", "type"], [[g.group_id, g.state, g.group_type] for g in found])


@app.command("describe", epilog="Example: partiscope groups describe billing --json")
def describe(group: Group, bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Members, and committed offset, end offset and lag of every partition."""

    async def run() -> tuple[GroupDescription, Offsets, Offsets]:
        async with _admin(bootstrap) as admin:
            described = await admin.groups.describe_group(group)
            # Committed offsets first, ends after: lag can then never come out negative.
            committed = await admin.groups.committed_offsets(group)
            ends = await admin.offsets.list_offsets(list(committed))
            return described, committed, {key: at.offset for key, at in ends.items()}

    described, committed, ends = asyncio.run(run())
    owners = {key: m.client_id for m in described.members for key in m.assignment}
    rows = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "committed": offset,
            "end": ends[key],
            "lag": max(0, ends[key] - offset),
            "client": owners.get(key),
        }
        for key, offset in sorted(committed.items())
    ]
    if as_json:
        members = [{"member": m.member_id, "client": m.client_id} for m in described.members]
        head = {"group": group, "state": described.state, "members": members}
        write_json({**head, "partitions": rows})
        return
    note(f"{group}: {described.state}, {len(described.members)} members")
    heads = ["topic", "partition", "committed", "end", "lag", "client"]
    write_table(heads, [["–" if row[h] is None else str(row[h]) for h in heads] for row in rows])


@app.command("reset", epilog="Example: partiscope groups reset billing --topic orders --to latest")
def reset(
    *,
    group: Group,
    topic: Annotated[str, typer.Option(help="Whose partitions.")],
    to: Annotated[str, typer.Option(help="earliest, latest, an offset, or +N/-N from now.")],
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without it nothing is changed.")
    ] = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show, and with --execute set, new committed offsets of a group without members."""

    async def run() -> list[dict[str, Any]]:
        async with _admin(bootstrap) as admin:
            before, after = await _new_offsets(admin, group, topic, to)
            if execute:
                await admin.groups.commit_offsets(group, after)
            return [
                {"partition": key.partition, "now": before.get(key), "then": offset}
                for key, offset in sorted(after.items())
            ]

    if execute:
        require_change(bootstrap)
    rows = asyncio.run(run())
    if as_json:
        document = {"group": group, "topic": topic, "executed": execute, "partitions": rows}
        write_json(document)
        return
    heads = ["partition", "now", "then"]
    write_table(heads, [["–" if row[h] is None else str(row[h]) for h in heads] for row in rows])
    note("done" if execute else "nothing was changed; --execute does it")


async def _new_offsets(
    admin: KafkaAdmin, group: str, topic: str, to: str
) -> tuple[Offsets, Offsets]:
    (found,) = await admin.topics([topic])
    keys = [partition.key for partition in found.partitions]
    before = await admin.groups.committed_offsets(group)
    first = await admin.offsets.list_offsets(keys, OffsetSpec.EARLIEST)
    end = await admin.offsets.list_offsets(keys)

    def wanted(key: TopicPartition) -> int:
        if to in ("earliest", "latest"):
            return (first if to == "earliest" else end)[key].offset
        try:
            number = int(to)
        except ValueError as error:
            raise CommandError(
                f"--to {to!r} is not earliest, latest, an offset or +N/-N", Exit.WRONG_USE
            ) from error
        return before.get(key, end[key].offset) + number if to[0] in "+-" else number

    after = {key: min(max(wanted(key), first[key].offset), end[key].offset) for key in keys}
    return before, after


@app.command("delete", epilog="Example: partiscope groups delete billing")
def delete(
    group: Group,
    bootstrap: Bootstrap = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget a group without members and its offsets, after typing its name."""
    require_change(bootstrap)
    require_typed(group, f"the offsets of {group} will be gone for ever", is_confirmed=yes)

    async def run() -> None:
        async with _admin(bootstrap) as admin:
            await admin.groups.delete_group(group)

    asyncio.run(run())
    note(f"deleted {group}")
