"""Kafka's access rights: operations, the bits in which brokers tell them, and what grants them.

Brokers tell what a principal may do as bits of authorized operations (KIP-430).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from operator import and_
from shlex import quote
from typing import Any, Final

from kio.schema.errors import ErrorCode

from control.kafka.connection.settings import KafkaSettings

NO_BITS: Final = -2147483648
"""What brokers answer when they were not asked, or are too old to tell."""

UNKNOWN_NAME: Final = "NAME"
"""Of a principal that only the brokers know: of a certificate, a ticket or a token."""
_PLAINTEXT: Final = "PLAINTEXT"
_PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class AclOperation(IntEnum):
    """Kafka's ACL operations; the code is the place of the bit."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11


Lacking = tuple[tuple[AclOperation, str], ...]
"""ACL operations, each with the kind of resource."""


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


def missing_rights(bits: Mapping[str, int], needed: Mapping[str, Lacking]) -> dict[str, Lacking]:
    """Per operation that is not allowed, the rights that it lacks, and those not yet known.

    ``needed`` by operation; topics and groups are judged by those that allow least. ``bits`` by
    kind of resource: the cluster's, those common to all topics and to all groups; NO_BITS where
    brokers do not tell, or nothing of the kind was judged so far.
    """
    missing: dict[str, Lacking] = {}
    for name, rights in needed.items():
        lacking = tuple(
            (operation, resource)
            for operation, resource in rights
            if bits[resource] == NO_BITS or not bits[resource] >> operation & 1
        )
        if any(bits[resource] != NO_BITS for _, resource in lacking):
            missing[name] = lacking
    return missing


def bits_of_topics(topics: Iterable[Any]) -> int:
    """Rights on every topic of a Metadata answer, internal ones aside."""
    return common_bits(
        getattr(topic, "topic_authorized_operations", NO_BITS)
        for topic in topics
        if topic.error_code is ErrorCode.none and not topic.name.startswith("__")
    )


def common_bits(each: Iterable[int]) -> int:
    """Rights that each of them has; NO_BITS where brokers do not tell."""
    told = [bits for bits in each if bits != NO_BITS]
    return reduce(and_, told) if told else NO_BITS


def words_of(lacking: Lacking) -> str:
    """Rights in words: ``ALTER on the cluster and WRITE on topics``."""
    return " and ".join(
        f"{operation.name} on {'the cluster' if resource == 'cluster' else f'{resource}s'}"
        for operation, resource in lacking
    )
