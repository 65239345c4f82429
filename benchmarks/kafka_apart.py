"""Real Kafka whose controller is a node of its own, as its documentation advises.

So that none of its brokers hears of new leader epochs before the others because it is the
controller too; what that changes is told in docs/decisions/0012.
"""

import subprocess
from dataclasses import dataclass
from typing import Final

from tests.support.kafka_oracle import KafkaCluster
from tests.support.ports import free_ports

CONTROLLER_ID: Final = 200


@dataclass
class ApartKafka(KafkaCluster):
    """Brokers that are no controllers, and one controller that is no broker."""

    controller_port: int = 0
    controller: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """The controller first."""
        (self.controller_port,) = free_ports(1)
        self.base_dir.mkdir(parents=True, exist_ok=True)
        self._write_config(CONTROLLER_ID)
        self.prepare_node(CONTROLLER_ID)
        self.start_node(CONTROLLER_ID)
        self.controller = self.processes.pop(CONTROLLER_ID)
        super().start()

    def stop(self) -> None:
        """The controller last."""
        super().stop()
        if self.controller is not None:
            self.controller.kill()
            self.controller.wait()

    def properties(self, node_id: int) -> dict[str, str]:
        """Of a broker without a controller, or of the controller."""
        address = f"127.0.0.1:{self.controller_port}"
        quorum = {
            "controller.quorum.voters": f"{CONTROLLER_ID}@{address}",
            "controller.listener.names": "CONTROLLER",
        }
        if node_id == CONTROLLER_ID:
            return {
                "process.roles": "controller",
                "node.id": str(CONTROLLER_ID),
                "listeners": f"CONTROLLER://{address}",
                "log.dirs": str(self.log_dir(CONTROLLER_ID)),
                **quorum,
            }
        client = f"PLAINTEXT://127.0.0.1:{self.ports[node_id]}"
        own = {"process.roles": "broker", "listeners": client}
        return {**super().properties(node_id), **own, **quorum}
