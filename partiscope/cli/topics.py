"""``partiscope topics``: list, describe, create, add partitions, configure, delete."""

import asyncio
import sys
from typing import Annotated, Any

import typer

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import ConfigResource, ConfigScope, NewTopic, TopicMetadata
from control.operations.guard import check_configs, check_topic, topic_doubt
from partiscope.cli.confirm import require_change, require_typed
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import Bootstrap, Json, known_bootstrap, note, settings_with, write_json
from partiscope.cli.tables import write_table

app = typer.Typer(help="List, describe, create, alter, delete topics.", no_args_is_help=True)
Topic = Annotated[str, typer.Argument(help="Name of the topic.")]
Config = Annotated[
    list[str] | None, typer.Option("--config", help="key=value, Kafka's own name; repeatable.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def _admin(bootstrap: str | None) -> KafkaAdmin:
    return KafkaAdmin.to(known_bootstrap(settings_with(bootstrap=bootstrap)))


@app.command("list", epilog="Example: partiscope topics list --json")
def list_topics(
    bootstrap: Bootstrap = None,
    internal: Annotated[bool, typer.Option("--internal", help="Internal ones too.")] = False,
    as_json: Json = False,
) -> None:
    """Every topic with its partitions and replication factor."""

    async def run() -> tuple[TopicMetadata, ...]:
        async with _admin(bootstrap) as admin:
            return await admin.topics()

    found = asyncio.run(run())
    shown = [topic for topic in found if internal or not topic.name.startswith("__")]
    if as_json:
        write_json({"topics": [_topic_document(topic) for topic in shown]})
        return
    write_table(
        ["topic", "partitions", "replication factor"],
        [[t.name, str(len(t.partitions)), str(_factor(t))] for t in shown],
    )


@app.command("describe", epilog="Example: partiscope topics describe orders")
def describe(topic: Topic, bootstrap: Bootstrap = None, as_json: Json = False) -> None:
    """Partitions with leader, replicas and ISR, and the configs that differ from the default."""

    async def run() -> tuple[TopicMetadata, dict[str, str | None]]:
        async with _admin(bootstrap) as admin:
            (found,) = await admin.topics([topic])
            configs = await admin.describe_configs(
                ConfigResource(scope=ConfigScope.TOPIC, name=topic)
            )
            return found, {entry.name: entry.value for entry in configs if not entry.is_default}

    found, configs = asyncio.run(run())
    if as_json:
        write_json({**_topic_document(found), "configs": configs})
        return
    for name, value in configs.items():
        sys.stdout.write(f"{name}={value}\n")
    write_table(
        ["partition", "leader", "replicas", "isr"],
        [
            [str(p.partition), str(p.leader), _ids(p.replicas), _ids(p.isr)]
            for p in found.partitions
        ],
    )


@app.command("create", epilog="Example: partiscope topics create orders --partitions 6")
def create(
    *,
    topic: Topic,
    partitions: Annotated[int, typer.Option(min=1, help="Number of partitions.")] = 1,
    replication_factor: Annotated[
        int, typer.Option(help="Replicas of each; -1: the cluster's default.")
    ] = -1,
    config: Config = None,
    validate_only: Annotated[bool, typer.Option("--validate-only", help="Only check.")] = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Create a topic; returns when every partition has a leader."""
    check_topic("create_topic", topic)
    require_change(bootstrap)
    new = NewTopic(
        name=topic,
        partitions=partitions,
        replication_factor=replication_factor,
        configs=_configs(config),
    )

    async def run() -> None:
        async with _admin(bootstrap) as admin:
            await admin.create_topic(new, validate_only=validate_only)

    asyncio.run(run())
    note(f"{'could create' if validate_only else 'created'} {topic}")


@app.command("add-partitions", epilog="Example: partiscope topics add-partitions orders 10")
def add_partitions(
    topic: Topic,
    count: Annotated[int, typer.Argument(min=1, help="Number of partitions afterwards.")],
    bootstrap: Bootstrap = None,
    yes: Yes = False,
) -> None:
    """Raise the number of partitions. Keys may land on other partitions from then on."""
    check_topic("add_partitions", topic)
    require_change(bootstrap)
    what = f"{topic} gets {count} partitions: keys may move, and it cannot be undone"
    require_typed(topic, what, is_confirmed=yes)

    async def run() -> None:
        async with _admin(bootstrap) as admin:
            await admin.create_partitions(topic, count)

    asyncio.run(run())
    note(f"{topic} has {count} partitions")


@app.command("configure", epilog="Example: partiscope topics configure orders retention.ms=3600000")
def configure(
    topic: Topic,
    changes: Annotated[list[str], typer.Argument(help="key=value sets, key= removes.")],
    bootstrap: Bootstrap = None,
) -> None:
    """Set or remove single configs; the others stay."""
    wanted = {name: value or None for name, value in _configs(changes).items()}
    check_configs(topic, wanted)
    require_change(bootstrap)
    if doubt := topic_doubt(topic):
        note(doubt)

    async def run() -> None:
        async with _admin(bootstrap) as admin:
            await admin.alter_configs(ConfigResource(scope=ConfigScope.TOPIC, name=topic), wanted)

    asyncio.run(run())
    note(f"configured {topic}: {', '.join(changes)}")


@app.command("delete", epilog="Example: partiscope topics delete orders")
def delete(topic: Topic, bootstrap: Bootstrap = None, yes: Yes = False) -> None:
    """Delete a topic and its data, after typing its name."""
    check_topic("delete", topic)
    require_change(bootstrap)
    if doubt := topic_doubt(topic):
        note(doubt)
    what = f"{topic} and all its records will be gone for ever"
    require_typed(topic, what, is_confirmed=yes)

    async def run() -> None:
        async with _admin(bootstrap) as admin:
            await admin.delete_topic(topic)

    asyncio.run(run())
    note(f"deleted {topic}")


def _configs(pairs: list[str] | None) -> dict[str, str]:
    for pair in pairs or ():
        if "=" not in pair:
            raise CommandError(f"{pair!r} is not key=value", Exit.WRONG_USE)
    split = (pair.partition("=") for pair in pairs or ())
    return {name: value for name, _, value in split}


def _topic_document(topic: TopicMetadata) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "replication_factor": _factor(topic),
        "partitions": [
            {
                "partition": item.partition,
                "leader": item.leader,
                "replicas": item.replicas,
                "isr": item.isr,
            }
            for item in topic.partitions
        ],
    }


def _factor(topic: TopicMetadata) -> int:
    return max((len(item.target_replicas) for item in topic.partitions), default=0)


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
