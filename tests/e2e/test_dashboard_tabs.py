"""Tabs of one browser share a connection to the page: one that has gone is told no more."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from websockets import ClientConnection, Origin, connect

from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S
from tests.support.store_builder import StoreBuilder, SyntheticSizes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


async def test_a_tab_that_goes_is_told_no_more(tmp_path: Path) -> None:
    StoreBuilder(tmp_path / "store").write_synthetic(SyntheticSizes(topics=1), history_s=1)
    with PageServer(tmp_path / "store") as server:
        known = json.loads(await _answer(f"{server.url}/_dash-dependencies"))
        (push,) = (it["output"] for it in known if it.get("persistent"))
        address = f"ws://127.0.0.1:{server.port}/_dash-ws-callback"
        async with connect(address, origin=Origin(server.url), max_size=None) as socket:
            for tab in ("goes", "stays"):
                asked = {"output": push, "inputs": [], "state": [], "changedPropIds": []}
                told = {"rendererId": tab, "requestId": tab, "payload": asked}
                await socket.send(json.dumps({"type": "callback_request", **told}))
            beats = await _listen_until(socket, lambda beats: min(beats.values()) > 1)
            assert "goes ends" not in beats
            await _answer(Request(f"{server.url}/tab-gone/tab-goes", method="POST"))
            beats = await _listen_until(socket, lambda beats: beats["goes ends"] == 1)
            stays = beats["stays"]
            beats = await _listen_until(socket, lambda beats: beats["stays"] > stays + 1)
            assert beats["goes"] == 0
            assert beats["stays ends"] == 0


async def _answer(address: str | Request) -> bytes:
    def ask() -> bytes:
        with urlopen(address, timeout=WAIT_S) as answer:
            body: bytes = answer.read()
        return body

    return await asyncio.to_thread(ask)


async def _listen_until(socket: ClientConnection, is_enough: Any) -> Counter[str]:
    """How often each tab was told the age, and whose telling ended; answers as tabs do."""
    found: Counter[str] = Counter(goes=0, stays=0)
    while not is_enough(found):
        told = json.loads(await asyncio.wait_for(socket.recv(), WAIT_S))
        for message in told if isinstance(told, list) else [told]:
            tab = message["rendererId"]
            if message["type"] == "get_props_request":
                answer = {
                    **message,
                    "type": "get_props_response",
                    "payload": {"data": f"tab-{tab}"},
                }
                await socket.send(json.dumps(answer))
            elif message["type"] == "callback_response":
                found[f"{tab} ends"] += 1
            elif message["payload"].get("componentId") == "beat":
                found[tab] += 1
    return found
