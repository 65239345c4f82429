"""Client quotas, altered (KIP-546, Kafka's ClientQuotaControlManager), and the one that the
controller itself counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import isnan
from typing import Final

from broker.controller.decision import Accepted, Decision, Rejected, Verdict, named_twice
from broker.controller.errors import (
    ControllerError,
    InvalidConfigRequestError,
    ThrottlingQuotaExceededError,
)
from broker.metadata.client_quotas import ClientQuotas
from broker.metadata.image import MetadataImage
from broker.metadata.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
)
from broker.metadata.records import MetadataRecord
from broker.metadata.snapshot import quota_record
from broker.protocol.request_context import RequestContext

_LONG_MAX: Final = float(2**63 - 1)
_OF_CLIENTS: Final = {
    PRODUCER_BYTE_RATE: _LONG_MAX,
    CONSUMER_BYTE_RATE: _LONG_MAX,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_OF_ADDRESSES: Final = {CONNECTION_CREATION_RATE: float(2**31 - 1)}
"""The largest whole number that a quota may be; None where fractions are taken."""
FRACTION_MAX: Final = 1e-6
"""So far from a whole number may be what has to be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaAlteration:
    """Quotas that one entity gets; None removes one."""

    entity: QuotaEntity
    changes: Sequence[tuple[str, float | None]]


QuotaVerdicts = dict[QuotaEntity, Verdict[None]]


def decide_alter_quotas(
    alterations: Sequence[QuotaAlteration], image: MetadataImage
) -> Decision[QuotaVerdicts]:
    """Alter each entity that can be, each as a whole or not at all."""
    records: list[MetadataRecord] = []
    verdicts: QuotaVerdicts = {}
    doubled = named_twice(it.entity for it in alterations)
    for alteration in alterations:
        entity = alteration.entity
        try:
            if entity in doubled:
                raise InvalidConfigRequestError(f"Ignoring duplicate entity {_told(entity)}")
            records += _alter(alteration, image)
            verdicts[entity] = Accepted(None)
        except ControllerError as error:
            verdicts[entity] = Rejected(error)
    return Decision(tuple(records), verdicts)


def _alter(alteration: QuotaAlteration, image: MetadataImage) -> list[MetadataRecord]:
    entity, changes = alteration.entity, dict(alteration.changes)
    if len(changes) < len(alteration.changes):
        raise InvalidConfigRequestError(
            f"Duplicate quota key, not updating quota for this entity {_told(entity)}"
        )
    known = _keys_of(entity)
    current = image.quotas.get(entity, {})
    for key, value in changes.items():
        if value is not None:
            _check(key, value, known)
    return [
        quota_record(entity, key, value)
        for key, value in changes.items()
        if current.get(key) != value
    ]


def _told(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {name or '<default>'}" for kind, name in entity)


def _keys_of(entity: QuotaEntity) -> Mapping[str, float | None]:
    """Quotas that such an entity may have; raises where there is no such entity."""
    kinds = {kind for kind, _ in entity}
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidConfigRequestError(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidConfigRequestError(f"Empty {kind} not supported")
    if not kinds:
        raise InvalidConfigRequestError("Invalid empty client quota entity")
    if IP not in kinds:
        return _OF_CLIENTS
    if kinds != {IP}:
        raise InvalidConfigRequestError(
            f"Invalid quota entity combination, IP entity should not be used with {_told(entity)}"
        )
    address = entity[0][1]
    if address is not None and not _is_address(address):
        raise InvalidConfigRequestError(f"{address} is not a valid IP address.")
    return _OF_ADDRESSES


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _check(key: str, value: float, known: Mapping[str, float | None]) -> None:
    if key not in known:
        raise InvalidConfigRequestError(f"Invalid configuration key {key}")
    if value <= 0 or isnan(value):
        raise InvalidConfigRequestError(f"Quota {key} must be greater than 0")
    largest = known[key]
    if largest is None:
        return
    if value > largest:
        raise InvalidConfigRequestError(f"Proposed value for {key} is too large.")
    if value % 1.0 > FRACTION_MAX:
        raise InvalidConfigRequestError(f"{key} cannot be a fractional value.")


class MutationCharge:
    """Counts the partitions of one request against its client's quota (KIP-599).

    Newer versions of a request are refused what is beyond the quota; older ones get it, and their
    client is muted.
    """

    def __init__(self, quotas: ClientQuotas, context: RequestContext, *, is_strict: bool) -> None:
        self._quotas = quotas.mutations
        self._context = context
        self._is_strict = is_strict
        self.throttle_ms = 0
        """For how long its client has to wait."""

    def __call__(self, partitions: int) -> None:
        """Count partitions that are created or deleted.

        :raises ThrottlingQuotaExceededError: beyond a strict quota.
        """
        self.throttle_ms = self._quotas.take(self._context, partitions, is_strict=self._is_strict)
        if self._is_strict and self.throttle_ms:
            raise ThrottlingQuotaExceededError("The throttling quota has been exceeded.")
