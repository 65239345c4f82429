"""Where a node listens, what it advertises, and by which listener brokers and voters talk.

Names are free, as in Kafka: ``listener.security.protocol.map`` gives each its protocol, and a name
that is a protocol's own needs no entry. Source: KafkaConfig.validateValues, SocketServerConfigs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from broker.config.errors import ConfigError
from broker.host_name import bare_host, is_host_name
from broker.metadata.records import BrokerEndpoint

CONTROLLER_PORT_OFFSET: Final = 10_000
PORT_MAX: Final = 65_535
_WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104  # refused as advertised, not bound


class SecurityProtocol(IntEnum):
    """Kafka's SecurityProtocol."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


WITH_TLS: Final = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
WITH_LOGIN: Final = (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Endpoints of one node."""

    clients: tuple[BrokerEndpoint, ...]
    """Bound for clients and for other brokers; an empty host is every address."""
    advertised: tuple[BrokerEndpoint, ...]
    """Of those: what others are told to connect to."""
    inter_broker: str
    """The name of the one by which brokers reach each other."""
    controller: BrokerEndpoint | None
    """None where the node is a broker alone."""
    controller_name: str
    controller_protocol: SecurityProtocol
    """How voters are reached."""

    @property
    def protocols(self) -> dict[str, int]:
        """The protocol of each listener, the controllers' among them."""
        protocols = {each.name: each.security_protocol for each in self.clients}
        return {**protocols, self.controller_name: self.controller_protocol}

    @property
    def among_brokers(self) -> BrokerEndpoint:
        """The advertised endpoint for other brokers."""
        return next(each for each in self.advertised if each.name == self.inter_broker)


def parse_listeners(properties: Mapping[str, str], *, is_controller: bool) -> Listeners:
    """Read and check everything that names a listener.

    :raises ConfigError: an address, a name or a protocol that cannot be used.
    """
    protocols = _parse_protocols(properties.get("listener.security.protocol.map", ""))
    text = properties.get("listeners", "").strip()
    if not text:
        raise ConfigError(
            "listeners is missing; add a line listeners=PLAINTEXT://:9092 to the configuration"
        )
    controllers = _names(properties.get("controller.listener.names", "")) or ("CONTROLLER",)
    bound = _parse_endpoints("listeners", text, protocols, extra=controllers)
    _refuse_doubles(bound)
    clients = tuple(each for each in bound if each.name not in controllers)
    if not clients:
        raise ConfigError(
            f"listeners={text} has none for clients; add one, like PLAINTEXT://127.0.0.1:9092"
        )
    advertised = _parse_advertised(properties, clients, protocols, controllers)
    inter_broker = _inter_broker(properties, advertised)
    beside = next(each for each in clients if each.name == inter_broker)
    protocol = protocols.get(controllers[0], SecurityProtocol.PLAINTEXT)
    controller = _controller(bound, controllers, beside, protocol)
    return Listeners(
        clients=clients,
        advertised=advertised,
        inter_broker=inter_broker,
        controller=controller if is_controller else None,
        controller_name=controller.name,
        controller_protocol=SecurityProtocol(controller.security_protocol),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip().upper() for part in text.split(",") if part.strip())


def _parse_protocols(text: str) -> dict[str, SecurityProtocol]:
    found = {it.name: it for it in SecurityProtocol}
    for entry in (part.strip() for part in text.split(",") if part.strip()):
        name, colon, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not (name and colon and protocol in SecurityProtocol.__members__):
            raise ConfigError(
                f"listener.security.protocol.map: {entry} is not NAME:PROTOCOL; protocols are "
                f"{', '.join(SecurityProtocol.__members__)}"
            )
        found[name] = SecurityProtocol[protocol]
    return found


def _parse_endpoints(
    key: str, text: str, protocols: Mapping[str, SecurityProtocol], *, extra: Sequence[str]
) -> tuple[BrokerEndpoint, ...]:
    return tuple(
        _parse_endpoint(key, part.strip(), protocols, extra)
        for part in text.split(",")
        if part.strip()
    )


def _parse_endpoint(
    key: str, part: str, protocols: Mapping[str, SecurityProtocol], controllers: Sequence[str]
) -> BrokerEndpoint:
    scheme, slashes, address = part.partition("://")
    host, colon, port = address.rpartition(":")
    is_port = re.fullmatch("[0-9]{1,5}", port) and int(port) <= PORT_MAX
    host = bare_host(host)
    is_host = not host or is_host_name(host)
    if not (slashes and colon and is_port and is_host):
        raise ConfigError(f"{key}: {part} is not NAME://HOST:PORT, like PLAINTEXT://:9092")
    name = scheme.strip().upper()
    usual = SecurityProtocol.PLAINTEXT if name in controllers else None
    protocol = protocols.get(name, usual)
    if protocol is None:
        raise ConfigError(
            f"{key}: {name} has no security protocol; add {name}:PLAINTEXT, or another one, to "
            "listener.security.protocol.map"
        )
    return BrokerEndpoint(name=name, host=host, port=int(port), security_protocol=protocol)


def _refuse_doubles(bound: Sequence[BrokerEndpoint]) -> None:
    """Two listeners may share a port only where they share no address."""
    names, taken = set[str](), dict[tuple[str, int], str]()
    for each in bound:
        if each.name in names:
            raise ConfigError(f"listeners names {each.name} twice; give each a name of its own")
        names.add(each.name)
        if not each.port:
            continue  # the system gives one
        for host, port in taken:
            overlaps = host == each.host or host in _WILDCARDS or each.host in _WILDCARDS
            if port == each.port and overlaps and {host, each.host} != {"0.0.0.0", "::"}:  # noqa: S104
                raise ConfigError(
                    f"listeners: {each.name} and {taken[host, port]} want port {port}; "
                    "give each a port of its own"
                )
        taken[each.host, each.port] = each.name


def _parse_advertised(
    properties: Mapping[str, str],
    clients: Sequence[BrokerEndpoint],
    protocols: Mapping[str, SecurityProtocol],
    controllers: Sequence[str],
) -> tuple[BrokerEndpoint, ...]:
    text = properties.get("advertised.listeners", "").strip()
    if not text:
        _refuse_wildcards(clients)
        return tuple(clients)
    told = _parse_endpoints("advertised.listeners", text, protocols, extra=controllers)
    bound = {each.name for each in clients}
    for each in told:
        if each.name not in bound:
            raise ConfigError(
                f"advertised.listeners names {each.name}, which is not among the listeners for "
                f"clients ({', '.join(sorted(bound))}); correct one of the two"
            )
    by_name = {each.name: each for each in told}
    _refuse_wildcards(by_name.values())
    return tuple(by_name[each.name] for each in clients if each.name in by_name)


def _refuse_wildcards(told: Iterable[BrokerEndpoint]) -> None:
    for each in told:
        if each.host in _WILDCARDS:
            raise ConfigError(
                "clients cannot connect to the wildcard address; write "
                f"advertised.listeners={each.name}://HOST:PORT with a reachable host"
            )


def _inter_broker(properties: Mapping[str, str], advertised: Sequence[BrokerEndpoint]) -> str:
    named = properties.get("inter.broker.listener.name", "").strip().upper()
    protocol = properties.get("security.inter.broker.protocol", "").strip().upper()
    if named and protocol:
        raise ConfigError(
            "inter.broker.listener.name and security.inter.broker.protocol exclude each other; "
            "write one of them"
        )
    names = [each.name for each in advertised]
    wanted = named or protocol or (names[0] if len(names) == 1 else "PLAINTEXT")
    if wanted not in names:
        raise ConfigError(
            f"inter.broker.listener.name: {wanted} is not advertised; name one of "
            f"{', '.join(names)}"
        )
    return wanted


def _controller(
    bound: Sequence[BrokerEndpoint],
    names: Sequence[str],
    beside: BrokerEndpoint,
    protocol: SecurityProtocol,
) -> BrokerEndpoint:
    """The one listed, else ten thousand ports above the brokers' own."""
    for name in names:
        for each in bound:
            if each.name == name:
                return each
    port = beside.port + CONTROLLER_PORT_OFFSET
    port = port if port <= PORT_MAX else beside.port - CONTROLLER_PORT_OFFSET
    return replace(beside, name=names[0], port=port, security_protocol=protocol)
