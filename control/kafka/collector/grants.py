"""The whole command of Kafka's own ``kafka-acls`` that grants what a principal lacks. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Final

from control.kafka.collector.rights import Lacking
from control.kafka.connection.settings import KafkaSettings

UNKNOWN_NAME: Final = "NAME"
"""Of a principal that only the brokers know: of a certificate, a ticket or a token."""
_PLAINTEXT: Final = "PLAINTEXT"
_PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """Commands that grant rights on one cluster to the principal that watches it."""

    bootstrap: str
    principal: str
    is_secured: bool
    """Whoever grants must say who he is, with a properties file of his own."""

    @classmethod
    def to(cls, settings: KafkaSettings) -> "Grants":
        """To whom these settings say that we are."""
        is_sasl = settings.security_protocol.startswith("SASL")
        has_name = is_sasl and settings.sasl_mechanism in _PASSWORD_MECHANISMS
        return cls(
            bootstrap=settings.bootstrap,
            principal=(has_name and settings.sasl_username) or UNKNOWN_NAME,
            is_secured=settings.security_protocol != _PLAINTEXT,
        )

    def commands(self, *rights: Lacking) -> tuple[str, ...]:
        """One command per kind of resource, each right once."""
        wanted: dict[str, dict[str, None]] = {}
        for operation, resource in (each for lacking in rights for each in lacking):
            words = operation.name.split("_")
            name = "".join(word.capitalize() for word in words)
            wanted.setdefault(resource, {})[name] = None
        return tuple(self._command(kind, operations) for kind, operations in wanted.items())

    def _command(self, resource: str, operations: Mapping[str, None]) -> str:
        login = ("--command-config", "ADMIN.properties") if self.is_secured else ()
        target = ("--cluster",) if resource == "cluster" else (f"--{resource}", "'*'")
        named = (word for name in operations for word in ("--operation", name))
        words = (
            *("kafka-acls.sh", "--bootstrap-server", self.bootstrap, *login),
            *("--add", "--allow-principal", quote(f"User:{self.principal}"), *named, *target),
        )
        return " ".join(words)
