"""Every config that the cluster knows: Kafka's names, types, defaults, texts and valid values.

The table is known_configs.json, taken from Apache Kafka 4.1, and NEWER_CONFIGS from later ones.
Where our default differs from Kafka's, OUR_DEFAULTS says so, and OUR_CONFIGS are beside Kafka's.
Segments may be as small as 14 bytes (Kafka: 1 MiB), so that a roll can be shown with little data.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources
from math import isnan
from types import MappingProxyType
from typing import Any, Final


class ConfigType(IntEnum):
    """Kafka's config types, by their number in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownConfig:
    """One config.

    `server_synonyms` of a topic's config are the broker properties that give its default, most
    specific first, with the factor from their unit to the topic's. `is_dynamic` says whether a
    broker's config can be altered while it runs.
    """

    name: str
    type: ConfigType
    default: str | None
    valid: str
    doc: str
    server_synonyms: tuple[tuple[str, int], ...] = ()
    is_dynamic: bool = True
    is_per_broker: bool = False
    """Whether it cannot be altered for all brokers at once."""


OUR_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": "2500",
        "controller.quorum.election.timeout.ms": "300",
        "controller.quorum.fetch.timeout.ms": "1500",
        "replica.fetch.max.bytes": "2097152",
    }
)

OUR_CONFIGS: Final = (
    KnownConfig(
        name="queued.max.request.bytes",
        type=ConfigType.LONG,
        default="268435456",
        valid="",
        doc="The number of queued bytes allowed before no more requests are read. -1: no bound.",
        is_dynamic=False,
    ),
    KnownConfig(
        name="partiscope.replica.fetch.backoff.first.ms",
        type=ConfigType.INT,
        default="20",
        valid="[1,...]",
        doc="How long a follower waits after a partition's first fetch error in a row; doubled at "
        "each further one up to replica.fetch.backoff.ms.",
        is_dynamic=False,
    ),
)
"""Of brokers, beside Kafka's: what clients have a use for."""

NEWER_CONFIGS: Final = (
    KnownConfig(
        name="cordoned.log.dirs",
        type=ConfigType.LIST,
        default="",
        valid="",
        doc="A comma-separated list of the directories that are cordoned. Entries in this list "
        "must be entries in log.dirs or log.dir configuration. This can also be set to * to "
        "cordon all log directories.",
        is_per_broker=True,
    ),
)
"""Of brokers, of releases after 4.1."""

UNLISTED_CONFIGS: Final = (
    KnownConfig(
        name="remote.storage.enable",
        type=ConfigType.BOOLEAN,
        default="false",
        valid="no tiers",
        doc="To enable tiered storage for a topic, set this configuration to true.",
    ),
    KnownConfig(
        name="remote.log.copy.disable",
        type=ConfigType.BOOLEAN,
        default="false",
        valid="",
        doc="Determines whether tiered data for a topic should become read only, and no more data "
        "uploading on a topic.",
    ),
    KnownConfig(
        name="remote.log.delete.on.disable",
        type=ConfigType.BOOLEAN,
        default="false",
        valid="",
        doc="Determines whether tiered data for a topic should be deleted after tiered storage is "
        "disabled on a topic.",
    ),
    KnownConfig(
        name="local.retention.ms",
        type=ConfigType.LONG,
        default="-2",
        valid="[-2,...]",
        doc="The number of milliseconds to keep the local log segment before it gets deleted. "
        "Default value is -2, it represents `retention.ms` value is to be used.",
    ),
    KnownConfig(
        name="local.retention.bytes",
        type=ConfigType.LONG,
        default="-2",
        valid="[-2,...]",
        doc="The maximum size of local log segments that can grow for a partition before it "
        "deletes the old segments. Default value is -2, it represents `retention.bytes` value to "
        "be used.",
    ),
    KnownConfig(
        name="internal.segment.bytes",
        type=ConfigType.INT,
        default=None,
        valid="[14,...]",
        doc="The maximum size of a single log file. This should be used for testing only.",
    ),
)
"""Of topics: those of a real cluster are copied with them. They are listed where they are set."""

_OUR_VALID: Final = MappingProxyType(
    {
        "preallocate": "false",
        "log.preallocate": "false",
        "offsets.topic.compression.codec": "[0,...,4]",
        "max.connections": "[1,...]",
    }
)
"""Values that are fewer than Kafka's, or that Kafka judges elsewhere."""

_HOUR_MS: Final = 3_600_000
_SYNONYMS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = MappingProxyType(
    {
        "retention.ms": (
            ("log.retention.ms", 1),
            ("log.retention.minutes", 60_000),
            ("log.retention.hours", _HOUR_MS),
        ),
        "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
        "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
        "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    }
)


@cache
def topic_configs() -> Mapping[str, KnownConfig]:
    """Configs of a topic by name."""
    listed = {c["name"]: _known(c) for c in _table()["topic"]}
    return MappingProxyType({**listed, **{it.name: it for it in UNLISTED_CONFIGS}})


@cache
def broker_configs() -> Mapping[str, KnownConfig]:
    """Configs of a broker by name."""
    kafkas = {c["name"]: _known(c) for c in _table()["broker"]}
    return MappingProxyType({**kafkas, **{it.name: it for it in (*NEWER_CONFIGS, *OUR_CONFIGS)}})


def problem_of_value(config: KnownConfig, value: str) -> str:
    """The problem of a value in Kafka's words; empty: it is valid.

    A broker's config that gives topics their default takes only values that a topic can have.
    """
    return problem_of_type(config.type, value) or _problem_of_parsed(
        config, _parsed(config.type, value)
    )


def _problem_of_parsed(config: KnownConfig, value: Any) -> str:
    problem = _VALIDATORS.get(config.valid, _check_range)(config, value)
    topics_config, factor = _topics_configs().get(config.name, (None, 1))
    if problem or topics_config is None:
        return problem
    is_scaled = factor != 1 and value != -1
    return _problem_of_parsed(topics_config, value * factor if is_scaled else value)


@cache
def _topics_configs() -> Mapping[str, tuple[KnownConfig, int]]:
    """Broker's config -> the topic's config whose default it gives, and the factor to its unit.

    compression.type and others have one name and the same bounds for both, and are left out.
    """
    return {
        name: (config, factor)
        for config in topic_configs().values()
        for name, factor in config.server_synonyms
        if name != config.name
    }


def problem_of_type(type_: ConfigType, value: str) -> str:
    """The problem of a value that is not of the type; empty: it is. Bounds are not judged here."""
    try:
        _parsed(type_, value)
    except ValueError:
        return _TYPE_WORDS[type_]
    return ""


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    text = resources.files("broker.protocol").joinpath("known_configs.json").read_text("utf-8")
    table: dict[str, list[dict[str, Any]]] = json.loads(text)
    return table


def _known(entry: dict[str, Any]) -> KnownConfig:
    name: str = entry["name"]
    server = entry.get("server")
    return KnownConfig(
        name=name,
        type=ConfigType[entry["type"]],
        default=OUR_DEFAULTS.get(name, entry["default"]),
        valid=_OUR_VALID.get(name, entry.get("valid", "")),
        doc=entry["doc"],
        server_synonyms=_SYNONYMS.get(name, ((server, 1),) if server else ()),
        is_dynamic=entry.get("mode", "cluster-wide") != "read-only",
        is_per_broker=entry.get("mode") == "per-broker",
    )


_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_TYPE_WORDS: Final = {
    ConfigType.SHORT: "Not a number of type SHORT",
    ConfigType.INT: "Not a number of type INT",
    ConfigType.LONG: "Not a number of type LONG",
    ConfigType.DOUBLE: "Not a number of type DOUBLE",
    ConfigType.BOOLEAN: "Expected value to be either true or false",
}


def _parsed(type_: ConfigType, value: str) -> Any:
    """As Kafka's ConfigDef.parseType: blanks around a text are part of it."""
    return value if type_ is ConfigType.STRING else _PARSERS.get(type_, str)(value.strip())


def _parse_bool(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(value)
    return value.lower() == "true"


def _parse_double(value: str) -> float:
    number = float(value)
    if "_" in value or isnan(number):
        raise ValueError(value)
    return number


def _parse_integer(type_: ConfigType) -> Callable[[str], int]:
    limit = 1 << (_BITS[type_] - 1)

    def parse(value: str) -> int:
        number = int(value)
        if not -limit <= number < limit or "_" in value:
            raise ValueError(value)
        return number

    return parse


def _parse_list(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


_PARSERS: Final[dict[ConfigType, Callable[[str], Any]]] = {
    ConfigType.BOOLEAN: _parse_bool,
    ConfigType.SHORT: _parse_integer(ConfigType.SHORT),
    ConfigType.INT: _parse_integer(ConfigType.INT),
    ConfigType.LONG: _parse_integer(ConfigType.LONG),
    ConfigType.DOUBLE: _parse_double,
    ConfigType.LIST: _parse_list,
}


def _check_range(config: KnownConfig, value: Any) -> str:
    """`valid` is "[low,...]", "[low,...,high]", "[one, other]" or free."""
    bounds = config.valid.strip("[]").split(",...")
    if ",..." in config.valid:
        if value < float(bounds[0]):
            return f"Value must be at least {bounds[0]}"
        if bounds[1:] and bounds[1].strip(",") and value > float(bounds[1].strip(",")):
            return f"Value must be no more than {bounds[1].strip(',')}"
        return ""
    if not config.valid.startswith("["):
        return ""
    choices = config.valid.strip("[]").split(", ")
    wrong = [
        item for item in (value if isinstance(value, list) else [value]) if item not in choices
    ]
    if wrong:
        return f"String must be one of: {', '.join(choices)}"
    return ""


def _check_gzip_level(config: KnownConfig, value: int) -> str:
    return "" if value == -1 or 1 <= value <= 9 else "Value must be between 1 and 9 or equal to -1"


def _check_replicas(config: KnownConfig, value: list[str]) -> str:
    """KIP-73: empty, "*", or partition:broker,…"""
    if value in ([], ["*"]) or all(_is_pair(item) for item in value):
        return ""
    return (
        f"{config.name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def _is_pair(item: str) -> bool:
    partition, colon, broker = item.partition(":")
    return bool(colon) and partition.isdecimal() and broker.isdecimal()


def _check_false(config: KnownConfig, value: bool) -> str:
    if not value:
        return ""
    return "Value must be false: this broker does not reserve the space of a segment ahead"


def _check_no_tiers(config: KnownConfig, value: bool) -> str:
    if not value:
        return ""
    return (
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with "
        "remote log storage."
    )


def _check_not_empty(config: KnownConfig, value: list[str]) -> str:
    return "" if value else "Configuration value must not be empty"


_VALIDATORS: Final[dict[str, Callable[[KnownConfig, Any], str]]] = {
    "false": _check_false,
    "no tiers": _check_no_tiers,
    "[1,...,9] or -1": _check_gzip_level,
    "replicas": _check_replicas,
    "non-empty list": _check_not_empty,
}
_THREAD_COUNTS: Final = frozenset(
    {
        *("num.io.threads", "num.network.threads", "num.replica.fetchers"),
        *("num.recovery.threads.per.data.dir", "background.threads"),
    }
)
_LISTENERS: Final = frozenset({"listeners", "listener.security.protocol.map"})


def problem_of_alteration(config: KnownConfig, value: str, current: str) -> str:
    """The problem that a running broker has with a valid value, given the current one: the number
    of threads is at most halved or doubled, and listeners stay; empty: none."""
    if config.name in _LISTENERS:
        return "listeners stay while a broker runs: change them in its file, and start it again"
    if config.name not in _THREAD_COUNTS:
        return ""
    new, old = int(value), int(current)
    words = f"Dynamic thread count update validation failed for {config.name}={value}, value should"
    if new <= 0:
        return f"{words} be at least 1"
    if new < old // 2:
        return f"{words} be at least half the current value {old}"
    if new > old * 2:
        return f"{words} not be greater than double the current value {old}"
    return ""
