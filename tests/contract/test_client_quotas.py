"""Client quotas, altered and described: the same answers of a broker of ours and of Kafka, case by
case; and Kafka's own tool, which sets them on ours."""

import itertools
from typing import Any, Final

import pytest
from kio.schema.errors import ErrorCode

from broker.protocol import codec
from tests.support import wire
from tests.support.cases import case
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import run_tool
from tests.support.quota_cases import ALTERED, DESCRIBED, SET, Component, Entity, Ops
from tests.support.settle import wait_until

DESCRIBE, ALTER = 48, 49
NAMES: Final = itertools.count()


@pytest.fixture
def address(bootstrap: str) -> str:
    """One broker of the cluster."""
    return bootstrap.split(",")[0]


def ask(address: str, api_key: int, **fields: Any) -> Any:
    return wire.ask(address, api_key, 1, codec.build_request(api_key, 1, **fields))


def alter(
    address: str, *changes: tuple[Entity, Ops], is_dry: bool = False
) -> list[tuple[dict[str, str | None], ErrorCode]]:
    """The verdict on each entity."""
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "ops": [
                {"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops
            ],
        }
        for entity, ops in changes
    ]
    answer = ask(address, ALTER, entries=entries, validate_only=is_dry)
    return [
        ({part.entity_type: part.entity_name for part in it.entity}, it.error_code)
        for it in answer.entries
    ]


def describe(address: str, *components: Component, strict: bool = False) -> Any:
    fields = ("entity_type", "match_type", "match")
    filters = [dict(zip(fields, it, strict=True)) for it in components]
    return ask(address, DESCRIBE, components=filters, strict=strict)


Quotas = list[tuple[dict[str, str | None], dict[str, float]]]


def in_order(found: Quotas) -> Quotas:
    return sorted(found, key=lambda it: repr([sorted(part.items()) for part in it]))


def quotas(answer: Any) -> Quotas:
    found = [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {it.key: float(it.value) for it in entry.values},
        )
        for entry in answer.entries
    ]
    return in_order(found)


def exactly(entity: Entity) -> list[Component]:
    return [(kind, 1 if name is None else 0, name) for kind, name in entity]


def numbered(entity: Entity) -> Entity:
    """Names that end in ~ with a number of their own."""
    number = next(NAMES)
    return tuple(
        (kind, f"{name[:-1]}{number}" if name and name.endswith("~") else name)
        for kind, name in entity
    )


def test_altered_quotas(address: str) -> None:
    for template, ops, error in ALTERED:
        entity = numbered(template)
        with case(entity, ops):
            assert alter(address, (entity, ops), is_dry=True) == [(dict(entity), error)]
            assert alter(address, (entity, ops)) == [(dict(entity), error)]
            given = {key: value for key, value in ops if value is not None}
            expected = [(dict(entity), given)] if given and error is ErrorCode.none else []
            if entity and error is ErrorCode.none:
                wait_until(
                    lambda: (
                        quotas(describe(address, *exactly(entity), strict=True)) == expected  # noqa: B023
                    ),
                    f"{entity} has {expected}",
                )
                gone = tuple((key, None) for key in given)
                assert alter(address, (entity, gone)) == [(dict(entity), ErrorCode.none)]


def test_an_entity_twice_in_a_request(address: str) -> None:
    entity = numbered((("user", "twice~"),))
    first, second = ((("producer_byte_rate", value),) for value in (1.0, 2.0))
    assert alter(address, (entity, first), (entity, second)) == [
        (dict(entity), ErrorCode.invalid_request)
    ]
    # Kafka keeps the first one all the same.
    assert alter(address, (entity, (("producer_byte_rate", None),))) == [
        (dict(entity), ErrorCode.none)
    ]
    wait_until(
        lambda: quotas(describe(address, *exactly(entity), strict=True)) == [], "nothing is left"
    )


def test_described_quotas(address: str) -> None:
    told = alter(address, *SET)
    assert {error for _, error in told} == {ErrorCode.none}
    try:
        everything = in_order([(dict(entity), dict(ops)) for entity, ops in SET])
        wait_until(lambda: quotas(describe(address)) == everything, "all are described")
        for components, strict, expected in DESCRIBED:
            with case(components, strict):
                answer = describe(address, *components, strict=strict)
                if isinstance(expected, ErrorCode):
                    assert (answer.error_code, answer.entries) == (expected, None)
                    continue
                found = in_order([(dict(SET[it][0]), dict(SET[it][1])) for it in expected])
                assert (answer.error_code, quotas(answer)) == (ErrorCode.none, found)
    finally:
        alter(address, *((entity, tuple((key, None) for key, _ in ops)) for entity, ops in SET))


@pytest.mark.kafka_oracle
def test_kafkas_tool_sets_describes_and_deletes_quotas_of_ours(our_cluster: LocalCluster) -> None:
    base = ("--bootstrap-server", our_cluster.bootstrap)
    tool = "kafka.admin.ConfigCommand"
    user = ("--entity-type", "users", "--entity-name", "tooled")
    client = ("--entity-type", "clients", "--entity-default")
    limits = "producer_byte_rate=1024,request_percentage=12.5"
    for entity in (user, client, (*user, *client)):
        done = run_tool(tool, *base, "--alter", *entity, "--add-config", limits)
        assert done.returncode == 0, done.stdout + done.stderr
        done = run_tool(tool, *base, "--describe", *entity)
        assert "producer_byte_rate=1024.0" in done.stdout, done.stdout + done.stderr
        assert "request_percentage=12.5" in done.stdout
        names = "producer_byte_rate,request_percentage"
        done = run_tool(tool, *base, "--alter", *entity, "--delete-config", names)
        assert done.returncode == 0, done.stdout + done.stderr
    assert quotas(describe(our_cluster.bootstrap.split(",")[0])) == []
