"""Requests of every API that were changed at random cost a node nothing but their connection."""

import asyncio
import logging
import random
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from broker.protocol import codec
from broker.server.listener_context import ListenerContext
from tests.support.mutations import mutated
from tests.unit.broker.protocol.messages import sample
from tests.unit.broker.server.nodes import create_topic, fetch, parts, produce, running

SEEDS: Final = (1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 22)))
CHANGES: Final = {1: 1}
"""Of each version's request; seeds of the long run take more."""
CHANGES_LONG: Final = 6
PATIENCE_S: Final = 0.005
AT_ONCE: Final = 50


async def send(port: int, frame: bytes) -> None:
    """One frame over a connection of its own; whatever comes back, or nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(len(frame).to_bytes(4, "big") + frame)
    with suppress(OSError, TimeoutError):
        await asyncio.wait_for(reader.read(1), PATIENCE_S)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def frames(listener: ListenerContext, seed: int) -> list[bytes]:
    """Sound and changed requests of each API and version that a listener serves."""
    dice, made = random.Random(f"{listener.listener_name} {seed}"), list[bytes]()
    for api in listener.registry.apis():
        for version in range(api.version_min, api.version_max + 1):
            message = sample(codec.request_type(api.api_key, version))
            sound = codec.encode_request(message, correlation_id=7, client_id="c")[4:]
            count = CHANGES.get(seed, CHANGES_LONG)
            made += [sound, *(mutated(dice, sound) for _ in range(count))]
    dice.shuffle(made)
    return made


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_node_survives_changed_requests_of_every_api(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as (node,):
        await create_topic([node], "orders")
        assert (await produce(node, "orders", b"kept")).error is None
        for listener in parts(node).listeners:
            port, made = listener.port, frames(listener.context, seed)
            for start in range(0, len(made), AT_ONCE):
                group = made[start : start + AT_ONCE]
                await asyncio.gather(*(send(port, frame) for frame in group))
        found = (await fetch(node, "orders"))["orders"]
        assert b"kept" in bytes(found.records)
        assert (await produce(node, "orders", b"more")).error is None
        bad = [each for each in caplog.records if each.levelno >= logging.ERROR or each.exc_info]
        assert [(each.message, each.exc_text) for each in bad] == []
