"""Requests to the other voters, each in a task of its own."""

import logging
from collections.abc import Callable
from functools import partial

from broker.background import Tasks, log_failure
from broker.raft.config import QuorumConfig, Voter
from broker.raft.events import ConnectionLost, Event, RequestFailed, ResponseReceived
from broker.raft.messages import FetchRequest, FetchSnapshotRequest, Request
from broker.raft.ports import Peer
from broker.raft.wire import (
    API_KEYS,
    VERSIONS,
    ForeignClusterError,
    WireError,
    from_response,
    to_request,
)

log = logging.getLogger(__name__)

Connect = Callable[[Voter], Peer]


class NetworkChannel:
    """Carries requests out and reports what came back as events.

    Each peer gets two connections, because a long poll blocks what follows it on its own.
    """

    def __init__(
        self,
        *,
        config: QuorumConfig,
        cluster_id: str,
        connect: Connect,
        report: Callable[[Event], None],
    ) -> None:
        self._cluster_id = cluster_id
        self._timeout_s = config.fetch_timeout_ms / 1000
        self._report = report
        others = [voter for voter in config.voters if voter.id != config.node_id]
        self._fetch_peers = {voter.id: connect(voter) for voter in others}
        self._peers = {voter.id: connect(voter) for voter in others}
        for voter_id, peer in self._peers.items():
            peer.on_lost = partial(report, ConnectionLost(peer=voter_id))
        self._tasks = Tasks("requests to other voters", log_failure)
        self._strangers: set[int] = set()

    def send(self, peer_id: int, request: Request) -> None:
        """Send in the background."""

        def failed(owner: str, error: Exception) -> None:
            log_failure(owner, error)
            self._report(RequestFailed(peer=peer_id, request=request))

        self._tasks.start(self._exchange(peer_id, request), failed)

    async def close(self, *, farewell_s: float) -> None:
        """Let the last messages go out for a while, then end all connections."""
        if farewell_s > 0:
            await self._tasks.wait(farewell_s)
        await self._tasks.stop()
        for peer in (*self._fetch_peers.values(), *self._peers.values()):
            await peer.close()

    async def _exchange(self, peer_id: int, request: Request) -> None:
        if peer_id not in self._peers:
            self._complain(
                peer_id,
                f"node {peer_id} leads the metadata quorum and controller.quorum.voters lacks it; "
                "write there what that node has",
            )
            self._report(RequestFailed(peer=peer_id, request=request))
            return
        is_fetch = isinstance(request, FetchRequest | FetchSnapshotRequest)
        peers = self._fetch_peers if is_fetch else self._peers
        api_key = API_KEYS[type(request)]
        try:
            message = to_request(request, cluster_id=self._cluster_id)
            answer = await peers[peer_id].send(
                api_key, VERSIONS[api_key], message, timeout_s=self._timeout_s
            )
            response = from_response(request, answer)
        except (OSError, WireError) as error:
            log.debug("voter %d: %s", peer_id, error)
            if isinstance(error, ForeignClusterError):
                self._complain(
                    peer_id,
                    f"voter {peer_id} refuses this node: it belongs to another cluster than "
                    f"{self._cluster_id}; correct cluster.id or controller.quorum.voters",
                )
            is_refused = isinstance(error, ConnectionRefusedError)
            self._report(RequestFailed(peer=peer_id, request=request, is_refused=is_refused))
            return
        self._report(ResponseReceived(peer=peer_id, request=request, response=response))

    def _complain(self, peer_id: int, words: str) -> None:
        """Once of each peer."""
        if peer_id not in self._strangers:
            self._strangers.add(peer_id)
            log.error("%s", words)
