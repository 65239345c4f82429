"""``partiscope elect``: preferred leaders."""

import asyncio
from typing import Annotated

import typer

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import ElectionType
from control.model.ids import TopicPartition
from control.views.format import plural_text
from partiscope.cli.confirm import require_change
from partiscope.cli.exits import CommandError
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


def elect(
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Make the first replica of every partition its leader again. Nothing is asked."""
    if not dry_run:
        require_change(bootstrap)

    async def run() -> tuple[list[TopicPartition], dict[TopicPartition, Exception]]:
        settings = settings_with(bootstrap=bootstrap)
        async with KafkaAdmin.to(known_bootstrap(settings)) as admin:
            found = await admin.topics(None if topic is None else [topic])
            led = [partition for each in found for partition in each.partitions]
            others = [it.key for it in led if it.replicas and it.leader != it.replicas[0]]
            if dry_run or not led:
                return others, {}
            wanted = None if topic is None else [partition.key for partition in led]
            return others, dict(await admin.elect_leaders(wanted, ElectionType.PREFERRED))

    others, refused = asyncio.run(run())
    if as_json:
        write_json({
            "dry_run": dry_run,
            "elected": [str(key) for key in others if key not in refused],
            "refused": {str(key): str(error) for key, error in refused.items()},
        })  # fmt: skip
    if refused:
        lines = "\n".join(f"  {key}: {error}" for key, error in refused.items())
        raise CommandError(f"{len(refused)} partitions keep their leader:\n{lines}")
    if dry_run:
        note(f"{plural_text(len(others), 'partition')} would get the preferred leader: "
             f"{', '.join(map(str, others)) or 'none'}; nothing was changed")  # fmt: skip
    else:
        note("every preferred leader leads")
