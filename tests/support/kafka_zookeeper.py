"""Real Apache Kafka 2.8 with one ZooKeeper: only one of its brokers is the controller."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.support.kafka_oracle import KafkaCluster, kafka_libs, ready_admin
from tests.support.node_cluster import STOP_TIMEOUT_S
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports
from tests.support.settle import wait_until

ZOOKEEPER_KAFKA_VERSION: Final = "2.8.2"
"""Its tools are of no use to `run_tool`; those of 4.1 speak to it."""
SESSION_TIMEOUT_MS: Final = 6_000
"""So long after a broker is killed the controller takes it for dead."""
LOGGING: Final = """log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.Target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


@dataclass
class ZooKeeperCluster(KafkaCluster):
    """Brokers of Kafka 2.8 and one ZooKeeper, one process each.

    Record formats 0 and 1 are written to topics with ``message.format.version`` 0.9.0 and 0.10.0,
    or everywhere with the override ``log.message.format.version``.
    """

    version: str = ZOOKEEPER_KAFKA_VERSION
    zookeeper_port: int = 0
    zookeeper: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start ZooKeeper, then the brokers, which wait until it answers."""
        self.zookeeper_port = free_ports(1)[0]
        self.base_dir.mkdir(parents=True, exist_ok=True)
        (self.base_dir / "log4j.properties").write_text(LOGGING)
        self._start_zookeeper()
        super().start()

    def stop(self) -> None:
        """End the brokers, then ZooKeeper."""
        super().stop()
        if self.zookeeper is not None:
            self.zookeeper.kill()
            self.zookeeper.wait(STOP_TIMEOUT_S)
            self.zookeeper = None

    def controller_id(self) -> int:
        """The broker that is the controller now; -1 while there is none."""
        admin = ready_admin(**{"bootstrap.servers": self.bootstrap})
        return int(admin.list_topics(timeout=WAIT_S).controller_id)

    def bystander(self) -> str:
        """``host:port`` of a running broker that is not the controller."""
        controller = self.controller_id()
        node_id = next(node for node in self.processes if node != controller)
        return f"127.0.0.1:{self.ports[node_id]}"

    def command(self, node_id: int) -> Sequence[str]:
        """A broker with its properties file."""
        return self._java("256m", "kafka.Kafka", str(self.config_file(node_id)))

    def properties(self, node_id: int) -> dict[str, str]:
        """Those of a KRaft node without its quorum, and where ZooKeeper is."""
        kraft = super().properties(node_id)
        quorum = ("process.roles", "node.id", "controller.")
        return {
            **{name: kraft[name] for name in kraft if not name.startswith(quorum)},
            "broker.id": str(node_id),
            "listeners": kraft["advertised.listeners"],
            "zookeeper.connect": f"127.0.0.1:{self.zookeeper_port}",
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        }

    def prepare_node(self, node_id: int) -> None:
        """Nothing: a broker formats its directory itself."""

    def wait_ready(self) -> None:
        """Until the running brokers are registered and one of them is the controller."""
        super().wait_ready()
        wait_until(lambda: self.controller_id() in self.processes, "a controller", story=self.story)

    def _start_zookeeper(self) -> None:
        config = self.base_dir / "zookeeper.properties"
        config.write_text(
            f"clientPort={self.zookeeper_port}\nclientPortAddress=127.0.0.1\n"
            f"dataDir={self.base_dir / 'zookeeper'}\nadmin.enableServer=false\ntickTime=1000\n"
        )
        main_class = "org.apache.zookeeper.server.ZooKeeperServerMain"
        with (self.base_dir / "zookeeper.err").open("ab") as log:
            self.zookeeper = subprocess.Popen(
                self._java("64m", main_class, str(config)), stdout=log, stderr=log, env=os.environ
            )

    def _java(self, heap: str, main_class: str, config: str) -> Sequence[str]:
        logging = f"-Dlog4j.configuration=file:{self.base_dir / 'log4j.properties'}"
        path = f"{kafka_libs(self.version)}/*"
        return ("java", f"-Xmx{heap}", *self.jvm_flags, logging, "-cp", path, main_class, config)
