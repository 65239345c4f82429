"""What `up` is watching from a data directory, so that other commands find it.

A file in the data directory: which cluster, how it is reached (by name or by a properties file,
never a secret), on which ports the bus listens. Flags, environment and settings file overrule it.
"""

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from control.kafka.admin import KafkaAdmin
from partiscope.connections import ConnectionSettings
from partiscope.layout import CONTROLLER_PORT_OFFSET, LayoutError, check_port
from partiscope.settings import ClusterSettings, Settings, SettingsError, plain_errors

INSTALLATION_FILE: Final = "watched.json"
PORTS_TRIED_MAX: Final = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A bus of our own that serves another cluster."""

    bootstrap: str
    """``HOST:PORT,…`` or the name of a cluster in the settings file."""
    cluster_id: str
    bus: str
    config_file: str | None = None

    def save(self, data: Path) -> None:
        """Write it for the commands to come."""
        try:
            data.mkdir(parents=True, exist_ok=True)
            (data / INSTALLATION_FILE).write_text(json.dumps(asdict(self), indent=2) + "\n")
        except OSError as error:
            raise LayoutError(
                f"cannot use data directory {data}: {error.strerror}. "
                "Choose a writable one with --data."
            ) from error


def prepare_bus(settings: Settings, *, wants_port: bool) -> Settings:
    """Settings of an `up` that watches another cluster: that one answers, its bus has free ports.

    Where `up` watches its own cluster, the settings stay as they are. Child processes find both
    by the data directory.

    Raises:
        KafkaPortError: the cluster does not answer, or does not let us in.
        SettingsError: no ports are free.
    """
    os.environ["PARTISCOPE_DATA"] = str(settings.data.absolute())
    watched = settings.watched()
    bootstrap = settings.bootstrap
    if watched is None or bootstrap is None:
        forget_installation(settings.data)
        return settings
    cluster_id = asyncio.run(_identify(watched.bootstrap))
    cluster = settings.cluster
    port = cluster.port if wants_port else _free_port(cluster)
    # The bus is not what is watched: its brokers do not report themselves.
    overrides = {**cluster.overrides, "partiscope.metrics.enable": "false"}
    cluster = cluster.model_copy(update={"port": port, "overrides": overrides})
    settings = settings.model_copy(update={"cluster": cluster, "cluster_id": cluster_id})
    config_file = settings.connection.config_file
    Installation(
        bootstrap=bootstrap,
        cluster_id=cluster_id,
        bus=settings.bundled_bootstrap,
        config_file=None if config_file is None else str(config_file.absolute()),
    ).save(settings.data)
    return settings


async def _identify(bootstrap: str) -> str:
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


def forget_installation(data: Path) -> None:
    """The data directory serves its own cluster from now on."""
    with suppress(NotADirectoryError):
        (data / INSTALLATION_FILE).unlink(missing_ok=True)


def find_installation(data: Path) -> Installation | None:
    """What was saved; None where `up` watches its own cluster.

    Raises:
        SettingsError: the file is damaged.
    """
    path = data / INSTALLATION_FILE
    try:
        return Installation(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"{path} is damaged ({error}). Delete it and start `up` again.") from (
            error
        )


def with_installation(settings: Settings) -> Settings:
    """Settings completed by what `up` watches from their data directory."""
    found = find_installation(settings.data)
    if found is None or settings.bootstrap not in (None, found.bootstrap):
        return settings
    update: dict[str, object] = {"bootstrap": found.bootstrap}
    if settings.bus is None:
        update["bus"] = found.bus
    if settings.cluster_id is None:
        update["cluster_id"] = found.cluster_id
    if found.config_file is not None and settings.connection == ConnectionSettings():
        update["connection"] = connection_of(found.config_file)
    return settings.model_copy(update=update)


def connection_of(config_file: str) -> ConnectionSettings:
    """The connection of a client properties file.

    Raises:
        SettingsError: it cannot be read, or lacks something.
    """
    try:
        return ConnectionSettings.model_validate({"config_file": config_file})
    except ValidationError as error:
        raise SettingsError(f"--command-config {config_file}: {plain_errors(error)}") from error
