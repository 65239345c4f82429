"""Every block of README and documents that starts something is typed, each in a folder of its own.

Half a minute each: a start is a JVM, brokers, and for most a Kafka beside it. What the reader must
bring stands in ``_reader``.
"""

import re
import shlex
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.support.documented import DOCUMENTS, documented_shell_lines, is_start
from tests.support.kafka_oracle import KafkaCluster, run_tool
from tests.support.kafka_secure import ADMIN, PASSWORD, SecureKafka
from tests.support.node_cluster import ROOT
from tests.support.ports import free_ports, free_ports_in_a_row
from tests.support.schema_registry import SchemaRegistryServer
from tests.support.typed import CTRL_C, Typed

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.kafka_oracle,
    pytest.mark.soak,  # some 25 starts of the product, one after the other
    pytest.mark.timeout(300),
]

NOT_TYPED: Final = ("git clone ", "alias ", "export ", "$SPARK_HOME")
"""The checkout is there; the PATH has `partiscope`; tests/spark/test_standalone.py types those of
Spark, and test_object_store.py does what those of a bucket do."""
BLOCKS: Final = [
    pytest.param(lines, id=f"{document.relative_to(ROOT)}-{number}")
    for document in DOCUMENTS
    for number, lines in enumerate(documented_shell_lines(document))
    if any(map(is_start, lines)) and not re.search("--master|s3://", " ".join(lines))
]
BESIDE_A_CLUSTER: Final = re.compile(
    r"partiscope (metrics|executor|collect|dashboard|exporter|demo)\b"
)
OTHER_CLUSTER: Final = urlsafe_b64encode(b"partiscope-other").decode().rstrip("=")
READY: Final = r"^(?:ready|waiting)\b"


@pytest.fixture(scope="module")
def kafka(
    kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[KafkaCluster, SecureKafka, str]]:
    """What documents call kafka1:9092, kafka1:9093 (where one must log in), registry:8081."""
    assert kafka_libs.exists()
    folder = tmp_path_factory.mktemp("kafka")
    with ExitStack() as stack:
        plain = stack.enter_context(KafkaCluster(folder / "plain", brokers=1))
        secure = stack.enter_context(SecureKafka(folder / "secure", cluster_id=OTHER_CLUSTER))
        registry = stack.enter_context(SchemaRegistryServer())
        words = ("--bootstrap-server", plain.bootstrap, "--topic", "orders")
        made = run_tool("org.apache.kafka.tools.ConsoleProducer", *words, stdin="hello\n")
        assert made.returncode == 0, made.stderr
        yield plain, secure, registry.url


class Shell:
    """A folder, and what its lines have started; documents' addresses are those of this test."""

    def __init__(self, folder: Path, filled: Mapping[str, str]) -> None:
        self.folder, self.filled = folder, filled
        self.port, self.page = free_ports_in_a_row(6), free_ports(1)[0]
        self.running: list[Typed] = []

    def fill(self, line: str) -> str:
        """The line with addresses, folders and ports of this test."""
        for theirs, mine in self.filled.items():
            line = line.replace(theirs, mine)
        line = re.sub(r" --(?:dashboard-)?port \d+", "", line)
        line = line.replace("127.0.0.1:9092", f"127.0.0.1:{self.port}")
        ports = f"--port {self.port} --dashboard-port {self.page}"
        line = re.sub(
            r"^(?:git pull && )?make up(?: ARGS=(\S+))?",
            rf"make -C {shlex.quote(str(ROOT))} up ARGS='--data {self.folder}/data {ports} \1'",
            line,
        )
        line = re.sub(r"partiscope up\b", f"partiscope up {ports}", line)
        line = re.sub(r"partiscope cluster\b", f"partiscope cluster --port {self.port}", line)
        return re.sub(r"partiscope dashboard\b", f"partiscope dashboard --port {self.page}", line)

    def start(self, line: str) -> None:
        """What another `up` would stand in the way of is ended first."""
        if " up" in line:
            self.end()
        typed = Typed(self.fill(line), self.folder, {"PARTISCOPE_DATA": f"{self.folder}/data"})
        self.running.append(typed)
        assert typed.says(READY), f"{typed.line}\n{typed.said}"

    def type(self, line: str) -> None:
        """A line that ends by itself, or follows a topic until Ctrl-C."""
        typed = Typed(self.fill(line), self.folder, {"PARTISCOPE_DATA": f"{self.folder}/data"})
        is_followed = "partiscope tail" in line
        typed.says("hello" if is_followed else None)
        status = typed.end()
        assert "Traceback" not in typed.said, typed.said
        assert status in (0, *((CTRL_C,) if is_followed else ())), f"{typed.line}\n{typed.said}"

    def end(self) -> None:
        """Ctrl-C to each, the last first; each ends as it should."""
        ended = [(it.line, it.end(), it.said) for it in reversed(self.running)]
        self.running.clear()
        for line, status, said in ended:
            assert status in (0, CTRL_C, 2), f"{line}: {status}\n{said}"  # 2: make tells of Ctrl-C
            assert "Traceback" not in said, said


@pytest.fixture
def shell(kafka: tuple[KafkaCluster, SecureKafka, str], tmp_path: Path) -> Iterator[Shell]:
    plain, secure, registry = kafka
    filled = {
        "kafka1:9092,kafka2:9092": plain.bootstrap,
        "kafka1:9093,kafka2:9093": secure.bootstrap,
        "kafka1:9092": plain.bootstrap,
        "kafka1:9093": secure.bootstrap,
        "http://registry:8081": registry,
        "client.properties": str(secure.client_properties(ADMIN)),
        "/srv/ps": str(tmp_path / "data"),
        "/tmp/demo": str(tmp_path / "data"),
        "--store s": f"--store {tmp_path}/data/store",
    }
    made = Shell(tmp_path, filled)
    (tmp_path / "password").write_text(PASSWORD)
    told = re.search(r"```toml\n(.*?)```", (ROOT / "docs/operate/watch.md").read_text(), re.DOTALL)
    assert told is not None
    settings = made.fill(told[1]).replace("/run/secrets/kafka", str(tmp_path / "password"))
    settings = settings.replace("/etc/kafka/ca.pem", str(secure.ca))
    settings = settings.replace("SCRAM-SHA-512", "PLAIN").replace('"partiscope"', f'"{ADMIN}"')
    test = f'[clusters.test]\nbootstrap = "{plain.bootstrap}"\n'
    (tmp_path / "partiscope.toml").write_text(f"{settings}\n{test}")
    try:
        yield made
    finally:
        for started in made.running:
            started.end()


@pytest.mark.parametrize("lines", BLOCKS)
def test_a_block_starts_what_it_says(shell: Shell, lines: list[str]) -> None:
    if BESIDE_A_CLUSTER.search(lines[0]):
        shell.start("partiscope cluster")
    if "partiscope broker " in lines[0]:
        shell.start("partiscope cluster --brokers 1")  # it writes the file of properties
        shell.end()
    if "--brokers 5" in lines[0]:
        shell.start("partiscope up --no-demo")  # "founded with three"
    if "--remove-brokers" in lines[0]:
        shell.start("partiscope up --no-demo")
        shell.start("partiscope up --no-demo --brokers 5")
    for line in lines:
        if line.startswith(NOT_TYPED):
            continue
        if is_start(line):
            shell.start(line)
        else:
            shell.type(line)
    shell.end()
