"""Flags that several commands share, and how they are laid over the settings."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from control.kafka.connections import use_connections
from control.operations import checks
from partiscope.cli.exits import CommandError, Exit
from partiscope.installation import connection_of, with_installation
from partiscope.settings import (
    ClusterSettings,
    Settings,
    SettingsError,
    load_settings,
    plain_errors,
)

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
CommandConfig = Annotated[
    Path | None,
    typer.Option(help="Client properties file of Kafka's own tools: TLS and SASL of the cluster."),
]
Store = Annotated[str | None, typer.Option(help="Folder or URL of the aggregates.")]
Data = Annotated[Path | None, typer.Option(help="Data directory.  [default: data]")]
Json = Annotated[
    bool, typer.Option("--json", help="JSON on stdout: one document, or one a line as it streams.")
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Show everything, change nothing.")]
Brokers = Annotated[int | None, typer.Option(min=1, help="Number of brokers.  [default: 3]")]
Port = Annotated[int | None, typer.Option(min=1, max=65_535, help="First port.  [default: 9092]")]
FirstId = Annotated[int | None, typer.Option(min=0, help="First broker id.  [default: 101]")]
Override = Annotated[
    list[str] | None, typer.Option(help="key=value, Kafka's own property name; repeatable.")
]


def settings_with(
    *,
    data: Path | None = None,
    bootstrap: str | None = None,
    watch: Sequence[str] | None = None,
    read_only: bool = False,
    command_config: Path | None = None,
    finds_installation: bool = True,
) -> Settings:
    """Settings of file and environment, overruled by the flags that were given.

    Without a cluster named anywhere, it is the first that `up` watches from the data directory
    (but not for `up` itself, which begins anew: ``finds_installation``).
    From here on every connection of this process is made as the settings say.
    """
    settings = load_settings()
    flags: dict[str, object] = {"data": data, "bootstrap": bootstrap}
    if watch:
        flags |= {"watch": tuple(watch), "bootstrap": watch[0]}
    given = {name: value for name, value in flags.items() if value is not None}
    if command_config is not None:
        given["connection"] = connection_of(str(command_config))
    settings = settings.model_copy(update=given)
    if finds_installation:
        settings = with_installation(settings)
    elif settings.bootstrap is None and settings.watch:
        settings = settings.model_copy(update={"bootstrap": settings.watch[0]})
    watched = settings.watched()
    if read_only or (watched is not None and watched.read_only):
        settings = settings.model_copy(update={"read_only": True})
    use_connections(settings.kafka_connections())
    return settings


def cluster_with(base: ClusterSettings, **flags: object) -> ClusterSettings:
    """Cluster settings, overruled by the flags that were given.

    Raises:
        SettingsError: a value out of bounds.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return ClusterSettings.model_validate({**base.model_dump(), **given})
    except ValidationError as error:
        raise SettingsError(f"bad settings of the cluster: {plain_errors(error)}") from error


def known_bootstrap(settings: Settings) -> str:
    """The cluster that a command talks to."""
    watched = settings.watched()
    return settings.bundled_bootstrap if watched is None else watched.bootstrap


def seconds_of_spread(text: str) -> float:
    """Of ``5m`` or none.

    :raises CommandError: neither.
    """
    seconds = checks.spread_seconds(text)
    if seconds is None:
        raise CommandError(f"--spread {text!r}: {checks.spread(text)}", Exit.WRONG_USE)
    return seconds


def write_json(document: object) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """A message for people, on stderr, so that stdout stays for data."""
    sys.stderr.write(f"{text}\n")
