"""SASL of a listener: its mechanisms, its users, and who this node is when it logs in elsewhere.

Users of PLAIN stand in ``listener.name.<name>.plain.sasl.jaas.config``, as Kafka's
PlainLoginModule reads them: ``user_alice="secret"`` lets alice in, ``username`` and ``password``
are this node's own. Users of SCRAM are records of the metadata log; the first ones of a cluster
stand in ``partiscope.bootstrap.scram``, as ``kafka-storage format --add-scram`` takes them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final

from broker.config.errors import ConfigError
from broker.protocol.scram import BY_LABEL, ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *BY_LABEL)
BOOTSTRAP_SCRAM: Final = "partiscope.bootstrap.scram"
_MODULES: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    **dict.fromkeys(BY_LABEL, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}
_USER: Final = "user_"
_OF_CONTROLLERS: Final = "sasl.mechanism.controller.protocol"
_READ: Final = (
    "sasl.enabled.mechanisms",
    "sasl.mechanism.inter.broker.protocol",
    _OF_CONTROLLERS,
    BOOTSTRAP_SCRAM,
)
_JAAS: Final = r"\s*{}\s+(?:required|requisite|sufficient)\b\s*(.*?);\s*"
_OPTION: Final = re.compile(r'\s*([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))', re.S)
_BOOTSTRAP: Final = re.compile(r"\s*(SCRAM-SHA-(?:256|512))=\[(.*)\]\s*")


def is_read_by_sasl(name: str) -> bool:
    """Whether a property has its effect here, for all listeners or for one."""
    bare = re.sub(r"^listener\.name\.[^.]+\.", "", name)
    modules = [f"{it.lower()}.sasl.jaas.config" for it in MECHANISMS]
    return bare in _READ or (bare != name and bare in modules)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLogin:
    """How this node logs in to others."""

    mechanism: str
    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapUser:
    """One whom a new cluster lets in by SCRAM."""

    mechanism: ScramMechanism
    name: str
    password: str = field(repr=False)
    iterations: int = ITERATIONS_MIN


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslConfig:
    """How clients log in to one listener, and how this node does to others' of that name."""

    mechanisms: tuple[str, ...]
    users: Mapping[str, str] = field(repr=False)
    """Passwords by name, for PLAIN."""
    own: OwnLogin | None
    """None: it logs in nowhere."""

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
                f"{enabled[0]}={PLAIN}, or others of them"
            )
        users: dict[str, str] = {}
        if PLAIN in mechanisms:
            key, options = _options(properties, listener, PLAIN)
            users = {
                name.removeprefix(_USER): password
                for name, password in options.items()
                if name.startswith(_USER)
            }
            if not users:
                raise ConfigError(f'{key} has no users; add user_NAME="PASSWORD" for each')
        own = _own_login(properties, listener, logs_in, mechanisms) if logs_in else None
        return cls(mechanisms=mechanisms, users=users, own=own)

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


def _own_login(
    properties: Mapping[str, str], listener: str, named: str, mechanisms: Sequence[str]
) -> OwnLogin:
    named_here, chosen = _value(properties, listener, named, "GSSAPI")
    if chosen not in mechanisms:
        raise ConfigError(
            f"{named_here}={chosen} is not among the enabled mechanisms of {listener}; write "
            f"{named_here}={mechanisms[0]}"
        )
    if named == _OF_CONTROLLERS and chosen != PLAIN:
        raise ConfigError(
            f"{named_here}={chosen}: voters know the users of SCRAM only once one of them leads; "
            f"write {named_here}={PLAIN}"
        )
    key, options = _options(properties, listener, chosen)
    name, password = options.get("username", ""), options.get("password", "")
    if not (name and password):
        raise ConfigError(
            f'{key} lacks username="…" password="…", by which this node logs in; add both'
        )
    return OwnLogin(mechanism=chosen, name=name, password=password)


def _options(
    properties: Mapping[str, str], listener: str, mechanism: str
) -> tuple[str, dict[str, str]]:
    """The property and its options of the login module. Messages hold nothing of the text:
    passwords are in it."""
    key = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text, module = properties.get(key, ""), _MODULES[mechanism]
    if not text.strip():
        raise ConfigError(f'{key} is missing; write {key}={module} required NAME="VALUE";')
    found = re.fullmatch(_JAAS.format(re.escape(module)), text, re.S)
    if found is None:
        raise ConfigError(
            f'{key} is not `{module} required NAME="VALUE" …;`, with a semicolon last'
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
    return key, options


def bootstrap_users(properties: Mapping[str, str]) -> tuple[BootstrapUser, ...]:
    """The users of ``partiscope.bootstrap.scram``, which semicolons separate.

    :raises ConfigError: an entry that is none. Messages hold nothing of it: passwords are in it.
    """
    entries = [it for it in properties.get(BOOTSTRAP_SCRAM, "").split(";") if it.strip()]
    return tuple(_bootstrap_user(number, it) for number, it in enumerate(entries, 1))


def _bootstrap_user(number: int, entry: str) -> BootstrapUser:
    found = _BOOTSTRAP.fullmatch(entry)
    parts = dict(it.strip().partition("=")[::2] for it in found[2].split(",")) if found else {}
    given = {name: it[1:-1] if re.fullmatch('".*"', it) else it for name, it in parts.items()}
    iterations = given.get("iterations", str(ITERATIONS_MIN))
    is_known = set(given) <= {"name", "password", "iterations"}
    if not (found and is_known and given.get("name") and given.get("password")):
        raise ConfigError(
            f"{BOOTSTRAP_SCRAM}: entry {number} cannot be read; write "
            "SCRAM-SHA-256=[name=NAME,password=PASSWORD], with a semicolon between entries"
        )
    if not (re.fullmatch("[0-9]{1,6}", iterations)) or not (
        ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX
    ):
        raise ConfigError(
            f"{BOOTSTRAP_SCRAM}: entry {number} has iterations={iterations}; write a number from "
            f"{ITERATIONS_MIN} to {ITERATIONS_MAX}"
        )
    return BootstrapUser(
        mechanism=BY_LABEL[found[1]],
        name=given["name"],
        password=given["password"],
        iterations=int(iterations),
    )
