"""Flags that several commands share, and how they are laid over the settings."""

import getpass
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from pydantic import ValidationError

from control.kafka.connection.settings import KafkaSettings
from control.model.command_line import CommandFlags, cluster_flag, known_flags, typed, use_flags
from control.operations import checks
from control.views.printable import json_text, paragraph, visible
from control.views.tour import Offer
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.connections import SchemaRegistryConnection
from partiscope.identity import (
    Target,
    bind,
    cluster_by_name,
    nothing_started,
    target_of,
    usual_target,
)
from partiscope.installation import connection_of, has_demo, with_installation
from partiscope.settings import (
    ClusterSettings,
    Settings,
    SettingsError,
    load_settings,
    plain_errors,
    usual_data,
)
from spark_metrics.window.store_url import require_no_password

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "--cluster",
        help="HOST:PORT,… of the cluster, or its name in the settings file; default: the one "
        "that `up` watches.",
        show_default=False,
    ),
]
Bootstraps = Annotated[
    list[str] | None,
    typer.Option(
        "--bootstrap",
        "--cluster",
        help="HOST:PORT,… of a cluster to watch, or its name in the settings file; repeatable.",
        show_default=False,
    ),
]


def require_addresses(text: str, flag: str) -> str:
    """Refuse what names no HOST:PORT before anything waits for it.

    Raises:
        CommandError: status 2.
    """
    try:
        if not KafkaSettings(bootstrap=text).addresses():
            raise ValueError(f"{text!r} names no HOST:PORT")
    except ValueError as error:
        raise CommandError(f"{flag}: {error}", Exit.WRONG_USE) from error
    return text


def _flag(name: str, value: str | None) -> str:
    return f"--{name} {quote(value)}" if value else ""


def _checked_bus(text: str | None) -> str | None:
    flags = replace(known_flags(), bus=_flag("bus", text))
    use_flags(lambda: flags)
    return text if text is None else require_addresses(text, "--bus")


Bus = Annotated[
    str | None,
    typer.Option(
        callback=_checked_bus,
        help="HOST:PORT,… of the bus for metrics and operations; default: the bundled cluster.",
        show_default=False,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(help="Client properties file of Kafka's own tools: TLS and SASL of the cluster."),
]
SchemaRegistry = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Schema registry of the cluster's messages, such as http://HOST:8081.",
        show_default=False,
    ),
]


def _checked_store(url: str | None) -> str | None:
    flags = replace(known_flags(), store=_flag("store", url))
    use_flags(lambda: flags)
    try:
        return url if url is None else require_no_password(url)
    except ValueError as error:
        raise CommandError(f"--store: {error}", Exit.WRONG_USE) from error


Store = Annotated[
    str | None, typer.Option(callback=_checked_store, help="Folder or URL of the aggregates.")
]
Data = Annotated[Path | None, typer.Option(help="Data directory.  [default: data]")]
Json = Annotated[
    bool, typer.Option("--json", help="JSON on stdout: one document, or one a line as it streams.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check and show; change nothing.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Show everything, change nothing.")]
Brokers = Annotated[int | None, typer.Option(min=1, help="Number of brokers.  [default: 3]")]
Port = Annotated[int | None, typer.Option(min=1, max=65_535, help="First port.  [default: 9092]")]
Secure = Annotated[
    bool | None,
    typer.Option(
        "--secure",
        help="Found a cluster with TLS, logins and rights of its own.",
        show_default=False,
    ),
]
FirstId = Annotated[int | None, typer.Option(min=0, help="First broker id.  [default: 101]")]
Rejoin = Annotated[
    list[int] | None, typer.Option(help="Id of a drained broker to start again; repeatable.")
]
Override = Annotated[
    list[str] | None, typer.Option(help="key=value, Kafka's own property name; repeatable.")
]


def settings_at(data: Path | None) -> Settings:
    """Settings of file and environment, with the data directory of ``--data``."""
    settings = load_settings()
    return settings if data is None else settings.model_copy(update={"data": data})


def settings_with(
    *,
    data: Path | None = None,
    bootstrap: str | None = None,
    watch: Sequence[str] | None = None,
    read_only: bool = False,
    command_config: Path | None = None,
    schema_registry: str | None = None,
    finds_installation: bool = True,
    may_create: bool = False,
) -> Settings:
    """Settings of file and environment, overruled by the flags that were given.

    Without a cluster named anywhere, it is the first that `up` watches from the data directory
    (but not for `up` itself, which begins anew: ``finds_installation``). ``may_create``: the
    command makes the data directory where it lacks.
    From here on every connection of this process is made as the settings say.
    """
    if data is not None and finds_installation and not may_create:
        check_data_directory(data)
    if bootstrap is not None and not bootstrap.strip():
        raise SettingsError(
            "--bootstrap (or --cluster) is empty: write HOST:PORT or the name of a cluster, or "
            "leave the flag out"
        )
    settings = load_settings()
    flags: dict[str, object] = {"data": data, "bootstrap": bootstrap}
    if watch:
        flags |= {"watch": tuple(watch), "bootstrap": watch[0]}
    given = {name: value for name, value in flags.items() if value is not None}
    if command_config is not None:
        given["connection"] = connection_of(str(command_config))
    settings = settings.model_copy(update=given)
    if schema_registry is not None:
        settings = _with_registry(settings, schema_registry)
    named, target = settings.bootstrap, None
    if finds_installation:
        settings = with_installation(settings)
        target = usual_target(settings, named)
    elif settings.bootstrap is None and settings.watch:
        settings = settings.model_copy(update={"bootstrap": settings.watch[0]})
    if read_only:
        settings = settings.model_copy(update={"read_only": True})
    bind(settings, target)
    tell_flags(settings, bootstrap=bootstrap)
    return settings


def _with_registry(settings: Settings, url: str) -> Settings:
    """With this registry, also where the cluster has another one in the settings file."""
    try:
        registry = SchemaRegistryConnection.model_validate(
            {**settings.schema_registry.model_dump(exclude_unset=True), "url": url}
        )
    except ValidationError as error:
        words = plain_errors(error, SchemaRegistryConnection).removeprefix("url: ")
        raise SettingsError(f"--schema-registry {words}") from error
    update: dict[str, object] = {"schema_registry": registry}
    named = settings.clusters.get(settings.bootstrap or "")
    if named is not None:
        own = named.model_copy(
            update={"schema_registry": named.schema_registry.model_copy(update={"url": url})}
        )
        update["clusters"] = {**settings.clusters, str(settings.bootstrap): own}
    return settings.model_copy(update=update)


def tell_flags(settings: Settings, *, bootstrap: str | None) -> CommandFlags:
    """Commands that are told from here on mean the same cluster, typed into another shell; bus and
    store stay as they were given."""
    data = settings.data.absolute()
    flags = replace(
        known_flags(),
        data="" if data == usual_data().absolute() else _flag("data", str(data)),
        cluster=cluster_flag(bootstrap or ""),
    )
    use_flags(lambda: flags)
    return flags


def target_with(
    *,
    data: Path | None = None,
    bootstrap: str | None = None,
    bus: str | None = None,
    store: str | None = None,
    read_only: bool = False,
) -> Target:
    """The cluster that these flags, the settings and the data directory mean, known by its id;
    every connection of this process is bound to it from here on."""
    settings = settings_with(data=data, bootstrap=bootstrap, read_only=read_only)
    given = bootstrap or load_settings().bootstrap
    target = target_of(settings, given=given, bus=bus, has_store=store is not None)
    bind(settings, target)
    flags = tell_flags(settings, bootstrap=bootstrap)
    if target.unreached is not None:
        note(f"{target.unreached}. The figures shown are the last known.")
    if store is not None:  # its owner may be about to write there
        alone = replace(target.watched, unwatched="")
        target = replace(target, watched=alone) if target.bus == alone.bootstrap else target
    offer = _tour_of(settings, target.watched.bootstrap)
    return replace(target, store=store or settings.store, flags=flags, tour=offer)


def _tour_of(settings: Settings, bootstrap: str | None) -> Offer:
    if bootstrap is None or not has_demo(settings.data, bootstrap):
        return Offer.NONE
    return Offer.ONCE if settings.tour == "once" else Offer.ASKED


def check_data_directory(data: Path) -> None:
    """Refuse one that was mistyped before anything waits for it.

    Raises:
        SettingsError: it is not there, is no directory, or may not be read.
    """
    where = data.absolute()
    if not data.exists():
        raise SettingsError(
            f"there is no data directory {where}. Correct --data, or start a cluster there: "
            f"`partiscope up --data {quote(str(where))}`."
        )
    if not data.is_dir():
        raise SettingsError(f"{where} is a file, not a data directory. Correct --data.")
    if not os.access(data, os.R_OK | os.X_OK):
        raise SettingsError(
            f"data directory {where} may not be read by {getpass.getuser()}. Correct --data, or "
            "have yourself allowed to read it."
        )


def cluster_with(base: ClusterSettings, **flags: object) -> ClusterSettings:
    """Cluster settings, overruled by the flags that were given.

    Raises:
        SettingsError: a value out of bounds.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return ClusterSettings.model_validate({**base.model_dump(), **given})
    except ValidationError as error:
        raise SettingsError(
            f"bad settings of the cluster: {plain_errors(error, ClusterSettings)}"
        ) from error


def known_bootstrap(settings: Settings) -> str:
    """The cluster that a command talks to.

    Raises:
        SettingsError: nobody has said which, and nothing was ever started.
    """
    watched = settings.watched()
    return known_bus(settings) if watched is None else watched.bootstrap


def read_from(topic: str, *, bootstrap: str | None, schema_registry: str | None) -> str:
    """The cluster that these flags mean, to read records of a topic there.

    Raises:
        SettingsError: nobody has said which, and nothing was ever started.
        NoRightError: this user may not read them.
    """
    from control.operations.role_check import check_records  # a Kafka client comes with it

    settings = settings_with(bootstrap=bootstrap, schema_registry=schema_registry)
    address = known_bootstrap(settings)
    check_records(cluster_by_name(settings, settings.bootstrap or address), topic)
    return address


def known_bus(settings: Settings) -> str:
    """The bus of what runs from the data directory, or the one that the settings name.

    Raises:
        SettingsError: there is none.
    """
    if settings.bus is None:
        raise nothing_started(settings)
    return settings.bus


def seconds_of_spread(text: str) -> float:
    """Seconds of ``5m``; none: 0.

    :raises CommandError: neither.
    """
    seconds = checks.spread_seconds(text)
    if seconds is None:
        raise CommandError(f"--spread {text!r}: {checks.spread(text)}", Exit.WRONG_USE)
    return seconds


def now_ms() -> int:
    """Milliseconds since the epoch by this machine's clock."""
    return time.time_ns() // 1_000_000


def write_json(document: object) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json_text(document, indent=2) + "\n")


def write_lines(*lines: str) -> None:
    """Lines for people on stdout. A terminal obeys nothing of the names in them."""
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)


def note(text: str) -> None:
    """A message for people, on stderr, so that stdout stays for data."""
    sys.stderr.write(f"{paragraph(typed(text))}\n")
