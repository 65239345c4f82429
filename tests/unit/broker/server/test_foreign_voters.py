"""Voters of another cluster: refused before anything they say counts."""

import asyncio
import logging
from pathlib import Path
from typing import Any, Final

import pytest

from broker.raft import wire
from broker.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Request,
    VoteRequest,
)
from broker.raft.snapshot_id import SnapshotId
from tests.support.wire import ask
from tests.unit.broker.server.nodes import new_nodes, parts, running, until

INCONSISTENT_CLUSTER_ID: Final = 104
LATER: Final = 999
REQUESTS: Final[tuple[Request, ...]] = (
    VoteRequest(candidate_id=101, epoch=LATER, last_epoch=LATER, last_offset=1, pre_vote=False),
    BeginEpochRequest(leader_id=102, epoch=LATER),
    EndEpochRequest(leader_id=102, epoch=LATER, preferred_successors=()),
    FetchRequest(
        replica_id=102,
        epoch=1,
        fetch_offset=0,
        last_fetched_epoch=0,
        high_watermark=-1,
        wait_ms_max=0,
    ),
    FetchSnapshotRequest(
        replica_id=102,
        epoch=1,
        snapshot=SnapshotId(end_offset=1, epoch=1),
        position=0,
        bytes_max=1,
    ),
)


async def _ask(node: Any, request: Request, cluster_id: str | None) -> Any:
    key = wire.API_KEYS[type(request)]
    message = wire.to_request(request, cluster_id=cluster_id)  # type: ignore[arg-type]
    address = f"127.0.0.1:{parts(node).controller_listener.port}"
    return await asyncio.to_thread(ask, address, key, wire.VERSIONS[key], message)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
async def test_a_voter_of_another_cluster_is_refused_and_changes_nothing(
    tmp_path: Path, request_: Request
) -> None:
    async with running(tmp_path) as (node,):
        core = parts(node).quorum.core
        before = core.epoch, core.leader_id
        for cluster_id in ("another", None):
            answer = await _ask(node, request_, cluster_id)
            assert int(answer.error_code) == INCONSISTENT_CLUSTER_ID
            assert (core.epoch, core.leader_id) == before
        answer = await _ask(node, request_, "in-one-process")
        assert int(answer.error_code) == 0


async def test_a_voter_with_another_cluster_id_is_told_so_and_never_leads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as (node,):
        port = parts(node).controller_listener.port
        (stranger,) = new_nodes(
            tmp_path / "other",
            cluster_id="another",
            node_id="102",
            process_roles="broker",
            controller_quorum_voters=f"101@127.0.0.1:{port}",
            listeners=f"PLAINTEXT://127.0.0.1:{node.config.listeners.among_brokers.port + 1}",
        )
        stopping = asyncio.Event()
        starting = asyncio.create_task(stranger.start(stopping))
        with caplog.at_level(logging.ERROR, "broker.raft"):
            await until(lambda: "to another cluster than another" in caplog.text)
        assert parts(stranger).quorum.leader_id is None
        assert parts(stranger).metadata.image.offset == -1
        stopping.set()
        await starting
        await stranger.stop()
