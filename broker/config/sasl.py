"""SASL of a listener: its mechanisms, its users, and who this node is when it logs in elsewhere.

Users stand in ``listener.name.<name>.plain.sasl.jaas.config``, as Kafka's PlainLoginModule reads
them: ``user_alice="secret"`` lets alice in, ``username`` and ``password`` are this node's own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final

from broker.config.errors import ConfigError

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN,)
_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USER: Final = "user_"
_READ: Final = (
    "sasl.enabled.mechanisms",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.mechanism.controller.protocol",
)
_JAAS: Final = re.compile(
    rf"\s*{re.escape(_MODULE)}\s+(?:required|requisite|sufficient)\s+(.*?);\s*", re.S
)
_OPTION: Final = re.compile(r'\s*([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))', re.S)


def is_read_by_sasl(name: str) -> bool:
    """Whether a property has its effect here, for all listeners or for one."""
    bare = re.sub(r"^listener\.name\.[^.]+\.", "", name)
    return bare in _READ or (bare != name and bare == "plain.sasl.jaas.config")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslConfig:
    """How clients log in to one listener, and how this node does to others' of that name."""

    mechanisms: tuple[str, ...]
    users: Mapping[str, str] = field(repr=False)
    """Passwords by name."""
    own: tuple[str, str] | None = field(repr=False)
    """Name and password; None: it logs in nowhere."""

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], listener: str, *, logs_in: str = ""
    ) -> "SaslConfig":
        """Read the properties of one listener; ``logs_in`` names the property with the mechanism
        by which this node logs in through it, where it does.

        :raises ConfigError: a mechanism that is not spoken, users or a password that lack.
        """
        enabled = _value(properties, listener, "sasl.enabled.mechanisms", "GSSAPI")
        mechanisms = tuple(part.strip() for part in enabled[1].split(",") if part.strip())
        if not mechanisms or not set(mechanisms) <= set(MECHANISMS):
            raise ConfigError(
                f"{enabled[0]}={enabled[1]}: this broker speaks {', '.join(MECHANISMS)}; write "
                f"{enabled[0]}={PLAIN}"
            )
        key = f"listener.name.{listener.lower()}.plain.sasl.jaas.config"
        options = _options(key, properties.get(key, ""))
        users = {
            name.removeprefix(_USER): password
            for name, password in options.items()
            if name.startswith(_USER)
        }
        if not users:
            raise ConfigError(f'{key} has no users; add user_NAME="PASSWORD" for each')
        own = (options.get("username", ""), options.get("password", ""))
        if logs_in:
            _check_own(properties, listener, logs_in, key, own)
        return cls(mechanisms=mechanisms, users=users, own=own if all(own) else None)

    def is_right(self, name: str, password: str) -> bool:
        """Whether this is a user's password; it takes as long where there is no such user."""
        known = self.users.get(name)
        is_same = compare_digest(password.encode(), (known or "").encode())
        return is_same and known is not None


def _value(
    properties: Mapping[str, str], listener: str, name: str, default: str
) -> tuple[str, str]:
    own = f"listener.name.{listener.lower()}.{name}"
    key = own if own in properties else name
    return key, properties.get(key, default).strip()


def _check_own(
    properties: Mapping[str, str], listener: str, mechanism: str, key: str, own: tuple[str, str]
) -> None:
    named, chosen = _value(properties, listener, mechanism, "GSSAPI")
    if chosen not in MECHANISMS:
        raise ConfigError(f"{named}={chosen}: write {named}={PLAIN}, by which brokers log in here")
    if not all(own):
        raise ConfigError(f'{key} lacks username="…" password="…", by which this node logs in')


def _options(key: str, text: str) -> dict[str, str]:
    """Options of the login module. Messages hold nothing of the text: passwords are in it."""
    if not text.strip():
        raise ConfigError(f'{key} is missing; write {key}={_MODULE} required user_NAME="PASSWORD";')
    found = _JAAS.fullmatch(text)
    if found is None:
        raise ConfigError(
            f'{key} is not `{_MODULE} required NAME="VALUE" …;`, with a semicolon last'
        )
    options: dict[str, str] = {}
    body, at = found[1].strip(), 0
    while at < len(body):
        option = _OPTION.match(body, at)
        if option is None:
            raise ConfigError(
                f'{key}: behind {len(options)} options comes none; write NAME="VALUE"'
            )
        quoted = option[2]
        options[option[1]] = option[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = option.end()
    return options
