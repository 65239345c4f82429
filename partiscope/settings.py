"""One typed tree of settings: a file is overruled by the environment, and that by flags.

File: ``partiscope.toml`` in the working directory, or the one that ``PARTISCOPE_CONFIG`` names.
Environment: ``PARTISCOPE_`` plus the path in capitals, e.g. ``PARTISCOPE_DASHBOARD__PORT=8051``.
"""

import math
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from broker.host_name import address_text
from broker.named_file import NamedFileError, read_text
from control.access.roles import BUILT_IN
from control.exposition.limits import SERIES_MAX, USUAL, Limits
from control.kafka.connection.settings import KafkaSettings, quoted
from control.model.ids import ClusterId
from control.model.units import parse_duration
from control.model.watched_cluster import COLORS, JOURNAL_HOLD_S, addresses_of, is_of_any
from partiscope.access.access_settings import (
    ROLES_MAX,
    RULES_MAX,
    TOKENS_FILE,
    USERS_FILE,
    AccessSettings,
    MaskingSettings,
    RoleSettings,
    roles_of,
)
from partiscope.access.tokens_file import TokensFile
from partiscope.access.users_file import UsersFile
from partiscope.alert_settings import AlertsSettings
from partiscope.connections import ConnectionSettings, SchemaRegistryConnection
from partiscope.journal_chain import CHAIN_FILE
from partiscope.proof_keys import KEY_FILE
from partiscope.setting_types import (
    Host,
    Number,
    SettingPath,
    Text,
    require_plain_texts,
)
from spark_metrics.window.store_url import require_no_password

ENV_PREFIX: Final = "PARTISCOPE_"
_OTHER_VARIABLES: Final = ("config", "cache", "maven")
"""Which settings file there is; where Spark's connector is kept, and whence it is fetched."""
_SECRET: Final = re.compile("password|secret|token")
BROKERS_MAX: Final = 64
CLUSTERS_MAX: Final = 64
HOSTS_MAX: Final = 64
PATTERNS_MAX: Final = 100
UNLIMITED: Final = "unlimited"
CONFIG_FILE_DEFAULT: Final = "partiscope.toml"
CONFIG_VARIABLE: Final = "PARTISCOPE_CONFIG"
DATA_DEFAULT: Final = Path("data")


class SettingsError(Exception):
    """A setting that cannot be used; the text says which, why, and what would do."""


class Section(BaseModel):
    """A group of settings; a name that it does not have is refused, not passed over."""

    model_config = ConfigDict(extra="forbid")


class ClusterSettings(Section):
    """The bundled cluster."""

    brokers: Number = Field(default=3, ge=1, le=BROKERS_MAX)
    first_id: Number = Field(default=101, ge=0)
    host: Host = "127.0.0.1"
    port: Number = Field(default=9092, ge=1, le=65_535)
    """The first broker listens here, the next ones on the ports after it."""
    racks: Text = "abc"
    """One letter per rack, given to the brokers in turn."""
    overrides: dict[str, str] = Field(default_factory=dict)
    """Kafka's own property names, for every broker."""
    secure: bool = False
    """A new cluster has a CA of its own, users and rights."""


class MetricsSettings(Section):
    """The Spark job and its store."""

    master: Text = "local[2]"
    store: Text | None = None
    """Folder or URL; default: ``store`` in the data directory."""
    checkpoint: Text | None = None
    """Folder or URL; default: ``checkpoint`` in the data directory."""
    trigger_ms: Number = Field(default=1_000, ge=100)
    driver_memory: str | None = Field(default=None, pattern=r"^\d+[mg]$")
    """Heap of Spark's JVM, such as ``2g``; 768m where it is not set."""

    @field_validator("store", "checkpoint")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        return None if url is None else require_no_password(url)


class DashboardSettings(Section):
    """The page."""

    host: Host = "127.0.0.1"
    port: Number = Field(default=8050, ge=1, le=65_535)
    allowed_hosts: tuple[Host, ...] = Field(default=(), max_length=HOSTS_MAX)
    """Names by which others may reach the page, beside loopback and ``host``."""
    certificate: SettingPath | None = None
    """PEM file of the chain, for TLS."""
    key: SettingPath | None = None
    """PEM file of its key; without, the certificate's file holds it."""

    @model_validator(mode="after")
    def _check_key(self) -> "DashboardSettings":
        if self.key is not None and self.certificate is None:
            raise ValueError("dashboard.key is set without dashboard.certificate")
        return self

    @property
    def url(self) -> str:
        """Where it answers."""
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://{address_text(self.host, self.port)}"


class PrometheusSettings(Section):
    """The limits of ``/metrics``, and where ``partiscope exporter`` listens."""

    host: Host = "127.0.0.1"
    port: Number = Field(default=9308, ge=1, le=65_535)
    allowed_hosts: tuple[Host, ...] = Field(default=(), max_length=HOSTS_MAX)
    """Names by which others may reach the exporter, beside loopback and ``host``."""
    topics: tuple[str, ...] = Field(default=tuple(USUAL.topics), max_length=PATTERNS_MAX)
    exclude_topics: tuple[str, ...] = Field(default=(), max_length=PATTERNS_MAX)
    groups: tuple[str, ...] = Field(default=tuple(USUAL.groups), max_length=PATTERNS_MAX)
    exclude_groups: tuple[str, ...] = Field(default=(), max_length=PATTERNS_MAX)
    topics_max: Number = Field(default=USUAL.topics_max, ge=0, le=SERIES_MAX)
    partitions_max: Number = Field(default=USUAL.partitions_max, ge=0, le=SERIES_MAX)
    groups_max: Number = Field(default=USUAL.groups_max, ge=0, le=SERIES_MAX)
    group_partitions_max: Number = Field(default=USUAL.group_partitions_max, ge=0, le=SERIES_MAX)

    @property
    def limits(self) -> Limits:
        """The same for ``control.exposition``."""
        return Limits(**{it.name: getattr(self, it.name) for it in fields(Limits)})


class ProofSettings(Section):
    """Proof that records on the bus are of a known installation."""

    required: bool = True
    """Whether the executor refuses commands without proof."""
    key_file: SettingPath | None = None
    """Key of this installation; default: ``installation.key`` in the data directory."""
    further_key_files: tuple[SettingPath, ...] = Field(default=(), max_length=CLUSTERS_MAX)
    """Keys of other installations on the same bus, which are believed as well."""


class TerminalSettings(Section):
    """The terminal screen."""

    mouse: bool = True
    """Clicks select and open; without it the terminal itself selects text by mouse."""


class CollectSettings(Section):
    """The collector: how often it samples, and what it may ask of each broker."""

    interval_ms: Number = Field(default=1_000, ge=100)
    """Of small clusters; rounds of large ones are as far apart as the load's bound needs."""
    broker_rows_per_s: Number = Field(default=3_000, ge=100)
    """Partitions, offsets and groups that one broker is asked about per second, at most."""
    broker_times_per_s: Number = Field(default=50, ge=1)
    """Places in logs that one broker is asked the time of per second, at most: lag that is older
    than the collector gets its age by them."""


class NamedCluster(Section):
    """A cluster with a name: ``[clusters.NAME]``, chosen by ``--cluster NAME``."""

    bootstrap: str
    connection: ConnectionSettings = Field(default_factory=ConnectionSettings)
    schema_registry: SchemaRegistryConnection = Field(default_factory=SchemaRegistryConnection)
    color: str = ""
    """One of ``control.model.watched_cluster.COLORS``, shown wherever the cluster is."""
    production: bool = False
    """Shown so that nobody overlooks it; what changes it wants its name."""
    read_only: bool = False
    collect: CollectSettings = Field(default_factory=CollectSettings)

    @field_validator("color")
    @classmethod
    def _check_color(cls, color: str) -> str:
        if color and color not in COLORS:
            raise ValueError(f"{color!r} is none of {', '.join(COLORS)}")
        return color


class Settings(BaseSettings):
    """Everything that can be set."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid"
    )

    data: SettingPath = DATA_DEFAULT
    """Where the bundled cluster, the store and the logs live."""
    bootstrap: str | None = None
    """A cluster to watch, by address or by its name among ``clusters``; without it, the bundled
    one."""
    watch: tuple[str, ...] = Field(default=(), max_length=CLUSTERS_MAX)
    """Clusters that ``up`` watches, by name or address; ``bootstrap`` is the first of them."""
    connection: ConnectionSettings = Field(default_factory=ConnectionSettings)
    """How the cluster at ``bootstrap`` is reached, where that is an address."""
    schema_registry: SchemaRegistryConnection = Field(default_factory=SchemaRegistryConnection)
    """The registry of clusters that have none of their own."""
    clusters: dict[str, NamedCluster] = Field(default_factory=dict, max_length=CLUSTERS_MAX)
    collect: CollectSettings = Field(default_factory=CollectSettings)
    bus: str | None = None
    """``host:port,…`` of the bus for metrics and operations; without it, the bundled brokers."""
    bus_config: Path | None = None
    """A client properties file by which the bus is reached."""

    @model_validator(mode="before")
    @classmethod
    def _check_texts(cls, given: Any) -> Any:
        require_plain_texts(given)
        return given

    @field_validator("bus")
    @classmethod
    def _check_bus(cls, bus: str | None) -> str | None:
        if bus is not None and not KafkaSettings(bootstrap=bus).addresses():
            raise ValueError("it names no HOST:PORT")
        return bus

    cluster_id: Text | None = None
    """Id of the cluster whose figures are shown; without it, the largest one in the store."""
    read_only: bool = False
    tour: Literal["once", "never"] = "once"
    """Whether the tour over the demo begins by itself."""
    journal_hold: str = f"{JOURNAL_HOLD_S:g}s"
    """How long a change waits for the journal before it is refused; ``unlimited``: until it is
    written."""

    @field_validator("journal_hold")
    @classmethod
    def _check_journal_hold(cls, text: str) -> str:
        if text != UNLIMITED and parse_duration(text) is None:
            raise ValueError(f"{text!r} is neither a time such as 5s nor {UNLIMITED}")
        return text

    @property
    def journal_hold_s(self) -> float:
        """Infinite where it is unlimited."""
        held_ms = None if self.journal_hold == UNLIMITED else parse_duration(self.journal_hold)
        return math.inf if held_ms is None else held_ms / 1000

    cluster: ClusterSettings = Field(default_factory=ClusterSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    dashboard: DashboardSettings = Field(default_factory=DashboardSettings)
    prometheus: PrometheusSettings = Field(default_factory=PrometheusSettings)
    terminal: TerminalSettings = Field(default_factory=TerminalSettings)
    proof: ProofSettings = Field(default_factory=ProofSettings)
    alerts: AlertsSettings = Field(default_factory=AlertsSettings)
    access: AccessSettings = Field(default_factory=AccessSettings)
    roles: dict[str, RoleSettings] = Field(default_factory=dict, max_length=ROLES_MAX)

    masking: tuple[MaskingSettings, ...] = Field(default=(), max_length=RULES_MAX)

    @model_validator(mode="after")
    def _check_masking(self) -> "Settings":
        for name in {name for each in self.masking for name in each.clusters} - {*self.clusters}:
            known = ", ".join(sorted(self.clusters)) or "none"
            raise ValueError(f"masking.clusters names {name!r}; there are {known}")
        return self

    @field_validator("roles")
    @classmethod
    def _check_roles(cls, roles: dict[str, RoleSettings]) -> dict[str, RoleSettings]:
        for name in roles.keys() & BUILT_IN.keys():
            raise ValueError(f"{name} is built in: choose another name")
        return roles

    @property
    def users_file(self) -> UsersFile:
        """The users that are declared, with the roles of these settings."""
        path = (self.access.users_file or self.data / USERS_FILE).absolute()
        return UsersFile(path, roles_of(self.roles))

    @property
    def tokens(self) -> TokensFile:
        """The tokens of programs, with the roles of these settings."""
        path = (self.access.tokens_file or self.data / TOKENS_FILE).absolute()
        return TokensFile(path, roles_of(self.roles))

    @property
    def key_file(self) -> Path:
        """Where the key of this installation lies."""
        return (self.proof.key_file or self.data / KEY_FILE).absolute()

    @property
    def chain_file(self) -> Path:
        """Where the head of the journal's chain lies."""
        return (self.data / CHAIN_FILE).absolute()

    @property
    def store(self) -> str:
        """Where the aggregates live."""
        return self.metrics.store or str(self.data.absolute() / "store")

    @property
    def checkpoint(self) -> str:
        """Where the stream job remembers how far it read."""
        return self.metrics.checkpoint or str(self.data.absolute() / "checkpoint")

    @property
    def bundled_bootstrap(self) -> str:
        """``host:port,…`` of the bundled brokers, or of another bus."""
        if self.bus is not None:
            return self.bus
        cluster = self.cluster
        ports = range(cluster.port, cluster.port + cluster.brokers)
        return ",".join(address_text(cluster.host, port) for port in ports)

    @property
    def shown_cluster(self) -> ClusterId | None:
        """``cluster_id`` as the screens take it."""
        return None if self.cluster_id is None else ClusterId(self.cluster_id)

    @property
    def watching(self) -> tuple[str, ...]:
        """Names or addresses of the clusters that ``up`` watches; none: the bundled one."""
        return self.watch or ((self.bootstrap,) if self.bootstrap else ())

    def watched(self) -> NamedCluster | None:
        """The cluster that ``bootstrap`` names or gives the address of; None: the bundled one.

        Raises:
            SettingsError: there is no cluster of that name.
        """
        return None if self.bootstrap is None else self.cluster_at(self.bootstrap)

    def cluster_at(self, name: str) -> NamedCluster:
        """The cluster of a name or an address.

        Raises:
            SettingsError: there is no cluster of that name.
        """
        if name in self.clusters:
            return self.clusters[name]
        if ":" in name:
            return self._cluster_by_address(name)
        known = ", ".join(sorted(self.clusters)) or "none"
        raise SettingsError(
            f"there is no cluster {quoted(name)} in the settings (known: {known}). Write "
            f"HOST:PORT, or add [clusters.{name}] with its bootstrap to the file."
        )

    def _cluster_by_address(self, bootstrap: str) -> NamedCluster:
        """With the flags of the named cluster that has one of these addresses, and its connection
        where none was given. Addresses of the bus alone are reached as the bus is."""
        named = self.clusters.get(self.name_at(bootstrap))
        given: dict[str, object] = {"bootstrap": bootstrap}
        is_bus = self.bus is not None and addresses_of(bootstrap) <= addresses_of(self.bus)
        if self.bus_config is not None and is_bus and self.connection == ConnectionSettings():
            given["connection"] = self.bus_connection
            return (named or NamedCluster(bootstrap=bootstrap)).model_copy(update=given)
        if named is None or self.connection != ConnectionSettings():
            given |= {"connection": self.connection, "collect": self.collect}
        return (named or NamedCluster(bootstrap=bootstrap)).model_copy(update=given)

    def name_at(self, bootstrap: str) -> str:
        """The named cluster that has one of these addresses; empty: none has."""
        named = ((n, it.bootstrap) for n, it in self.clusters.items())
        return next((name for name, its in named if is_of_any(bootstrap, [its])), "")

    @property
    def bus_connection(self) -> ConnectionSettings:
        """How the bus is reached.

        Raises:
            SettingsError: its file cannot be used.
        """
        if self.bus_config is None:
            return ConnectionSettings()
        try:
            return ConnectionSettings(config_file=self.bus_config)
        except ValidationError as error:
            raise SettingsError(
                f"bus_config {self.bus_config}: {plain_errors(error, ConnectionSettings)}"
            ) from error

    def kafka_connections(self) -> list[KafkaSettings]:
        """Connections of all clusters that are named or watched, and of the bus.

        Raises:
            SettingsError: a certificate, password or token that cannot be used.
        """
        every = dict(self.clusters)
        for name in {*self.watch, self.bootstrap} - {None, *self.clusters}:
            every[f"at {name}"] = self.cluster_at(str(name))
        connections = [self._connection_of(name, cluster) for name, cluster in every.items()]
        has_more = self.schema_registry.url is not None or self.bus_config is not None
        if self.bus is not None and has_more:
            bundled = NamedCluster(bootstrap=self.bus, connection=self.bus_connection)
            # First: who names its address with a connection of its own means that one.
            connections.insert(0, self._connection_of("of the bus", bundled))
        return connections

    def _connection_of(self, name: str, cluster: NamedCluster) -> KafkaSettings:
        own = cluster.schema_registry
        registry = self.schema_registry if own.url is None else own
        try:
            settings = cluster.connection.to_kafka(cluster.bootstrap)
            return replace(settings, schema_registry=registry.to_registry())
        except ValueError as error:
            raise SettingsError(f"cluster {name}: {error}") from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags over environment over file."""
        return init_settings, env_settings, InitSettingsSource(settings_cls, _file_values())


def plain_errors(error: ValidationError, model: type[BaseModel]) -> str:
    """Which settings of ``model`` are wrong and why, without the words of the library."""
    return "; ".join(_plain_error(each, model) for each in error.errors())


def _plain_error(error: ErrorDetails, model: type[BaseModel]) -> str:
    path = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        *above, name = map(str, error["loc"])
        section = _section_at(model, above)
        return unknown_setting(path, name, () if section is None else section.model_fields)
    words = error["msg"].removeprefix("Value error, ")
    given = error.get("input")
    is_shown = isinstance(given, str | int | float) and not _SECRET.search(path)
    is_shown = is_shown and repr(given) not in words
    return f"{path}{f' = {quoted(given)}' if is_shown else ''}: {words}" if path else words


def unknown_setting(path: str, name: str, known: Iterable[str]) -> str:
    """``unknown setting dta; did you mean data?``; ``name`` is the last word of ``path``."""
    near = get_close_matches(name, tuple(known), n=1)
    if near:
        return f"unknown setting {path}; did you mean {path.removesuffix(name)}{near[0]}?"
    return f"unknown setting {path}; there are {', '.join(sorted(known))}"


def _section_at(model: type[BaseModel], path: Sequence[str]) -> type[BaseModel] | None:
    """The model of a section; None: there is none of fixed names."""
    for name in path:
        field = model.model_fields.get(name)
        if field is None:
            continue  # a name that was chosen, such as a cluster's
        kinds = (field.annotation, *get_args(field.annotation))
        found = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
        if found is None:
            return None
        model = found
    return model


def _check_environment() -> None:
    """The library passes over variables that it has no setting for.

    Raises:
        SettingsError: a variable begins as ours do, and names no setting.
    """
    known = (*Settings.model_fields, *_OTHER_VARIABLES)
    for variable in sorted(os.environ):
        name, *_ = variable.removeprefix(ENV_PREFIX).lower().split("__")
        if variable.upper().startswith(ENV_PREFIX) and name not in known:
            told = unknown_setting(name, name, Settings.model_fields)
            raise SettingsError(f"environment variable {variable}: {told}")


def _file_values() -> dict[str, Any]:
    """Values of the settings file; none where no file was named and there is none.

    Raises:
        SettingsError: it cannot be read, or is not TOML.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    path = CONFIG_FILE_DEFAULT if named is None else named
    try:
        return tomllib.loads(read_text(path, "settings file" if named is None else CONFIG_VARIABLE))
    except NamedFileError as error:
        if named is None and error.is_missing:
            return {}
        raise SettingsError(str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"settings file {path} is not TOML: {error}") from error
    except RecursionError as error:
        raise SettingsError(
            f"settings file {path} is nested deeper than any setting: name a settings file"
        ) from error


def usual_data() -> Path:
    """The data directory that commands find which are typed here without ``--data``: what the
    environment of this process says is unknown to the next shell."""
    return Path(str(_file_values().get("data", DATA_DEFAULT)))


def load_settings() -> Settings:
    """Settings of file and environment; commands lay their flags over them with ``model_copy``.

    Raises:
        SettingsError: a value that cannot be used, or a file that cannot be read.
    """
    _check_environment()
    try:
        return Settings()
    except ValidationError as error:
        raise SettingsError(f"bad settings: {plain_errors(error, Settings)}") from error
    except ValueError as error:
        raise SettingsError(
            f"bad settings: {error}. Sections are set by PARTISCOPE_SECTION__NAME, or as JSON"
        ) from error
    except RecursionError as error:
        raise SettingsError(
            "bad settings: an environment variable is nested deeper than any setting"
        ) from error
