"""Record of what runs from a data directory, by which other commands find it.

A file in the data directory: on which ports the bundled brokers listen, which clusters are
watched, how they are reached (by name or by a properties file, never a secret). Flags,
environment and settings file overrule it.
"""

import asyncio
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from partiscope.bundled.founded_cluster import LayoutError, write_whole
from partiscope.connections import ConnectionSettings
from partiscope.layout import CONTROLLER_PORT_OFFSET, check_port
from partiscope.settings import ClusterSettings, Settings, SettingsError, plain_errors

INSTALLATION_FILE: Final = "installation.json"
TOUR_MARK: Final = "tour-began"
"""A file of the data directory: in a terminal the tour has begun by itself."""
PORTS_TRIED_MAX: Final = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A cluster that the bundled brokers serve as the bus of."""

    bootstrap: str
    """``HOST:PORT,…`` or the name of a cluster in the settings file."""
    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Ports and clusters of the newest start."""

    bus: str
    """``HOST:PORT,…`` of the bundled brokers."""
    watched: tuple[Watched, ...] = ()
    """Empty: the bundled cluster itself is watched."""
    config_file: str | None = None
    page: str = ""
    """Address of the page; empty: there is none."""
    schema_registry: str | None = None
    """URL of the schema registry that a flag named."""
    demo: bool = False
    """The bundled cluster carries the demo load."""
    bus_config: str | None = None
    """Client properties file of the bus's admin, where it asks for a login."""

    def save(self, data: Path) -> None:
        """Write it for the commands to come."""
        try:
            data.mkdir(parents=True, exist_ok=True)
            write_whole(data / INSTALLATION_FILE, json.dumps(asdict(self), indent=2) + "\n")
        except OSError as error:
            raise LayoutError(
                f"cannot use data directory {data}: {error.strerror}. "
                "Choose a writable one with --data."
            ) from error


def prepare(settings: Settings, *, wants_port: bool) -> tuple[Settings, Installation]:
    """Settings of a start, and their record for other commands.

    Where other clusters are watched, they answer, and their bus has free ports. Child processes
    find everything by the data directory.

    Raises:
        KafkaPortError: a cluster does not answer, or does not let us in.
        SettingsError: no ports are free, or two names mean the same cluster.
    """
    os.environ["PARTISCOPE_DATA"] = str(settings.data.absolute())
    watched = _identified(settings)
    if watched:
        cluster = settings.cluster
        port = cluster.port if wants_port else _free_port(cluster)
        # The bus is not what is watched: its brokers do not report themselves.
        overrides = {**cluster.overrides, "partiscope.metrics.enable": "false"}
        cluster = cluster.model_copy(update={"port": port, "overrides": overrides})
        settings = settings.model_copy(
            update={"cluster": cluster, "cluster_id": watched[0].cluster_id}
        )
    config_file = settings.connection.config_file
    installation = Installation(
        bus=settings.bundled_bootstrap,
        watched=watched,
        config_file=None if config_file is None else str(config_file.absolute()),
        page=settings.dashboard.url,
        schema_registry=settings.schema_registry.url,
    )
    return settings, installation


def _identified(settings: Settings) -> tuple[Watched, ...]:
    ids: dict[str, str] = {}
    for name in settings.watching:
        cluster_id = asyncio.run(_id_of(settings.cluster_at(name).bootstrap))
        if cluster_id in ids:
            raise SettingsError(
                f"{ids[cluster_id]} and {name} are the same cluster ({cluster_id}): watch it once"
            )
        ids[cluster_id] = name
    return tuple(Watched(bootstrap=name, cluster_id=found) for found, name in ids.items())


async def _id_of(bootstrap: str) -> str:
    from control.kafka.admin.kafka_admin import KafkaAdmin  # screens start without a Kafka client

    async with KafkaAdmin.to(bootstrap) as admin:
        return (await admin.describe_cluster()).cluster_id


def _free_port(cluster: ClusterSettings) -> int:
    """The first port, from the usual one up, after which all that the brokers need are free."""
    for first in range(cluster.port, cluster.port + PORTS_TRIED_MAX, cluster.brokers):
        ports = range(first, first + cluster.brokers)
        try:
            for port in (*ports, *(port + CONTROLLER_PORT_OFFSET for port in ports)):
                check_port(cluster.host, port, flag="--port")
        except LayoutError:
            continue
        return first
    raise SettingsError(
        f"no {cluster.brokers} free ports in a row from {cluster.port} on. Name them with --port."
    )


def find_installation(data: Path) -> Installation | None:
    """The record; None if nothing was ever started.

    Raises:
        SettingsError: the file is damaged.
    """
    path = data / INSTALLATION_FILE
    try:
        document = json.loads(path.read_text())
        watched = tuple(Watched(**each) for each in document.pop("watched"))
        return Installation(**document, watched=watched)
    except FileNotFoundError:
        return None
    except (NotADirectoryError, PermissionError) as error:
        raise SettingsError(
            f"cannot use data directory {data.absolute()}: {error.strerror}. Correct --data "
            "(or PARTISCOPE_DATA, or the settings)."
        ) from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise SettingsError(f"{path} is damaged ({error}). Delete it and start `up` again.") from (
            error
        )


def with_installation(settings: Settings) -> Settings:
    """Settings completed by what runs from their data directory."""
    found = find_installation(settings.data)
    if found is None:
        return settings
    ids = {each.bootstrap: each.cluster_id for each in found.watched}
    update: dict[str, object] = {}
    if settings.bus is None:
        update["bus"] = found.bus
    if found.bus_config is not None and settings.bus_config is None:
        update["bus_config"] = Path(found.bus_config)
    if found.config_file is not None and settings.connection == ConnectionSettings():
        update["connection"] = connection_of(found.config_file)
    if found.schema_registry is not None and settings.schema_registry.url is None:
        registry = {"url": found.schema_registry}
        update["schema_registry"] = settings.schema_registry.model_copy(update=registry)
    if not settings.watch:
        update["watch"] = tuple(ids)
    chosen = settings.bootstrap or next(iter(ids), None)
    if settings.cluster_id is None:
        update["cluster_id"] = ids.get(chosen or "")
    return settings.model_copy(update={**update, "bootstrap": chosen})


def has_demo(data: Path, bootstrap: str) -> bool:
    """Whether that cluster is the bundled one of the data directory, with the demo load."""
    found = find_installation(data)
    return found is not None and found.demo and not found.watched and found.bus == bootstrap


def connection_of(config_file: str) -> ConnectionSettings:
    """The connection of a client properties file.

    Raises:
        SettingsError: it cannot be read, or lacks something.
    """
    try:
        return ConnectionSettings.model_validate({"config_file": config_file})
    except ValidationError as error:
        raise SettingsError(
            f"--command-config {config_file}: {plain_errors(error, ConnectionSettings)}"
        ) from error
