"""Decisions of the controller: records to append, and the answer once they are safe."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from broker.controller.errors import ControllerError
from broker.metadata.image import MetadataImage
from broker.metadata.records import MetadataRecord

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[T_co]):
    """Records (appended as one batch, all or nothing) and the response."""

    records: tuple[MetadataRecord, ...]
    response: T_co


Decide = Callable[[MetadataImage], Decision[T]]


@dataclass(frozen=True, slots=True)
class Accepted(Generic[T_co]):
    """One item of a request is done."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Rejected:
    """One item of a request is refused, and why."""

    error: ControllerError


Verdict = Accepted[T] | Rejected
