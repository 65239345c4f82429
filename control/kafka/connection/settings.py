"""How to reach a cluster: one value shared by admin, producer and reader."""

import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from broker.host_name import is_host_name

PORT_MAX: Final = 65_535
_ADDRESS: Final = re.compile(r"(?:\[([^\[\]]+)\]|([^:]+)):([0-9]+)")
"""An address of version 6 stands in brackets."""
QUOTED_CHARACTERS_MAX: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """Where a registry is, and how it lets us in."""

    url: str
    """The folder that holds ``schemas`` and ``subjects``."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ssl_context: ssl.SSLContext | None = None
    timeout_s: float = 5.0
    """Of one schema with all that it refers to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Where a cluster is and how to speak to it.

    `bootstrap` is HOST:PORT[,HOST:PORT…]; any one of the brokers is enough.
    """

    bootstrap: str
    client_id: str = "partiscope"
    cluster_id: str | None = None
    """The cluster that must answer there; None: whichever does."""
    request_timeout_ms: int = 15_000
    connect_timeout_ms: int = 3_000
    attempts_max: int = 5
    """Sendings of one request, the first included; a bound, not a promise."""
    backoff_ms: int = 100
    """Doubled after each failed attempt, at most `backoff_ms_max`."""
    backoff_ms_max: int = 2_000
    metadata_age_ms_max: int = 10_000
    """aiokafka's consumer keeps asking a leader that moved until its metadata is this old."""
    security_protocol: str = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = None
    sasl_mechanism: str = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None
    sasl_token: Callable[[], Awaitable[str]] | None = field(default=None, repr=False)
    """Gives the bearer token of OAUTHBEARER; asked for every connection."""

    schema_registry: RegistrySettings | None = None
    """Where the schemas of its messages are; None: nowhere that is known."""

    def addresses(self) -> tuple[tuple[str, int], ...]:
        """The bootstrap addresses as (host, port).

        :raises ValueError: an entry is not HOST:PORT.
        """
        return tuple(_parse_address(entry) for entry in self.bootstrap.split(",") if entry.strip())

    def security_options(self) -> dict[str, Any]:
        """Keyword arguments that every aiokafka class takes for TLS and SASL."""
        return {
            "security_protocol": self.security_protocol,
            "ssl_context": self.ssl_context,
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_plain_username": self.sasl_username,
            "sasl_plain_password": self.sasl_password,
            "sasl_kerberos_service_name": self.sasl_kerberos_service_name,
            "sasl_kerberos_domain_name": self.sasl_kerberos_domain_name,
            "sasl_oauth_token_provider": _provider(self.sasl_token),
        }


def _provider(token: Callable[[], Awaitable[str]] | None) -> Any:
    if token is None:
        return None
    from control.kafka.connection.bearer import provider_of  # aiokafka comes with it

    return provider_of(token)


def without_user(text: str) -> str:
    """An address or URL as it may be shown: without the user and password that it may hold."""
    head, at, tail = text.rpartition("@")
    scheme, slashes, _ = head.partition("://")
    return f"{scheme}{slashes}…@{tail}" if at and slashes else f"…@{tail}" if at else text


def quoted(value: object) -> str:
    """A value of the settings as an error shows it: on one line, cut where it is long, without the
    user and password of an address or URL."""
    text = repr(without_user(value.strip()) if isinstance(value, str) else value)
    return text if len(text) <= QUOTED_CHARACTERS_MAX else f"{text[:QUOTED_CHARACTERS_MAX]}…"


def _parse_address(entry: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(entry.strip())
    host = (found[1] or found[2]) if found else ""
    if not found or not is_host_name(host) or (found[1] and ":" not in host):
        raise ValueError(f"{quoted(entry)} is not an address of the form HOST:PORT")
    if len(found[3]) > 5 or not 1 <= int(found[3]) <= PORT_MAX:
        raise ValueError(f"{quoted(entry)} has no port from 1 to {PORT_MAX}")
    return host, int(found[3])
