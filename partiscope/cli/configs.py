"""``partiscope configs``: what topics and brokers are set to, and where that comes from."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from control.kafka.admin import KafkaAdmin
from control.kafka.ports import ConfigEntry, ConfigResource, ConfigScope
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.grammar import ListByDefault
from partiscope.cli.options import Bootstrap, Json, known_bootstrap, settings_with, write_json
from partiscope.cli.tables import words, write_table

app = typer.Typer(
    cls=ListByDefault,
    help="List what differs from the defaults (what `partiscope configs` alone does), or describe "
    "a topic or broker. `topics alter --config` changes it.",
)
Resource = Annotated[str, typer.Argument(metavar="TOPIC|broker:ID", help="Whose configs.")]
Named = Annotated[str, typer.Option("--filter", "-q", help="Only configs with this in their name.")]
BROKER: Final = "broker:"
SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "file",
    5: "default",
}
HIDDEN: Final = "(hidden)"
_HEADS: Final = (words("config", is_long=True), words("from"), words("value", is_long=True))
Configs = Mapping[ConfigResource, tuple[ConfigEntry, ...]]


@app.command("list", epilog="Example: partiscope configs list --filter retention")
def list_configs(
    *,
    filter_: Named = "",
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """What differs from the defaults, of every topic and broker."""
    found = asyncio.run(_all(known_bootstrap(settings_with(bootstrap=bootstrap))))
    rows = [
        (resource, entry)
        for resource, entries in sorted(found.items(), key=lambda item: item[0].name)
        for entry in entries
        if not entry.is_default and filter_ in entry.name
    ]
    if as_json:
        told = [{"resource": _name(it), **_document(entry)} for it, entry in rows]
        write_json({"configs": told})
        return
    write_table(
        [words("of", is_long=True), *_HEADS],
        [[_name(it), entry.name, _source(entry), _value(entry)] for it, entry in rows],
    )


@app.command("describe", epilog="Example: partiscope configs describe broker:101 --filter log.")
def describe(
    resource: Resource, filter_: Named = "", bootstrap: Bootstrap = None, as_json: Json = False
) -> None:
    """Every config of a topic or broker, with its value and where it comes from."""
    wanted, address = _resource(resource), known_bootstrap(settings_with(bootstrap=bootstrap))

    async def run() -> tuple[ConfigEntry, ...]:
        async with KafkaAdmin.to(address) as admin:
            alive = [str(each.id) for each in (await admin.describe_cluster()).brokers]
            if wanted.scope is ConfigScope.BROKER and wanted.name not in alive:
                known = ", ".join(alive)
                raise CommandError(f"no broker {wanted.name} is alive; {known} are", Exit.WRONG_USE)
            return await admin.describe_configs(wanted)

    entries = [entry for entry in asyncio.run(run()) if filter_ in entry.name]
    if as_json:
        write_json({"resource": _name(wanted), "configs": [_document(it) for it in entries]})
        return
    rows = [[entry.name, _source(entry), _value(entry)] for entry in entries]
    write_table(_HEADS, rows)


async def _all(address: str) -> Configs:
    async with KafkaAdmin.to(address) as admin:
        topics = await admin.topics()
        brokers = (await admin.describe_cluster()).brokers
        wanted = [ConfigResource(scope=ConfigScope.TOPIC, name=topic.name) for topic in topics]
        wanted += [ConfigResource(scope=ConfigScope.BROKER, name=str(each.id)) for each in brokers]
        return await admin.describe_many_configs(wanted)


def _resource(text: str) -> ConfigResource:
    if not text.startswith(BROKER):
        return ConfigResource(scope=ConfigScope.TOPIC, name=text)
    broker = text.removeprefix(BROKER)
    if not broker.isdecimal():
        raise CommandError(f"{text!r} is not broker:ID, such as broker:101", Exit.WRONG_USE)
    return ConfigResource(scope=ConfigScope.BROKER, name=broker)


def _name(resource: ConfigResource) -> str:
    is_broker = resource.scope is ConfigScope.BROKER
    return f"{BROKER if is_broker else ''}{resource.name}"


def _value(entry: ConfigEntry) -> str:
    return HIDDEN if entry.value is None else entry.value


def _source(entry: ConfigEntry) -> str:
    return SOURCES.get(entry.source, str(entry.source))


def _document(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": _source(entry),
        "is_default": entry.is_default,
        "is_read_only": entry.is_read_only,
        "is_sensitive": entry.is_sensitive,
    }
