"""``partiscope topics``: list, describe, create, alter, delete."""

import asyncio
from typing import Annotated, Any

import typer

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import (
    ConfigResource,
    ConfigScope,
    TopicMetadata,
)
from control.model.ids import partition_numbers
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.topics.add_partitions import AddPartitions
from control.operations.catalogue.topics.configure_topic import ConfigureTopic
from control.operations.catalogue.topics.create_topic import CreateTopic, Placing
from control.operations.catalogue.topics.delete_records import (
    BEFORE_HELP,
    DeleteRecords,
    before_problem,
)
from control.operations.catalogue.topics.topic_templates import TEMPLATE_HELP, Template
from control.operations.checks import FACTOR_MAX, PARTITIONS_MAX
from control.views.snapshots.snapshot import topic_page
from control.views.tables.topics import (
    LISTED_TOPICS,
    TOPIC_PARTITIONS,
    listed_topic_rows,
    topic_partition_rows,
)
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
from partiscope.cli.shared.operations import (
    Partitions,
    Reason,
    config_pairs,
    run_operations,
    several,
)
from partiscope.cli.shared.options import (
    Bootstrap,
    DryRun,
    Json,
    Store,
    Yes,
    known_bootstrap,
    settings_with,
    write_json,
    write_lines,
)
from partiscope.cli.shared.tables import write_rows
from partiscope.cli.shared.watching import watchable

app = typer.Typer(
    cls=ListByDefault,
    help="List (what `partiscope topics` alone does), describe, create, alter, delete topics.",
)
Topic = Annotated[str, typer.Argument(help="Name of the topic.")]
Config = Annotated[
    list[str] | None, typer.Option("--config", help="key=value, Kafka's own name; repeatable.")
]


def _admin(bootstrap: str | None) -> KafkaAdmin:
    return KafkaAdmin.to(known_bootstrap(settings_with(bootstrap=bootstrap)))


@app.command("list", epilog="Example: partiscope topics list --sort -lag --filter 'bytes>1GiB'")
@watchable()
def list_topics(
    *,
    filter_: Filter = "",
    sort: Sort = "",
    columns: Columns = "",
    limit: Limit = None,
    at: At = None,
    internal: Annotated[bool, typer.Option("--internal", help="Internal ones too.")] = False,
    bootstrap: Bootstrap = None,
    store: Store = None,
    csv: Csv = False,
    as_json: Json = False,
) -> None:
    """Every topic with its partitions and replication factor; with a filter, an order, columns,
    a limit, CSV or a time also status, bytes, rates and lag, as the screens show them."""
    wish = Wish(name="topics", filter=filter_, sort=sort, columns=columns, limit=limit, csv=csv,
                as_json=as_json, hides_internal=not internal)  # fmt: skip
    if at or wish.needs_figures:
        snapshot = snapshot_for(bootstrap=bootstrap, store=store, at=at)
        show_list(lambda query: topic_page(snapshot, query), wish)
        return

    async def run() -> tuple[TopicMetadata, ...]:
        async with _admin(bootstrap) as admin:
            return await admin.topics()

    found = asyncio.run(run())
    shown = [topic for topic in found if internal or not topic.name.startswith("__")]
    if as_json:
        write_json({"topics": [_topic_document(topic) for topic in shown]})
        return
    write_rows(LISTED_TOPICS.columns, listed_topic_rows(shown))


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
        write_lines(f"{name}={value}")
    write_rows(TOPIC_PARTITIONS.columns, topic_partition_rows(found))


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
    like: Annotated[
        str, typer.Option(help="Topic to copy all other values from.", show_default=False)
    ] = "",
    template: Annotated[
        Template, typer.Option(help=f"Configs that belong together. {TEMPLATE_HELP}.")
    ] = Template.NONE,
    placing: Annotated[
        Placing,
        typer.Option(
            help="Replicas over all racks, then on brokers with the fewest; or as Kafka chooses."
        ),
    ] = Placing.EVENLY,
    reason: Reason = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--validate-only", help="Only check; change nothing.")
    ] = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Create a topic; returns when every partition has a leader. Nothing is asked."""
    asked = CreateTopic(
        topic=topic,
        partitions=partitions,
        replication_factor=replication_factor,
        configs=config_pairs(config),
        like=like,
        template=template,
        placing=placing,
        reason=reason,
    )
    run_operations([asked], {"topic": topic}, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip


@app.command("alter", epilog="Example: partiscope topics alter orders --config retention.ms=60000")
def alter(
    *,
    topic: Topic,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=PARTITIONS_MAX, help="New number of partitions.")
    ] = None,
    config: Config = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Add partitions; set single configs (key=value) or remove them (key=); others stay.

    With more partitions, keys land on other partitions from then on; that cannot be undone.
    """
    configs = {name: value or None for name, value in config_pairs(config).items()}
    if partitions is None and not configs:
        raise CommandError("name what to alter: --partitions N, --config key=value", Exit.WRONG_USE)
    asked: list[Operation] = []
    if configs:
        asked.append(ConfigureTopic(topic=topic, configs=configs, reason=reason))
    if partitions is not None:
        asked.append(AddPartitions(topic=topic, partitions=partitions, reason=reason))
    run_operations(asked, {"topic": topic}, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip


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


@app.command("delete", epilog="Example: partiscope topics delete orders payments")
def delete(
    *,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC…", help="Their names.")],
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Delete topics and their data, after typing the name, or how many (`3 topics`)."""
    asked, about = several("delete_topic", topics, {"reason": reason})
    run_operations([asked], about, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip


@app.command(
    "delete-records", epilog="Example: partiscope topics delete-records orders --before 7d"
)
def delete_records(
    *,
    topic: Topic,
    before: Annotated[str, typer.Option(help=f"Up to where: {BEFORE_HELP}.")],
    partitions: Partitions = "",
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Delete records before an offset or a time, after typing the topic's name."""
    problem = before_problem(before)
    if problem is not None:
        raise CommandError(f"--before {before!r}: {problem}", Exit.WRONG_USE)
    numbers = partition_numbers(partitions)
    asked = DeleteRecords(topic=topic, before=before, partitions=numbers, reason=reason)
    run_operations([asked], {"topic": topic}, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip


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
