"""Our own brokers as processes on loopback, for tests that need real ones."""

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from tests.support import wire
from tests.support.node_cluster import (
    CLUSTER_ID,
    QUORUM_FETCH,
    ROOT,
    STOP_TIMEOUT_S,
    NodeCluster,
    stretched,
)
from tests.support.settle import wait_until

__all__ = ["NOBODY_DIES", "ROOT", "TIMEOUTS", "ClusterError", "LocalCluster"]

READY_TIMEOUT_S: Final = 60.0
TIMEOUTS: Final = stretched({"broker.session.timeout.ms": 2_500, QUORUM_FETCH: 1_500})
"""The product's on a quiet machine."""
NOBODY_DIES: Final = stretched({"broker.session.timeout.ms": 30_000, QUORUM_FETCH: 15_000})
"""Overrides of a cluster whose nodes all run on: none is fenced and no controller is elected anew,
however busy the machine is."""


class ClusterError(AssertionError):
    """The cluster did not do what it should; carries the ends of the brokers' logs."""


class LocalCluster(NodeCluster):
    """N brokers of ours."""

    def command(self, node_id: int) -> Sequence[str]:
        """The broker with its properties file."""
        config = str(self.config_file(node_id))
        return (sys.executable, "-m", "broker.server.main", "--config", config)

    def prepare_node(self, node_id: int) -> None:
        """Nothing: a broker of ours founds its own data directory."""

    def properties(self, node_id: int) -> dict[str, str]:
        """Its own, the product's time-outs, and the cluster id, which Kafka keeps in the formatted
        directory instead."""
        return {"cluster.id": CLUSTER_ID, **TIMEOUTS, **super().properties(node_id)}

    def stop(self) -> None:
        """End every node: SIGTERM, then SIGKILL for those that do not go."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in self.processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Until every running broker shows all running brokers in its metadata."""
        expected = set(self.processes)
        for node_id in sorted(expected):
            wait_until(
                lambda id_=node_id: self.alive_brokers(id_) == expected,  # type: ignore[misc]
                f"{node_id} knows {sorted(expected)}",
                timeout_s=timeout_s,
                story=self.story,
            )

    def alive_brokers(self, node_id: int) -> set[int]:
        """The brokers in one node's metadata; empty while it does not answer."""
        process = self.processes.get(node_id)
        if process is not None and process.poll() is not None:
            raise ClusterError(f"{node_id} ended with {process.returncode}\n{self.story()}")
        try:
            return {broker.node_id for broker in self.metadata(node_id).brokers}
        except OSError:
            return set()

    def metadata(self, node_id: int) -> Any:
        """One node's Metadata response for all topics."""
        return wire.metadata(self._address(node_id))

    def wait_for_topic(self, node_id: int, topic: str) -> Any:
        """A topic in one node's metadata, once that node has heard of it."""
        at = self._address(node_id)
        wait_until(
            lambda: wire.topic_at(at, topic) is not None,
            f"{node_id} knows {topic}",
            story=self.story,
        )
        return wire.topic_at(at, topic)

    def ask(self, node_id: int, api_key: int, version: int, message: Any) -> Any:
        """One request to one node."""
        return wire.ask(self._address(node_id), api_key, version, message)

    def _address(self, node_id: int) -> str:
        return f"127.0.0.1:{self.ports[node_id]}"
