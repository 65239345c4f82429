"""The authorizer of a node: whether there is one, and who may do everything."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.config.errors import ConfigError

_CLASS: Final = "authorizer.class.name"
_SUPER: Final = "super.users"
_UNLISTED: Final = "allow.everyone.if.no.acl.found"
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def is_read_by_authorizer(name: str) -> bool:
    """Whether a property has its effect here."""
    return name in (_CLASS, _SUPER, _UNLISTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerConfig:
    """Kafka's StandardAuthorizer, configured."""

    super_users: frozenset[str]
    """As ``User:alice``."""
    allows_unlisted: bool
    """Everybody may use what no access control entry names."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "AuthorizerConfig | None":
        """None where everybody may do everything.

        :raises ConfigError: another authorizer, what is no principal, rights without one.
        """
        name = properties.get(_CLASS, "").strip()
        if name not in ("", STANDARD):
            raise ConfigError(f"{_CLASS}={name}: this broker loads no classes; write {STANDARD}")
        text = properties.get(_SUPER, "")
        users = frozenset(it.strip() for it in text.split(";") if it.strip())
        for user in sorted(users):
            if not all(user.partition(":")):
                raise ConfigError(f"{_SUPER}: {user} is no principal; write User:{user.strip(':')}")
        unlisted = properties.get(_UNLISTED, "").strip().lower()
        if unlisted not in ("", "true", "false"):
            raise ConfigError(
                f"{_UNLISTED}={unlisted} is neither true nor false; write one of them"
            )
        if not name and users:
            raise ConfigError(
                f"{_SUPER} is set, and nobody is refused anything without {_CLASS}; write "
                f"{_CLASS}={STANDARD}"
            )
        return cls(super_users=users, allows_unlisted=unlisted == "true") if name else None
