"""Which value a config has, and where it comes from.

Order, the first that is set wins. Topic: the topic's own; then what its broker property has on
this broker. Broker: altered for this broker; altered for all brokers; the properties file; the
default.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from broker.metadata.image import ConfigResource, MetadataImage, broker_resource, topic_resource
from broker.protocol.known_configs import (
    UNLISTED_CONFIGS,
    ConfigType,
    KnownConfig,
    broker_configs,
    topic_configs,
)

Names = Collection[str] | None
"""Configs that are asked for; None: all."""


class ConfigSource(IntEnum):
    """Kafka's config sources, by their number in DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class NodeConfig(Protocol):
    """The part of broker.config.broker_config.BrokerConfig that is used here."""

    @property
    def node_id(self) -> int: ...
    @property
    def properties(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    """One of the places that could give a value."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One config with its value; `synonyms` begin with what is in force."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    is_read_only: bool
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]


def effective_topic_config(
    image: MetadataImage, broker_config: NodeConfig, topic: str
) -> dict[str, str]:
    """Every topic config by Kafka's topic config name, as in force on this broker."""
    own = image.config(topic_resource(topic))
    values: dict[str, str] = {}
    for name, known in topic_configs().items():
        value = own.get(name)
        if value is None:
            value = _inherited(image, broker_config, known)
        if value is not None:
            values[name] = value
    return values


def topic_config_value(
    image: MetadataImage, broker_config: NodeConfig, topic: str, name: str
) -> str | None:
    """One topic config, as in force on this broker."""
    value = image.config(topic_resource(topic)).get(name)
    return _inherited(image, broker_config, topic_configs()[name]) if value is None else value


def topic_flag(image: MetadataImage, broker_config: NodeConfig, topic: str, name: str) -> bool:
    """One boolean topic config, without computing the others."""
    return (topic_config_value(image, broker_config, topic, name) or "").lower() == "true"


def effective_broker_config(image: MetadataImage, broker_config: NodeConfig) -> dict[str, str]:
    """Every broker config that has a value, as in force on this broker."""
    values: dict[str, str] = {}
    for name, known in broker_configs().items():
        synonyms = _broker_synonyms(image, broker_config, known)
        if synonyms and synonyms[0].value is not None:
            values[name] = synonyms[0].value
    return values


def broker_config_value(image: MetadataImage, broker_config: NodeConfig, name: str) -> str | None:
    """One broker config, as in force on this broker."""
    synonyms = _broker_synonyms(image, broker_config, broker_configs()[name])
    return synonyms[0].value if synonyms else None


def describe_topic(
    image: MetadataImage, broker_config: NodeConfig, topic: str, names: Names = None
) -> list[ConfigEntry]:
    """All configs of a topic by name, or some."""
    own = image.config(topic_resource(topic))
    return describe_topic_configs(image, broker_config, own, names)


def describe_topic_configs(
    image: MetadataImage,
    broker_config: NodeConfig,
    own: Mapping[str, str | None],
    names: Names = None,
) -> list[ConfigEntry]:
    """All configs of a topic that sets `own`, by name, or some."""
    return [
        _entry(known, _topic_synonyms(image, broker_config, known, own.get(name)))
        for name, known in sorted(topic_configs().items())
        if (names is None or name in names) and (known not in UNLISTED_CONFIGS or name in own)
    ]


def describe_broker(
    image: MetadataImage, broker_config: NodeConfig, names: Names = None
) -> list[ConfigEntry]:
    """All configs of this broker by name, or some."""
    return [
        _entry(known, _broker_synonyms(image, broker_config, known))
        for name, known in sorted(broker_configs().items())
        if names is None or name in names
    ]


def describe_default_broker(image: MetadataImage, names: Names = None) -> list[ConfigEntry]:
    """Configs altered for all brokers, or some of them."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return [
        _entry(broker_configs()[name], (ConfigSynonym(name=name, value=value, source=source),))
        for name, value in sorted(image.config(broker_resource(None)).items())
        if name in broker_configs() and (names is None or name in names)
    ]


def describe_resource(
    image: MetadataImage,
    resource: ConfigResource,
    known: Mapping[str, KnownConfig],
    source: ConfigSource,
    names: Names = None,
) -> list[ConfigEntry]:
    """All configs that a group or a subscription may have, or some."""
    own = image.config(resource)
    return [
        _entry(config, _own_synonyms(config, own.get(name), source))
        for name, config in sorted(known.items())
        if names is None or name in names
    ]


def _own_synonyms(
    known: KnownConfig, own: str | None, source: ConfigSource
) -> tuple[ConfigSynonym, ...]:
    layers = ((own, source), (known.default, ConfigSource.DEFAULT_CONFIG))
    return tuple(
        ConfigSynonym(name=known.name, value=value, source=source)
        for value, source in layers
        if value is not None
    )


def _entry(known: KnownConfig, synonyms: tuple[ConfigSynonym, ...]) -> ConfigEntry:
    default = ConfigSynonym(
        name=known.name, value=known.default, source=ConfigSource.DEFAULT_CONFIG
    )
    in_force = synonyms[0] if synonyms else default
    return ConfigEntry(
        name=known.name,
        value=_value_in_force(known, synonyms),
        source=in_force.source,
        type=known.type,
        is_read_only=not known.is_dynamic,
        documentation=known.doc,
        synonyms=synonyms,
    )


def _topic_synonyms(
    image: MetadataImage, broker_config: NodeConfig, known: KnownConfig, own: str | None
) -> tuple[ConfigSynonym, ...]:
    found: list[ConfigSynonym] = []
    if own is not None:
        source = ConfigSource.DYNAMIC_TOPIC_CONFIG
        found.append(ConfigSynonym(name=known.name, value=own, source=source))
    for place, (server_name, _) in enumerate(known.server_synonyms):
        inherited = _server_synonyms(image, broker_config, server_name)
        # As in Kafka, a default counts under the first name only: log.retention.hours=168 is
        # no synonym that stands behind retention.ms, its setting by hand is.
        found += [s for s in inherited if not place or s.source is not ConfigSource.DEFAULT_CONFIG]
    return tuple(sorted(found, key=lambda synonym: synonym.source))


def _server_synonyms(
    image: MetadataImage, broker_config: NodeConfig, server_name: str
) -> tuple[ConfigSynonym, ...]:
    known = broker_configs().get(server_name)
    return () if known is None else _broker_synonyms(image, broker_config, known)


def _inherited(image: MetadataImage, broker_config: NodeConfig, known: KnownConfig) -> str | None:
    synonyms = _topic_synonyms(image, broker_config, known, None)
    return _value_in_force(known, synonyms)


def _broker_synonyms(
    image: MetadataImage, broker_config: NodeConfig, known: KnownConfig
) -> tuple[ConfigSynonym, ...]:
    name = known.name
    own = image.config(broker_resource(broker_config.node_id)).get(name)
    shared = image.config(broker_resource(None)).get(name)
    layers = (
        (own, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (shared, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (broker_config.properties.get(name), ConfigSource.STATIC_BROKER_CONFIG),
        (known.default, ConfigSource.DEFAULT_CONFIG),
    )
    return tuple(
        ConfigSynonym(name=name, value=value, source=source)
        for value, source in layers
        if value is not None
    )


def _value_in_force(known: KnownConfig, synonyms: Sequence[ConfigSynonym]) -> str | None:
    """The first synonym's value in the unit of `known`."""
    if not synonyms:
        return known.default
    first = synonyms[0]
    return _scaled(first.value, dict(known.server_synonyms).get(first.name, 1))


def _scaled(value: str | None, factor: int) -> str | None:
    """A value in the topic's unit; -1 means forever in every unit."""
    if value is None or factor == 1 or value.strip() == "-1":
        return value
    return str(int(value) * factor)
