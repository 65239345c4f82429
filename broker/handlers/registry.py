"""Which handler answers which API, on which listener, at which versions.

A handler module is named after its key (`k19_create_topics.py`) and registers itself:

    @handles(api_key=19, versions=(2, 7), listener=Listener.CLIENT)
    async def handle_create_topics(request: Request, node: NodeServices) -> Any: ...

Three kinds, told apart by their signature: a plain function answers at once, a coroutine runs as
a task, and a function with a `slot` parameter answers through it, now or later.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from kio.schema.errors import ErrorCode

from broker.handlers.services import Listener
from broker.metadata.acls import Operation, ResourceKind

Handler = Callable[..., Any]
AnyHandler = TypeVar("AnyHandler", bound=Handler)


NOT_AUTHORIZED: Final = {
    ResourceKind.TOPIC: ErrorCode.topic_authorization_failed,
    ResourceKind.GROUP: ErrorCode.group_authorization_failed,
    ResourceKind.CLUSTER: ErrorCode.cluster_authorization_failed,
    ResourceKind.TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
}
"""The error of who lacks a right, by what it is about."""


class HandlerKind(Enum):
    """How a handler gives its answer."""

    PLAIN = "returns it"
    TASK = "returns it from a coroutine"
    SLOT = "puts it into its slot"


@dataclass(frozen=True, slots=True)
class Right:
    """An operation that a principal must be allowed, or the whole request is refused."""

    operation: Operation
    kind: ResourceKind = ResourceKind.CLUSTER
    field: str = ""
    """The field of the request with the name of the resource; the cluster has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One served API. `advertised_min` differs from `version_min` only for Produce."""

    api_key: int
    version_min: int
    version_max: int
    advertised_min: int
    listener: Listener
    handler: Handler
    kind: HandlerKind
    rights: tuple[Right, ...] = ()
    """Refused as a whole to those who lack one of them."""

    def serves(self, version: int) -> bool:
        """Whether requests of this version are answered."""
        return self.version_min <= version <= self.version_max


_declared: dict[tuple[int, Listener], Api] = {}


def handles(
    *,
    api_key: int,
    versions: tuple[int, int],
    listener: Listener = Listener.CLIENT,
    advertised_min: int | None = None,
    cluster_operation: Operation | None = None,
    rights: tuple[Right, ...] = (),
) -> Callable[[AnyHandler], AnyHandler]:
    """Declare the handler of an API; versions are inclusive.

    An API may have one handler per listener (Fetch: of partitions here, of the metadata log there).
    """

    def declare(handler: AnyHandler) -> AnyHandler:
        for known in _declared.values():
            if known.api_key == api_key and known.listener & listener:
                raise ValueError(f"API key {api_key} is already served by {known.handler}")
        _declared[api_key, listener] = Api(
            api_key=api_key,
            version_min=versions[0],
            version_max=versions[1],
            advertised_min=versions[0] if advertised_min is None else advertised_min,
            listener=listener,
            handler=handler,
            kind=_kind_of(handler),
            rights=rights if cluster_operation is None else (Right(cluster_operation), *rights),
        )
        return handler

    return declare


def _kind_of(handler: Handler) -> HandlerKind:
    if inspect.iscoroutinefunction(handler):
        return HandlerKind.TASK
    if "slot" in inspect.signature(handler).parameters:
        return HandlerKind.SLOT
    return HandlerKind.PLAIN


class HandlerRegistry:
    """The APIs of one listener."""

    __slots__ = ("_apis",)

    def __init__(self, apis: Iterable[Api]) -> None:
        self._apis = {api.api_key: api for api in sorted(apis, key=lambda api: api.api_key)}

    def find(self, api_key: int) -> Api | None:
        """The API, or None when this listener does not serve it."""
        return self._apis.get(api_key)

    def apis(self) -> tuple[Api, ...]:
        """APIs that ApiVersions lists, by key."""
        return tuple(self._apis.values())


def load_registry(listener: Listener) -> HandlerRegistry:
    """Import every handler module and collect what `listener` serves."""
    import broker.handlers as package

    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("k") and module.name[1:3].isdigit():
            importlib.import_module(f"{package.__name__}.{module.name}")
    return HandlerRegistry(api for api in _declared.values() if listener in api.listener)
