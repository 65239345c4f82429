"""``partiscope elect``: preferred leaders."""

import asyncio
from typing import Annotated

import typer

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import ElectionType
from control.model.ids import TopicPartition
from partiscope.cli.confirm import require_change
from partiscope.cli.exits import CommandError
from partiscope.cli.options import Bootstrap, known_bootstrap, note, settings_with


def elect(
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Make the first replica of every partition its leader again."""
    require_change(bootstrap)

    async def run() -> dict[TopicPartition, Exception]:
        settings = settings_with(bootstrap=bootstrap)
        async with KafkaAdmin.to(known_bootstrap(settings)) as admin:
            partitions = None
            if topic is not None:
                (found,) = await admin.topics([topic])
                partitions = [partition.key for partition in found.partitions]
            return dict(await admin.elect_leaders(partitions, ElectionType.PREFERRED))

    refused = asyncio.run(run())
    if refused:
        lines = "\n".join(f"  {key}: {error}" for key, error in refused.items())
        raise CommandError(f"{len(refused)} partitions keep their leader:\n{lines}")
    note("every preferred leader leads")
