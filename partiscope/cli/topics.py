"""``partiscope topics``: list, describe, create, alter, delete."""

import asyncio
import sys
from difflib import get_close_matches
from typing import Annotated, Any, Final

import typer

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import (
    CLUSTERS_OWN,
    ConfigEntry,
    ConfigResource,
    ConfigScope,
    NewTopic,
    TopicMetadata,
)
from control.operations.guard import check_configs, check_topic, topic_doubt
from control.views.format import plural_text
from control.views.printable import visible
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

app = typer.Typer(
    cls=ListByDefault,
    help="List (what `partiscope topics` alone does), describe, create, alter, delete topics.",
)
PARTITIONS_MAX: Final = 1_000_000
FACTOR_MAX: Final = 32_767
Topic = Annotated[str, typer.Argument(help="Name of the topic.")]
Config = Annotated[
    list[str] | None, typer.Option("--config", help="key=value, Kafka's own name; repeatable.")
]


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
        [words("topic", is_long=True), figure("partitions"), figure("replication factor")],
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
        sys.stdout.write(f"{visible(name)}={visible(str(value))}\n")
    write_table(
        [figure("partition"), figure("leader"), words("replicas"), words("isr", rank=2)],
        [
            [str(p.partition), str(p.leader), _ids(p.replicas), _ids(p.isr)]
            for p in found.partitions
        ],
    )


@app.command("create", epilog="Example: partiscope topics create orders --partitions 6")
def create(
    *,
    topic: Topic,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1, max=PARTITIONS_MAX, help="How many.  [default: num.partitions of the cluster]"
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            min=-1,
            max=FACTOR_MAX,
            help="Replicas of each.  [default: default.replication.factor of the cluster]",
        ),
    ] = None,
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--validate-only", help="Only check; change nothing.")
    ] = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Create a topic; returns when every partition has a leader. Nothing is asked."""
    check_topic("create_topic", topic)
    if not dry_run:
        require_change(bootstrap)
    new = NewTopic(
        name=topic,
        partitions=CLUSTERS_OWN if partitions is None else partitions,
        replication_factor=CLUSTERS_OWN if replication_factor is None else replication_factor,
        configs=_configs(config),
    )

    async def run() -> TopicMetadata | None:
        async with _admin(bootstrap) as admin:
            await admin.create_topic(new, validate_only=dry_run)
            return None if dry_run else (await admin.topics([topic]))[0]

    made = asyncio.run(run())
    if as_json:
        own = {"topic": topic} if made is None else _topic_document(made)
        write_json({**own, "dry_run": dry_run})
    elif made is None:
        note(f"could create {topic}; nothing was changed")
    else:
        counted = plural_text(len(made.partitions), "partition")
        note(f"created {topic}: {counted}, replication factor {_factor(made)}")


@app.command("alter", epilog="Example: partiscope topics alter orders --config retention.ms=60000")
def alter(
    *,
    topic: Topic,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=PARTITIONS_MAX, help="How many afterwards.")
    ] = None,
    config: Config = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Add partitions; set single configs (key=value) or remove them (key=); others stay.

    With more partitions, keys land on other partitions from then on; that cannot be undone.
    """
    wanted = {name: value or None for name, value in _configs(config).items()}
    if partitions is None and not wanted:
        raise CommandError("name what to alter: --partitions N, --config key=value", Exit.WRONG_USE)
    if partitions is not None:
        check_topic("add_partitions", topic)
    check_configs(topic, wanted)
    if not dry_run:
        require_change(bootstrap)
    if doubt := topic_doubt(topic):
        note(doubt)
    now = asyncio.run(_now(bootstrap, topic))
    changes = _changes(now, partitions, wanted)
    if as_json:
        write_json({"topic": topic, "dry_run": dry_run, "changes": changes})
    else:
        rows = [[name, str(each["now"]), str(each["then"])] for name, each in changes.items()]
        heads = [words(f"of {topic}", is_long=True), words("now", is_long=True)]
        write_table([*heads, words("then", is_long=True)], rows)
    if dry_run:
        note("nothing was changed")
        return
    if partitions is not None:
        what = f"{topic} gets {partitions} partitions: keys may move, and it cannot be undone"
        require_typed(topic, what, is_confirmed=yes)
    asyncio.run(_alter(bootstrap, topic, partitions, wanted))
    note(f"altered {topic}")


Now = tuple[TopicMetadata, dict[str, ConfigEntry]]


async def _now(bootstrap: str | None, topic: str) -> Now:
    async with _admin(bootstrap) as admin:
        (found,) = await admin.topics([topic])
        resource = ConfigResource(scope=ConfigScope.TOPIC, name=topic)
        return found, {entry.name: entry for entry in await admin.describe_configs(resource)}


def _changes(now: Now, partitions: int | None, wanted: dict[str, str | None]) -> dict[str, Any]:
    """What becomes of what.

    Raises:
        CommandError: status 2; fewer partitions than there are, or a config that there is not.
    """
    topic, configs = now
    changes: dict[str, Any] = {}
    if partitions is not None:
        count = len(topic.partitions)
        if partitions <= count:
            raise CommandError(
                f"{topic.name} has {plural_text(count, 'partition')}, and their number only grows: "
                f"name one above {count}",
                Exit.WRONG_USE,
            )
        changes["partitions"] = {"now": count, "then": partitions}
    for name, value in wanted.items():
        if configs and name not in configs:
            near = get_close_matches(name, configs, n=1)
            meant = f"; did you mean {near[0]}?" if near else "; `configs describe` lists them"
            raise CommandError(f"unknown config {name}{meant}", Exit.WRONG_USE)
        before = configs[name].value if name in configs else None
        changes[name] = {"now": before, "then": "default" if value is None else value}
    return changes


async def _alter(
    bootstrap: str | None, topic: str, partitions: int | None, wanted: dict[str, str | None]
) -> None:
    async with _admin(bootstrap) as admin:
        if wanted:
            resource = ConfigResource(scope=ConfigScope.TOPIC, name=topic)
            await admin.alter_configs(resource, wanted)
        if partitions is not None:
            await admin.create_partitions(topic, partitions)


@app.command("add-partitions", hidden=True)
def add_partitions(
    topic: Topic,
    count: Annotated[int, typer.Argument(min=1, help="Number of partitions afterwards.")],
    bootstrap: Bootstrap = None,
    yes: Yes = False,
) -> None:
    """`topics alter --partitions` by its older name."""
    alter(topic=topic, partitions=count, bootstrap=bootstrap, yes=yes)


@app.command("configure", hidden=True)
def configure(
    topic: Topic,
    changes: Annotated[list[str], typer.Argument(help="key=value sets, key= removes.")],
    bootstrap: Bootstrap = None,
) -> None:
    """`topics alter --config` by its older name."""
    alter(topic=topic, config=changes, bootstrap=bootstrap)


@app.command("delete", epilog="Example: partiscope topics delete orders")
def delete(
    *,
    topic: Topic,
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Delete a topic and its data, after typing its name."""
    check_topic("delete", topic)
    if not dry_run:
        require_change(bootstrap)
    if doubt := topic_doubt(topic):
        note(doubt)

    async def run() -> TopicMetadata:
        async with _admin(bootstrap) as admin:
            (found,) = await admin.topics([topic])
            if not dry_run:
                await admin.delete_topic(topic)
            return found

    if not dry_run:
        what = f"{topic} and all its records will be gone for ever"
        require_typed(topic, what, is_confirmed=yes)
    found = asyncio.run(run())
    if as_json:
        write_json({**_topic_document(found), "dry_run": dry_run})
    words = "would delete" if dry_run else "deleted"
    after = "; nothing was changed" if dry_run else ""
    note(f"{words} {topic}, {plural_text(len(found.partitions), 'partition')}{after}")


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
