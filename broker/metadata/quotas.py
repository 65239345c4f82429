"""Client quotas, and which of them binds a client: Kafka's order of precedence.

A quota binds a user, a client id, both together, or an address; None in place of a name is the
default for all who have no quota of their own.
"""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""(type, name) of each part, ordered by type."""
Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class Measured(NamedTuple):
    """Clients that are measured together; "" stands for any."""

    user: str
    client_id: str


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """The entity with these parts; of a type that is named twice the last name counts."""
    return tuple(sorted(dict(parts).items(), key=lambda it: it[0]))


def _plain(entity: QuotaEntity) -> QuotaEntity:
    """An address as it is usually written, whoever wrote it."""
    kind, name = entity[0]
    if kind != IP or not name:
        return entity
    try:
        return ((IP, str(ip_address(name))),)
    except ValueError:
        return entity  # Kafka takes names of hosts as well


class QuotaLimits:
    """Quotas of one key, such as ``producer_byte_rate``; never changed."""

    __slots__ = ("_limits",)

    def __init__(self, quotas: Quotas, key: str) -> None:
        self._limits = {_plain(entity): it[key] for entity, it in quotas.items() if key in it}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def measured(self, user: str, client_id: str) -> Measured:
        """Whom a client is measured with (DefaultQuotaCallback.quotaMetricTags)."""
        both, one = Measured(user, client_id), Measured(user, "")
        for by_user in (user, None):
            if self._has(by_user, client_id) or self._has(by_user, None):
                return both
            if ((USER, by_user),) in self._limits:
                return one
        return Measured("", client_id)

    def _has(self, user: str | None, client_id: str | None) -> bool:
        return ((CLIENT_ID, client_id), (USER, user)) in self._limits

    def limit(self, measured: Measured) -> float | None:
        """The quota of those who are measured together (DefaultQuotaCallback.quotaLimit)."""
        user, client_id = measured
        candidates: tuple[QuotaEntity, ...]
        if user and client_id:
            candidates = tuple(
                ((CLIENT_ID, by_id), (USER, by_user))
                for by_user in (user, None)
                for by_id in (client_id, None)
            )
        elif user:
            candidates = (((USER, user),), ((USER, None),))
        else:
            candidates = (((CLIENT_ID, client_id),), ((CLIENT_ID, None),)) if client_id else ()
        return next((self._limits[it] for it in candidates if it in self._limits), None)

    def of_address(self, address: str) -> float | None:
        """The quota of an address."""
        own = self._limits.get(_plain(((IP, address),)))
        return self._limits.get(((IP, None),)) if own is None else own
