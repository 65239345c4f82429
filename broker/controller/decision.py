"""Decisions of the controller: records to append, and the answer once they are safe."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from broker.controller.errors import ControllerError
from broker.metadata.image import MetadataImage
from broker.metadata.records import MetadataRecord

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K", bound=Hashable)


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


def named_twice(keys: Iterable[K]) -> frozenset[K]:
    """Keys that one request names more than once. Each item is decided on the state before the
    request, so nothing of them is done."""
    return frozenset(key for key, count in Counter(keys).items() if count > 1)
