"""Levels of a broker's loggers are set and told by Kafka's APIs of configs (KIP-412)."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from broker.protocol import codec
from broker.server.node import Node
from tests.support.cases import case
from tests.unit.broker.server.nodes import create_topic, request, running

LOGGER = "broker.raft.node"
BROKER_LOGGER = 8
SET, DELETE, APPEND = 0, 1, 2


@pytest.fixture(autouse=True)
def _levels_as_before() -> Iterator[None]:
    before = logging.getLogger(LOGGER).level
    yield
    logging.getLogger(LOGGER).setLevel(before)


def logger(operation: int, value: str | None, *, name: str = LOGGER, node: str = "101") -> Any:
    change = {"name": name, "config_operation": operation, "value": value}
    return {"resource_type": BROKER_LOGGER, "resource_name": node, "configs": [change]}


async def alter(node: Node, *resources: Any, validate_only: bool = False) -> list[ErrorCode]:
    message = codec.build_request(44, 1, resources=resources, validate_only=validate_only)
    answer = await request(node, 44, 1, message)
    return [response.error_code for response in answer.responses]


async def level(node: Node) -> str:
    asked = {"resource_type": BROKER_LOGGER, "resource_name": "101", "configuration_keys": [LOGGER]}
    message = codec.build_request(32, 4, resources=[asked])
    (result,) = (await request(node, 32, 4, message)).results
    (config,) = result.configs
    return str(config.value)


async def test_a_level_is_set_told_and_taken_back(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        before = await level(node)
        assert await alter(node, logger(SET, "DEBUG"), validate_only=True) == [ErrorCode.none]
        assert await level(node) == before
        assert await alter(node, logger(SET, "DEBUG")) == [ErrorCode.none]
        assert await level(node) == "DEBUG"
        assert logging.getLogger(LOGGER).isEnabledFor(logging.DEBUG)
        assert await alter(node, logger(DELETE, None)) == [ErrorCode.none]
        assert await level(node) == before


async def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    refused = {
        "an unknown logger": (logger(SET, "DEBUG", name="kafka.server"), ErrorCode.invalid_config),
        "an unknown level": (logger(SET, "LOUD"), ErrorCode.invalid_config),
        "no level": (logger(SET, None), ErrorCode.invalid_request),
        "a list": (logger(APPEND, "DEBUG"), ErrorCode.invalid_request),
        "no operation": (logger(9, "DEBUG"), ErrorCode.invalid_request),
        "the root": (logger(DELETE, None, name="root"), ErrorCode.invalid_request),
        "another broker": (logger(SET, "DEBUG", node="102"), ErrorCode.invalid_request),
        "no broker": (logger(SET, "DEBUG", node=""), ErrorCode.invalid_request),
    }
    async with running(tmp_path) as (node,):
        before = await level(node)
        for name, (resource, error) in refused.items():
            with case(name):
                assert await alter(node, resource) == [error]
        twice = logger(SET, "DEBUG")
        assert await alter(node, twice, twice) == [ErrorCode.invalid_request] * 2
        assert await level(node) == before


async def test_loggers_and_topics_in_one_request_are_answered_as_asked(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        await create_topic([node], "t")
        change = {"name": "retention.ms", "config_operation": SET, "value": "1000"}
        topic = {"resource_type": 2, "resource_name": "t", "configs": [change]}
        missing = {**topic, "resource_name": "none"}
        assert await alter(node, missing, logger(SET, "WARN"), topic) == [
            ErrorCode.unknown_topic_or_partition,
            ErrorCode.none,
            ErrorCode.none,
        ]
        assert await level(node) == "WARN"
