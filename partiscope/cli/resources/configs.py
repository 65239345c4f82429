"""``partiscope configs``: what topics and brokers are set to, and where that comes from."""

import asyncio
from collections.abc import Mapping
from typing import Annotated

import typer

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from control.operations.catalogue.brokers.configure_broker import ALL, ConfigureBroker
from control.operations.catalogue.operation import Operation
from control.operations.catalogue.topics.configure_topic import ConfigureTopic
from control.views.tables.configs import (
    BROKER,
    CONFIGS,
    TOPIC,
    compared_columns,
    config_rows,
    differing,
    document,
    resource_text,
)
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.grammar import ListByDefault
from partiscope.cli.shared.operations import Reason, config_pairs, run_operations
from partiscope.cli.shared.options import (
    Bootstrap,
    DryRun,
    Json,
    Yes,
    known_bootstrap,
    settings_with,
    write_json,
)
from partiscope.cli.shared.tables import write_rows

app = typer.Typer(
    cls=ListByDefault,
    help="List what differs from the defaults (what `partiscope configs` alone does), describe, "
    "compare or alter those of topics and brokers.",
)
Resource = Annotated[str, typer.Argument(metavar="TOPIC|broker:ID", help="Topic or broker.")]
Named = Annotated[str, typer.Option("--filter", "-q", help="Only configs with this in their name.")]
Configs = Mapping[ConfigResource, tuple[ConfigEntry, ...]]


@app.command("list", epilog="Example: partiscope configs list --filter retention")
def list_configs(
    *,
    filter_: Named = "",
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Configs that differ from the defaults, of every topic and broker."""
    found = asyncio.run(_all(known_bootstrap(settings_with(bootstrap=bootstrap))))
    rows = [
        (resource, entry)
        for resource, entries in sorted(found.items(), key=lambda item: item[0].name)
        for entry in entries
        if not entry.is_default and filter_ in entry.name
    ]
    if as_json:
        told = [{"resource": resource_text(it), **document(it.scope, entry)} for it, entry in rows]
        write_json({"configs": told})
        return
    columns = CONFIGS.only("of", "config", "source", "value")
    write_rows(columns, [row for it, entry in rows for row in config_rows(it, [entry])])


@app.command("describe", epilog="Example: partiscope configs describe broker:101 --filter log.")
def describe(
    resource: Resource, filter_: Named = "", bootstrap: Bootstrap = None, as_json: Json = False
) -> None:
    """Every config of a topic or broker, with its value and where it comes from."""
    wanted, address = _resource(resource), known_bootstrap(settings_with(bootstrap=bootstrap))

    async def run() -> tuple[ConfigEntry, ...]:
        async with KafkaAdmin.to(address) as admin:
            return await _described(admin, wanted)

    scope = wanted.scope
    entries = [entry for entry in asyncio.run(run()) if filter_ in entry.name]
    if as_json:
        documents = [document(scope, it) for it in entries]
        write_json({"resource": resource_text(wanted), "configs": documents})
        return
    write_rows(CONFIGS.columns, config_rows(wanted, entries))


@app.command("diff", epilog="Example: partiscope configs diff orders payments")
def diff(
    resource: Resource,
    other: Annotated[
        str, typer.Argument(metavar="TOPIC|broker:ID", help="Topic or broker to compare with.")
    ],
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """The configs that two topics, or two brokers, do not have alike."""
    one, two = _resource(resource), _resource(other)
    if one.scope is not two.scope:
        raise CommandError("compare two topics or two brokers", Exit.WRONG_USE)
    address = known_bootstrap(settings_with(bootstrap=bootstrap))

    async def run() -> tuple[tuple[ConfigEntry, ...], tuple[ConfigEntry, ...]]:
        async with KafkaAdmin.to(address) as admin:
            return await _described(admin, one), await _described(admin, two)

    mine, others = asyncio.run(run())
    found = differing(mine, others)
    if as_json:
        told = [
            {"name": name, resource: it and it.value, other: than and than.value}
            for name, it, than in found
        ]
        write_json({"configs": told})
        return
    names = {name for name, *_ in found}
    rows = [row for row in config_rows(one, mine, other=others) if row.key in names]
    write_rows(compared_columns(other, own=resource), rows)


@app.command(
    "alter", epilog="Example: partiscope configs alter broker:101 --config log.cleaner.threads=2"
)
def alter(
    *,
    resource: Annotated[
        str, typer.Argument(metavar="TOPIC|broker:ID|broker:all", help="Topic or broker.")
    ],
    config: Annotated[
        list[str],
        typer.Option("--config", help="key=value, Kafka's own name; key= removes; repeatable."),
    ],
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Set configs of a topic, a broker or all brokers, or remove them (key=); others stay."""
    values = {name: value or None for name, value in config_pairs(config).items()}
    operation: Operation
    if resource == f"{BROKER}{ALL}":
        operation = ConfigureBroker(broker=ALL, configs=values, reason=reason)
    elif _resource(resource).scope is ConfigScope.BROKER:
        operation = ConfigureBroker(broker=_resource(resource).name, configs=values, reason=reason)
    else:
        operation = ConfigureTopic(topic=_resource(resource).name, configs=values, reason=reason)
    run_operations([operation], {"resource": resource}, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip


async def _described(admin: KafkaAdmin, resource: ConfigResource) -> tuple[ConfigEntry, ...]:
    """Every config, explained; a broker that is not alive is told as that."""
    if resource.scope is ConfigScope.BROKER:
        alive = [str(each.id) for each in (await admin.describe_cluster()).brokers]
        if resource.name not in alive:
            known = ", ".join(alive)
            raise CommandError(f"no broker {resource.name} is alive; {known} are", Exit.WRONG_USE)
    return await admin.describe_configs(resource, is_explained=True)


async def _all(address: str) -> Configs:
    async with KafkaAdmin.to(address) as admin:
        topics = await admin.topics()
        brokers = (await admin.describe_cluster()).brokers
        wanted = [ConfigResource(scope=ConfigScope.TOPIC, name=topic.name) for topic in topics]
        wanted += [ConfigResource(scope=ConfigScope.BROKER, name=str(each.id)) for each in brokers]
        return await admin.describe_many_configs(wanted)


def _resource(text: str) -> ConfigResource:
    if not text.startswith(BROKER):  # no topic has a colon in its name
        return ConfigResource(scope=ConfigScope.TOPIC, name=text.removeprefix(TOPIC))
    broker = text.removeprefix(BROKER)
    if not (broker.isascii() and broker.isdecimal()):
        raise CommandError(f"{text!r} is not broker:ID, such as broker:101", Exit.WRONG_USE)
    return ConfigResource(scope=ConfigScope.BROKER, name=broker)
