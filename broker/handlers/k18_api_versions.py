"""ApiVersions, versions 0-4.

Behaviour: lists what the listener that was asked really serves, so the client listener never
shows the controller's RPCs and 71/72 (telemetry) never appear. The connection itself answers an
unknown version with a v0 body, error 35 and the ranges (KIP-511), through `build_api_versions`.
Notes: the response header is v0 in every version; kio's schema knows. Version 4 may name features
whose minimum is 0 (KAFKA-17011); older clients fail on them, so they are left out before.
"""

import re
from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.handlers.registry import HandlerRegistry, handles, load_registry
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec

FEATURES: Final = {"metadata.version": (7, 27), "transaction.version": (0, 2)}
"""Lowest and highest level; the highest is finalized. Metadata versions are from 3.3-IV3, the
oldest that current tools accept, to 4.1-IV1."""
FEATURES_FROM_0_SINCE: Final = 4

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Name and version of a client (KIP-511); INVALID_REQUEST for others, without any range."""

_registries: dict[Listener, HandlerRegistry] = {}


@handles(api_key=18, versions=(0, 4), listener=Listener.CLIENT)
def handle_api_versions(request: Request, node: NodeServices) -> Any:
    """Answer with the ranges of the clients' listeners."""
    return _answer(request, Listener.CLIENT)


@handles(api_key=18, versions=(0, 4), listener=Listener.CONTROLLER)
def handle_controllers_api_versions(request: Request, node: NodeServices) -> Any:
    """Answer with the ranges of the controllers' listener."""
    return _answer(request, Listener.CONTROLLER)


def _answer(request: Request, listener: Listener) -> Any:
    message = request.message
    if request.api_version >= 3 and not (
        _SOFTWARE.fullmatch(message.client_software_name)
        and _SOFTWARE.fullmatch(message.client_software_version)
    ):
        return codec.build_response(
            18, request.api_version, error_code=ErrorCode.invalid_request, api_keys=[]
        )
    if listener not in _registries:
        _registries[listener] = load_registry(listener)
    return build_api_versions(_registries[listener], request.api_version, ErrorCode.none)


def build_api_versions(registry: HandlerRegistry, version: int, error: ErrorCode) -> Any:
    """The ApiVersions response of a listener; pure."""
    ranges = [
        {
            "api_key": api.api_key,
            "min_version": api.advertised_min,
            "max_version": api.version_max,
        }
        for api in registry.apis()
    ]
    return codec.build_response(
        18,
        version,
        error_code=error,
        api_keys=ranges,
        supported_features=[
            {"name": name, "min_version": level_min, "max_version": level}
            for name, (level_min, level) in FEATURES.items()
            if level_min or version >= FEATURES_FROM_0_SINCE
        ],
        finalized_features_epoch=0,
        finalized_features=[
            {"name": name, "max_version_level": level, "min_version_level": level}
            for name, (_, level) in FEATURES.items()
        ],
    )
