"""How the collector fares: one JSON document per watched cluster on the bus, the newest counts.

Whoever shows figures of a watched cluster reads it to say what they cannot be: partial, because
rights lack, or old, because a broker does not answer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

REPORTS_TOPIC: Final = "__partiscope_collectors"
REPORT_INTERVAL_MS: Final = 3_000
REPORTS_CONFIGS: Final = {"retention.ms": "3600000", "segment.ms": "600000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerReport:
    """How sampling one broker goes."""

    broker: int
    requests_per_s: float
    rows_per_s: float
    sent_bytes_per_s: float
    received_bytes_per_s: float
    failing_since_ms: int | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRight:
    """A right that is missing: in words, and the command that grants it."""

    api: str
    operation: str
    resource: str
    text: str
    acl: str
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReport:
    """The collector's own word on one watched cluster."""

    cluster: str
    bootstrap: str
    at_ms: int
    interval_ms: int
    is_partial: bool
    """Topics or groups may exist that are not shown."""
    brokers: Sequence[BrokerReport] = ()
    missing_rights: Sequence[MissingRight] = ()
    denied_operations: Mapping[str, str] = field(default_factory=dict)
    """Per operation of the catalogue that is not allowed, the rights that it lacks."""
    grants: Mapping[str, str] = field(default_factory=dict)
    """Per such operation, the command that grants them."""
    grant_all: Sequence[str] = ()
    """Commands that allow every operation."""
    failure: str | None = None
    """Why the cluster as a whole does not answer; null: it does."""
    unheard: str | None = None
    """Why nothing newer can be read. Said by who reads, never written."""


def encode_report(report: WatchReport) -> bytes:
    """As a record's value."""
    return json.dumps(asdict(report), separators=(",", ":")).encode()


def decode_report(value: bytes) -> WatchReport:
    """Inverse of ``encode_report``; keys of newer versions are left out.

    :raises ValueError: not a report.
    """
    try:
        document: dict[str, Any] = json.loads(value)
        document["brokers"] = tuple(_known(BrokerReport, row) for row in document["brokers"])
        document["missing_rights"] = tuple(
            _known(MissingRight, row) for row in document["missing_rights"]
        )
        document["grant_all"] = tuple(document.get("grant_all", ()))
        report: WatchReport = _known(WatchReport, document)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"not a collector's report: {error}") from error
    return report


def _known(kind: Any, document: Mapping[str, Any]) -> Any:
    names = kind.__dataclass_fields__
    return kind(**{name: value for name, value in document.items() if name in names})
