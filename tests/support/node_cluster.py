"""What clusters of ours and of Apache Kafka have in common: one process per node, on loopback."""

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.patience import patience_s
from tests.support.ports import free_ports

ROOT: Final = Path(__file__).resolve().parents[2]
STOP_TIMEOUT_S: Final = patience_s(15.0)
QUORUM_FETCH: Final = "controller.quorum.fetch.timeout.ms"
CLUSTER_ID: Final = urlsafe_b64encode(b"partiscope-tests").decode().rstrip("=")


def stretched(quiet_ms: Mapping[str, int]) -> dict[str, str]:
    """Properties that are time-outs, as long as this machine is slow: a node that a busy machine
    holds up is not taken for dead."""
    return {name: str(round(patience_s(value))) for name, value in quiet_ms.items()}


@dataclass
class NodeCluster(ABC):
    """Nodes with ids 101, 102, …, brokers and controllers; a context manager.

    ``overrides`` are Kafka properties for all of them. What a node says is in
    ``base_dir/broker-ID.err``. So many of the last ones as ``late`` says are brokers alone, and
    prepared, but not started: `start_node` lets them join.
    """

    base_dir: Path
    brokers: int = 3
    first_id: int = 101
    late: int = 0
    overrides: Mapping[str, str] = field(default_factory=dict)
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)
    controller_ports: dict[int, int] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """``host:port,…`` of every node."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    @property
    def ids(self) -> tuple[int, ...]:
        """All node ids, running or not."""
        return tuple(self.ports)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Write the configurations, start every node, wait until all are ready."""
        ids = range(self.first_id, self.first_id + self.brokers)
        ports = free_ports(2 * self.brokers)
        self.ports = dict(zip(ids, ports[: self.brokers], strict=True))
        self.controller_ports = dict(zip(ids, ports[self.brokers :], strict=True))
        self.base_dir.mkdir(parents=True, exist_ok=True)
        try:
            for node_id in ids:
                self._write_config(node_id)
                self.prepare_node(node_id)
                if node_id < self.first_id + self.brokers - self.late:
                    self.start_node(node_id)
            self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def config_file(self, node_id: int) -> Path:
        """The properties file of a node."""
        return self.base_dir / f"broker-{node_id}.properties"

    def log_dir(self, node_id: int) -> Path:
        """The data directory of a node."""
        return self.base_dir / f"broker-{node_id}"

    def start_node(self, node_id: int) -> None:
        """Start the process of one node, without waiting for it."""
        with self._log_file(node_id).open("ab") as log:
            self.processes[node_id] = subprocess.Popen(
                self.command(node_id),
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def kill(self, node_id: int, number: int = signal.SIGKILL) -> int:
        """End one node with a signal and wait for it; its exit status."""
        process = self.processes.pop(node_id)
        process.send_signal(number)
        return process.wait(STOP_TIMEOUT_S)

    def restart(self, node_id: int) -> None:
        """Start a killed node again and wait until all that run are ready."""
        self.start_node(node_id)
        self.wait_ready()

    def stop(self) -> None:
        """End every node: nobody needs what it holds any more."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes.clear()

    def story(self, lines: int = 20) -> str:
        """The ends of what all nodes said."""
        parts = []
        for node_id in self.ports:
            path = self._log_file(node_id)
            text = path.read_text(errors="replace") if path.exists() else ""
            parts.append(f"--- {node_id}\n" + "\n".join(text.splitlines()[-lines:]))
        return "\n".join(parts)

    @abstractmethod
    def command(self, node_id: int) -> Sequence[str]:
        """What to run for a node."""

    @abstractmethod
    def prepare_node(self, node_id: int) -> None:
        """What else a node needs before its first start."""

    @abstractmethod
    def wait_ready(self) -> None:
        """Until every running node knows all that run."""

    def properties(self, node_id: int) -> dict[str, str]:
        """A node's properties, before the overrides."""
        founders = list(self.controller_ports.items())[: self.brokers - self.late]
        voters = (f"{voter}@127.0.0.1:{port}" for voter, port in founders)
        client = f"PLAINTEXT://127.0.0.1:{self.ports[node_id]}"
        roles, listeners = "broker", client
        if node_id in dict(founders):
            roles = "broker,controller"
            listeners = f"{client},CONTROLLER://127.0.0.1:{self.controller_ports[node_id]}"
        return {
            "process.roles": roles,
            "node.id": str(node_id),
            "controller.quorum.voters": ",".join(voters),
            "listeners": listeners,
            "advertised.listeners": client,
            "controller.listener.names": "CONTROLLER",
            "broker.rack": f"rack-{node_id}",
            "log.dirs": str(self.log_dir(node_id)),
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": str(min(3, self.brokers)),
            "group.initial.rebalance.delay.ms": "0",
        }

    def _write_config(self, node_id: int) -> None:
        properties = {**self.properties(node_id), **self.overrides}
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        self.config_file(node_id).write_text(text)

    def _log_file(self, node_id: int) -> Path:
        return self.base_dir / f"broker-{node_id}.err"
