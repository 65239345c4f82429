"""The registry: what each listener serves is what ApiVersions says."""

from typing import Any

import pytest

from broker.handlers import registry
from broker.handlers.k18_api_versions import handle_api_versions
from broker.handlers.registry import HandlerKind, handles, load_registry
from broker.handlers.services import Listener
from broker.protocol import codec
from tests.unit.broker.handlers.cluster_images import cluster_image, node_with, request_of


def test_three_kinds_of_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_declared", {})

    @handles(api_key=900, versions=(0, 1))
    def plain(request: Any, node: Any) -> Any: ...

    @handles(
        api_key=901,
        versions=(2, 3),
        advertised_min=0,
        listener=Listener.CONTROLLER,
    )
    async def task(request: Any, node: Any) -> Any: ...

    @handles(api_key=902, versions=(0, 0))
    def slot(request: Any, node: Any, slot: Any) -> None: ...

    apis = {api.api_key: api for api in registry._declared.values()}
    assert [apis[key].kind for key in (900, 901, 902)] == list(HandlerKind)
    assert apis[901].advertised_min == 0
    assert not apis[901].serves(1)


def test_one_handler_per_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_declared", {})

    def declare(listener: Listener) -> None:
        @handles(api_key=900, versions=(0, 1), listener=listener)
        def plain(request: Any, node: Any) -> Any: ...

    declare(Listener.CLIENT)
    declare(Listener.CONTROLLER)
    with pytest.raises(ValueError, match="already served"):
        declare(Listener.BOTH)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_what_clients_may_ask(version: int) -> None:
    named = {"client_software_name": "tests", "client_software_version": "1"}
    request = request_of(18, version, **(named if version >= 3 else {}))
    answer = handle_api_versions(request, node_with(cluster_image()))
    frame = codec.encode_response(18, version, 1, answer)
    _, got = codec.decode_response(18, version, frame[4:])
    served = {api.api_key: api for api in load_registry(Listener.CLIENT).apis()}
    listed = {api.api_key: (api.min_version, api.max_version) for api in got.api_keys}
    assert listed == {k: (api.advertised_min, api.version_max) for k, api in served.items()}
    assert listed[3] == (0, 13)
    assert not listed.keys() & {52, 53, 54, 55 + 1, 58, 62, 63, 71, 72}


@pytest.mark.parametrize("listener", [Listener.CLIENT, Listener.CONTROLLER])
def test_every_version_that_is_served_can_be_prepared(listener: Listener) -> None:
    for api in load_registry(listener).apis():
        for version in range(api.version_min, api.version_max + 1):
            codec.prepare(api.api_key, version)
            assert codec.is_prepared((api.api_key, version))


def test_the_controller_listener_lists_its_own() -> None:
    api = load_registry(Listener.CONTROLLER).find(18)
    assert api is not None
    answer = api.handler(request_of(18, 3), node_with(cluster_image()))
    assert 3 not in {api.api_key for api in answer.api_keys}
