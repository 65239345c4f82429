"""Real Apache Kafka from Maven Central on loopback: the oracle that our broker is compared with."""

import hashlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from spark_metrics.job.connector_jars import cache_folder
from tests.support.isolation import MACHINE
from tests.support.kafka_tools import tool_jvm
from tests.support.node_cluster import CLUSTER_ID, QUORUM_FETCH, NodeCluster, stretched
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until

KAFKA_VERSION: Final = "4.1.0"
KAFKA_TODAY: Final = "4.4.0"
"""The newest release: groups of every kind, log directories that can be cordoned."""
USED: Final[set[str]] = set()
"""Versions of the clusters that were asked for their address since this was emptied."""
MAY_NOT: Final[set[str]] = set()
"""The running test where it is one of `make test`: no JVM of Kafka starts there."""
START_TIMEOUT_S: Final = 90.0
QUICK_START: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""A node that lives for a minute is done before the second compiler and parallel GC pay."""


class OracleUnavailableError(Exception):
    """Java or Maven lack, or the artifacts cannot be fetched."""


def kafka_libs(version: str = KAFKA_VERSION) -> Path:
    """Folder with Kafka's jars; fetched by Maven on the first call, then kept.

    Raises:
        OracleUnavailableError: with what is missing.
    """
    pom = "kafka_zookeeper" if version.startswith("2.") else "kafka_oracle"
    return _kept(version, "libs", pom)


def streams_libs() -> Path:
    """Folder with the jars of Kafka Streams, of the newest Kafka.

    Raises:
        OracleUnavailableError: with what is missing.
    """
    return _kept(KAFKA_TODAY, "streams", "kafka_streams")


def make_class_archive(version: str) -> None:
    """Keep the classes that a node loads at its start, unless they are kept already.

    A JVM that maps them starts with little more than half the work (class data sharing, JEP 350).
    Without the archive everything works, only later.
    """
    archive = _class_archive(version)
    if archive is None or archive.exists():
        return
    with tempfile.TemporaryDirectory(prefix="partiscope-classes-") as folder:
        made = Path(folder) / archive.name
        flags = (*QUICK_START, f"-XX:ArchiveClassesAtExit={made}")
        with KafkaCluster(Path(folder) / "kafka", 1, jvm_flags=flags, version=version) as cluster:
            for node_id in cluster.ids:
                cluster.kill(node_id, signal.SIGTERM)
        # Into the same folder first, so that nobody maps a half of it.
        shutil.move(made, archive.with_suffix(".new"))
        archive.with_suffix(".new").rename(archive)


def _class_flags(version: str) -> Sequence[str]:
    archive = _class_archive(version)
    return (f"-XX:SharedArchiveFile={archive}",) if archive and archive.exists() else ()


@cache
def _class_archive(version: str) -> Path | None:
    """Named after the Java that can map it; None where there is no Java."""
    if shutil.which("java") is None:
        return None
    java = subprocess.run(("java", "-version"), capture_output=True, text=True, check=True).stderr
    name = hashlib.sha256(java.encode()).hexdigest()[:12]
    return kafka_libs(version).with_name(f"classes-{name}.jsa")


def _kept(version: str, folder: str, pom: str) -> Path:
    assert not MAY_NOT, f"{MAY_NOT} uses real Kafka: mark it kafka_oracle, for `make test-all`"
    libs = cache_folder() / "kafka" / version / folder
    if any(libs.glob("kafka-clients-*.jar")):
        return libs
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise OracleUnavailableError(f"`{program}` is not installed: real Kafka needs it")
    _fetch(libs, version, Path(__file__).with_name(f"{pom}.pom.xml"))
    return libs


def _fetch(libs: Path, version: str, pom: Path) -> None:
    """Into a folder of its own first, so that an interrupted fetch is not taken for a whole one."""
    part = libs.with_name(f"{libs.name}.part")
    done = subprocess.run(
        [
            *("mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"),
            *(f"-DoutputDirectory={part}", f"-Dkafka.version={version}"),
        ],
        env=MACHINE,
        capture_output=True,
        text=True,
        timeout=patience_s(600),
        check=False,
    )
    if done.returncode != 0:
        raise OracleUnavailableError(f"Maven could not fetch Kafka {version}: {done.stdout[-500:]}")
    part.rename(libs)


def run_tool(
    main_class: str, *args: str, stdin: str | None = None, version: str = KAFKA_VERSION
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's own tools, e.g. ``org.apache.kafka.tools.TopicCommand``."""
    return tool_jvm(kafka_libs(version)).run(main_class, args, stdin)


ANSWER_MS_MAX: Final = 300_000
"""The most that librdkafka takes as the time-out of a request."""


def ready_admin(**config: str | int) -> AdminClient:
    """An admin client that has met the brokers: a first request may go to a handle that the first
    metadata replaces, and is lost with it. It waits as long for answers as tests do."""
    waits = {"socket.timeout.ms": min(round(WAIT_S * 1_000), ANSWER_MS_MAX)}
    admin = AdminClient({"log_level": 0, **waits, **config})
    admin.list_topics(timeout=WAIT_S)
    return admin


@dataclass
class KafkaCluster(NodeCluster):
    """Combined KRaft nodes (broker and controller) of real Kafka, one process each."""

    jvm_flags: tuple[str, ...] = QUICK_START
    version: str = KAFKA_VERSION
    cluster_id: str = CLUSTER_ID
    log_dirs: int = 1
    """How many log directories each node has."""

    @property
    def bootstrap(self) -> str:
        """``host:port,…`` of every node; who asks for it talks to this Kafka."""
        USED.add(self.version)
        return super().bootstrap

    def directories(self, node_id: int) -> tuple[Path, ...]:
        """The log directories of a node, as its configuration names them."""
        first = self.log_dir(node_id)
        more = (first.with_name(f"{first.name}-{number}") for number in range(2, self.log_dirs + 1))
        return first, *more

    def command(self, node_id: int) -> Sequence[str]:
        """The server with its properties file."""
        flags = ("-Xmx512m", *_class_flags(self.version), *self.jvm_flags)
        libs = f"{kafka_libs(self.version)}/*"
        return ("java", *flags, "-cp", libs, "kafka.Kafka", str(self.config_file(node_id)))

    def properties(self, node_id: int) -> dict[str, str]:
        """Its own, and those of internal topics that as many nodes can hold."""
        return {
            **super().properties(node_id),
            "log.dirs": ",".join(map(str, self.directories(node_id))),
            "broker.rack": "abc"[(node_id - self.first_id) % 3],
            **stretched({"broker.session.timeout.ms": 9_000, QUORUM_FETCH: 2_000}),
            "transaction.state.log.replication.factor": str(min(3, self.brokers)),
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": str(min(3, self.brokers)),
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "4",
        }

    def prepare_node(self, node_id: int) -> None:
        """Format its data directory."""
        config = str(self.config_file(node_id))
        flags = ("format", "-t", self.cluster_id, "-c", config)
        done = run_tool("kafka.tools.StorageTool", *flags, version=self.version)
        assert done.returncode == 0, done.stderr

    def wait_ready(self) -> None:
        """Until the running nodes are registered."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

        def are_registered() -> bool:
            dead = [node for node, process in self.processes.items() if process.poll() is not None]
            assert not dead, f"Kafka nodes {dead} ended at start\n{self.story()}"
            try:
                return admin.list_topics(timeout=2).brokers.keys() >= self.processes.keys()
            except KafkaException:
                return False

        wait_until(are_registered, "Kafka is ready", timeout_s=START_TIMEOUT_S, story=self.story)
