"""Whatever reaches the controller, no node ends, and each starts again over the same files.

`make soak` takes more seeds.
"""

import asyncio
import random
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from broker.controller.decision import Decision
from broker.controller.errors import ControllerError
from broker.handlers.registry import Api, load_registry
from broker.handlers.services import Listener
from broker.metadata.image import MetadataImage
from broker.metadata.record_codec import SCHEMAS
from broker.protocol import codec
from broker.server.node import Node
from tests.support.random_values import random_record, random_request
from tests.unit.broker.server.nodes import create_topic, parts, request, running, until

SEEDS: Final = (1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 42)))
NODES: Final = 3
RECORDS: Final = 20
"""Of each type."""
REQUESTS: Final = 6
"""Of each API."""
ANSWER_S_MAX: Final = 0.05
FRAME_BYTES_MAX: Final = 1 << 20
RECORD_TYPES: Final = [schema.record for schema in SCHEMAS]


def _told(image: MetadataImage) -> tuple[Any, ...]:
    """What the start of a broker does not change."""
    topics = {name: topic.topic_id for name, topic in image.topics.items()}
    return topics, image.configs, image.features, image.next_producer_id


async def _serves(node: Node) -> None:
    assert node.fault is None
    assert (
        await request(
            node,
            18,
            3,
            codec.build_request(18, 3, client_software_name="fuzz", client_software_version="1"),
        )
    ).error_code == 0


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_cannot_be_replayed_is_refused_and_gone(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    async with running(tmp_path, NODES) as nodes:
        await create_topic(nodes, "t")
        active = parts(nodes[0]).controller.active
        taken = 0
        for _ in range(RECORDS * len(RECORD_TYPES)):
            record = random_record(dice, dice.choice(RECORD_TYPES))
            before = active.image
            try:
                active.apply(lambda image, made=record: Decision((made,), None))
                taken += 1
            except ControllerError:
                assert active.image is before
            await asyncio.sleep(0)
        assert taken > RECORDS
        told = _told(active.image)
        for node in nodes:
            await until(lambda at=node: _told(parts(at).metadata.image) == told)  # type: ignore[misc]
            await _serves(node)
    async with running(tmp_path, NODES) as nodes:
        for node in nodes:
            await until(lambda at=node: _told(parts(at).metadata.image) == told)  # type: ignore[misc]
            await _serves(node)


async def _send(port: int, api: Api, dice: random.Random) -> None:
    version = dice.randint(api.version_min, api.version_max)
    message = random_request(dice, api.api_key, version)
    frame = codec.encode_request(message, correlation_id=1, client_id="fuzz")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(frame)
        with suppress(TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(ANSWER_S_MAX):
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                assert size < FRAME_BYTES_MAX
                await reader.readexactly(size)
    finally:
        writer.close()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("listener", [Listener.CLIENT, Listener.CONTROLLER])
async def test_no_request_ends_a_node(tmp_path: Path, listener: Listener, seed: int) -> None:
    dice = random.Random(seed)
    async with running(tmp_path) as (node,):
        await create_topic([node], "t")
        server = parts(node).client_listeners
        if listener is Listener.CONTROLLER:
            server = parts(node).controller_listener
        apis = load_registry(listener).apis()
        for _ in range(REQUESTS * len(apis)):
            await _send(server.port, dice.choice(apis), dice)
        await _serves(node)
    async with running(tmp_path) as (node,):
        await _serves(node)
        await create_topic([node], "afterwards")
