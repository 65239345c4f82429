"""Who asks is known wherever a request is answered, and one place asks whether he may."""

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.handlers.controller_apis import CONTROLLER_APIS
from broker.handlers.registry import load_registry
from broker.handlers.services import Listener
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import (
    CLUSTER,
    Authorization,
    Resource,
)
from broker.protocol import codec
from broker.protocol.errors import MalformedRequestError
from broker.protocol.request_context import (
    ANONYMOUS,
    Principal,
    RequestContext,
    address_bytes,
    address_text,
)
from broker.server.node import Node
from tests.support.cases import case
from tests.support.wire import ask
from tests.unit.broker.server.nodes import parts, request, running

ALICE = RequestContext(
    principal=Principal(type="User", name="alice"),
    listener_name="PLAINTEXT",
    client_id="reports",
    client_host="10.1.2.3",
)
CREATE_TOPICS = 19


def create_topics(name: str) -> Any:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return codec.build_request(CREATE_TOPICS, 7, topics=[topic], timeout=5000)


async def test_the_context_of_a_client_travels_to_the_active_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RequestContext] = []
    load_registry(Listener.CLIENT)
    execute = CONTROLLER_APIS[CREATE_TOPICS]

    async def note(active: ActiveController, asked: ControllerRequest) -> Any:
        seen.append(asked.context)
        return await execute(active, asked)

    monkeypatch.setitem(CONTROLLER_APIS, CREATE_TOPICS, note)
    async with running(tmp_path, count=2) as nodes:
        for number, node in enumerate(nodes):
            answer = await request(node, CREATE_TOPICS, 7, create_topics(f"by-socket-{number}"))
            assert answer.topics[0].error_code is ErrorCode.none
            await parts(node).controller.submit(
                CREATE_TOPICS, 7, create_topics(f"of-alice-{number}"), context=ALICE
            )
    by_socket, of_alice = seen[0::2], seen[1::2]
    assert {(it.principal, it.client_host) for it in by_socket} == {(ANONYMOUS, "127.0.0.1")}
    assert {(it.principal, it.client_id, it.client_host) for it in of_alice} == {
        (ALICE.principal, "reports", "10.1.2.3")
    }


async def test_what_nodes_ask_of_each_other_needs_cluster_action(tmp_path: Path) -> None:
    asked: list[tuple[RequestContext, Operation, Resource]] = []

    def deny(context: RequestContext, operation: Operation, resource: Resource) -> bool:
        asked.append((context, operation, resource))
        return False

    before_login = {17, 18, 36}
    known = load_registry(Listener.CONTROLLER).apis()
    apis = [it for it in known if it.api_key not in before_login]
    async with running(tmp_path) as (node,):
        parts(node).services.authorization = Authorization(deny)
        address = f"127.0.0.1:{parts(node).controller_listener.port}"
        for api in apis:
            message = codec.request_type(api.api_key, api.version_max)
            sent = codec.build_request(api.api_key, api.version_max, **_least(message))
            answer = await asyncio.to_thread(ask, address, api.api_key, api.version_max, sent)
            assert answer.error_code is ErrorCode.cluster_authorization_failed, api
    assert len(asked) == len(apis) >= 10
    assert {it[1:] for it in asked} == {(Operation.CLUSTER_ACTION, CLUSTER)}


async def _enveloped(node: Node, data: bytes, principal: Principal | None = None) -> ErrorCode:
    message = codec.build_request(
        58,
        0,
        request_data=data,
        request_principal=None if principal is None else principal.to_bytes(),
        client_host_address=b"",
    )
    address = f"127.0.0.1:{parts(node).controller_listener.port}"
    answer = await asyncio.to_thread(ask, address, 58, 0, message)
    return ErrorCode(answer.error_code)


async def test_an_envelope_carries_only_what_brokers_forward(tmp_path: Path) -> None:
    whole = codec.encode_request(create_topics("t"), correlation_id=1, client_id="c")[4:]
    cases = {
        "forwarded": (whole, ErrorCode.none),
        "empty": (b"", ErrorCode.unsupported_version),
        "cut short": (whole[:-3], ErrorCode.unsupported_version),
        "of an old version": (b"\x00\x13\x00\x00" + whole[4:], ErrorCode.unsupported_version),
        "of a version to come": (b"\x00\x13\x7f\xff" + whole[4:], ErrorCode.unsupported_version),
        "of no API": (b"\x7f\xff\x00\x00" + whole[4:], ErrorCode.invalid_request),
        **{
            f"of API {api.api_key}": (
                struct.pack(">hh", api.api_key, api.version_max) + whole[4:],
                ErrorCode.invalid_request,
            )
            for listener in (Listener.CLIENT, Listener.CONTROLLER)
            for api in load_registry(listener).apis()
            if api.api_key not in CONTROLLER_APIS
        },
    }
    async with running(tmp_path) as (node,):
        for what, (data, error) in cases.items():
            with case(what):
                assert await _enveloped(node, data) is error
        assert node.fault is None


async def test_a_client_does_not_ask_as_a_node_by_an_envelope(tmp_path: Path) -> None:
    def deny_alice(context: RequestContext, _operation: Operation, _resource: Resource) -> bool:
        return context.principal != ALICE.principal

    beat = codec.build_request(63, 0, broker_id=101, broker_epoch=1)
    data = codec.encode_request(beat, correlation_id=1, client_id="c")[4:]
    async with running(tmp_path) as (node,):
        parts(node).services.authorization = Authorization(deny_alice)
        denied = ErrorCode.cluster_authorization_failed
        assert await _enveloped(node, data, ALICE.principal) is denied
        assert await _enveloped(node, data, ANONYMOUS) is ErrorCode.none


def _least(entity: type[Any]) -> dict[str, Any]:
    """Values for the fields that have no default."""
    return {name: b"" for name in ("request_data", "client_host_address") if hasattr(entity, name)}


def test_authorized_operations_are_those_that_the_authorizer_allows() -> None:
    topic = Resource(kind=ResourceKind.TOPIC, name="orders")
    reading = Authorization(lambda _, operation, __: operation in (3, 8))
    assert reading.operations(ALICE, topic) == 1 << 3 | 1 << 8
    everything = {
        kind: Authorization().operations(ALICE, Resource(kind=kind, name="x"))
        for kind in (ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER)
    }
    for kind, bits in everything.items():
        allowing = Authorization(lambda *_: True)
        assert allowing.operations(ALICE, Resource(kind=kind, name="x")) == bits
    assert everything[ResourceKind.GROUP] == 3400, "as Kafka 4.1 answers without an authorizer"


def test_principals_travel_as_kafka_writes_them() -> None:
    alice = Principal(type="User", name="alice")
    assert alice.to_bytes() == b"\x00\x00\x05User\x06alice\x00\x00"
    assert Principal.from_bytes(alice.to_bytes()) == alice
    for cut in range(len(alice.to_bytes()) - 2):
        with pytest.raises(MalformedRequestError):
            Principal.from_bytes(alice.to_bytes()[:cut])


def test_addresses_travel_as_bytes() -> None:
    for host in ("127.0.0.1", "::1"):
        assert address_text(address_bytes(host)) == host
    assert address_text(address_bytes("?")) == ""
    with pytest.raises(MalformedRequestError):
        address_text(b"12345")
