"""Other planners on the same topologies, judged by the same judge as ours.

    python -m benchmarks.planner_peers CASE.json[.gz] …                 Kafka's and ours
    python -m benchmarks.planner_peers --kafka-kit CHECKOUT CASE …      and topicmappr's

Kafka's ``--generate`` is its own method in `ReassignPartitionsCommand`, called in a JVM without a
cluster (benchmarks/peers/KafkaGenerate.java). Seconds are CPU of the planning alone: reading the
input and judging the result are not counted, the JVM's first steps are. topicmappr's planner is
compiled from a checkout of DataDog's kafka-kit (v4.2.1 was measured) with benchmarks/peers/
topicmappr.go in the place of its command line; it has no way to empty a broker without its
metadata, so a case that removes brokers is left out.
"""

import argparse
import gzip
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from planner.figures import Balance
from planner.goals import PlanRequest
from planner.optimizer import Alternative, judged_plan, plan
from planner.proposal import proposal_of
from planner.reassignment_json import parse_reassignment
from planner.topology import Topology, parse_topology, topology_document
from tests.support.kafka_oracle import KAFKA_VERSION, kafka_libs

Planner = Callable[[Topology], tuple[float, Alternative]]
PEERS: Final = Path(__file__).parent / "peers"
CHUNK_S: Final = 300
MODULE: Final = "module github.com/DataDog/kafka-kit/v4\n\ngo 1.22\n"
BROKER_STATES: Final = """package kafkaadmin

type BrokerState struct {
	Host, Rack, LogMessageFormat, InterBrokerProtocolVersion string
	Port                                                     int
}

type BrokerStates map[int]BrokerState
"""
"""What the planner needs of a package that otherwise wants librdkafka."""


def kafka_generated(topology: Topology) -> tuple[float, Alternative]:
    """(CPU seconds, judged plan) of Kafka's own planner."""
    command = ("java", "-cp", f"{kafka_libs()}/*", str(PEERS / "KafkaGenerate.java"))
    return _asked("kafka", command, topology)


def topicmappr(built: Path, topology: Topology) -> tuple[float, Alternative]:
    """(CPU seconds, judged plan) of topicmappr with its default flags."""
    return _asked("topicmappr", (str(built),), topology)


def build_topicmappr(checkout: Path, folder: Path) -> Path:
    """The program, from kafka-kit's planner and our main function."""
    commands = checkout / "cmd" / "topicmappr" / "commands"
    (folder / "go.mod").write_text(MODULE)
    for name in ("mapper", "kafkaadmin"):
        (folder / name).mkdir()
    for source in (checkout / "mapper").glob("*.go"):
        if not source.stem.endswith(("_test", "_stub")):
            (folder / "mapper" / source.name).write_text(source.read_text())
    states = (checkout / "kafkaadmin" / "topic_state.go").read_text()
    (folder / "kafkaadmin" / "topic_state.go").write_text(states)
    (folder / "kafkaadmin" / "broker_state.go").write_text(BROKER_STATES)
    planner = (commands / "planner.go").read_text().replace("package commands", "package main")
    (folder / "planner.go").write_text(planner)
    whole = (commands / "reassignments.go").read_text()
    parts = [
        _between(whole, "type reassignmentBundle struct", "type reassignParams struct"),
        _between(whole, "func computeReassignmentBundles(", "\n}\n") + "\n}\n",
    ]
    imports = 'import (\n"sync"\n"github.com/DataDog/kafka-kit/v4/mapper"\n)\n'
    (folder / "bundles.go").write_text("package main\n" + imports + "\n".join(parts))
    (folder / "main.go").write_text((PEERS / "topicmappr.go").read_text())
    subprocess.run(("go", "build", "-o", "peer", "."), cwd=folder, check=True, timeout=CHUNK_S)
    return folder / "peer"


def _between(text: str, first: str, last: str) -> str:
    """From the first words up to the last."""
    start = text.index(first)
    return text[start : text.index(last, start)]


def _asked(name: str, command: Sequence[str], topology: Topology) -> tuple[float, Alternative]:
    """What a program answers to a topology file, judged as ours are."""
    document: dict[str, Any] = topology_document(topology)
    document["remove_brokers"] = list(topology.remove_brokers)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        done = subprocess.run(
            (*command, file.name), capture_output=True, text=True, check=True, timeout=CHUNK_S
        )
    answer = json.loads(done.stdout.splitlines()[-1])
    targets = parse_reassignment(json.dumps({"version": 1, "partitions": answer["partitions"]}))
    request = PlanRequest(remove_brokers=topology.remove_brokers)
    proposal = proposal_of(name, topology, targets)
    (judged,) = judged_plan(topology, request, proposal).alternatives
    return answer["seconds"], judged


def ours(topology: Topology) -> tuple[float, Alternative]:
    """(CPU seconds, the recommended plan)."""
    started_s = time.process_time()
    (first,) = plan(topology, PlanRequest(alternatives=1)).alternatives
    return time.process_time() - started_s, first


def main() -> None:
    """A table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--kafka-kit", type=Path, help="a checkout, to compile topicmappr from")
    given = parser.parse_args()
    print(f"kafka: kafka-reassign-partitions {KAFKA_VERSION}")
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        built = given.kafka_kit and build_topicmappr(given.kafka_kit, Path(folder))
        for path in given.files:
            _compare(path, built)


def _compare(path: Path, built: Path | None) -> None:
    raw = path.read_bytes()
    topology = parse_topology(json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw))
    planners: dict[str, Planner] = {"ours": ours, "kafka": kafka_generated}
    if built and not topology.remove_brokers:
        planners["topicmappr"] = partial(topicmappr, built)
    for name, planner in planners.items():
        print(_line(path.name.partition(".")[0], name, *planner(topology)), flush=True)


HEAD: Final = (
    f"{'case':<16}{'planner':<11}{'CPU s':>7}{'moved':>9}{'GB':>9}{'least GB':>9}{'replicas':>12}"
    f"{'leaders':>10}{'max/mean':>9}{'bad':>5}"
)


def _line(case: str, name: str, seconds: float, judged: Alternative) -> str:
    balance: Balance = judged.balance
    counts = f"{balance.replicas.min}-{balance.replicas.max}"
    leads = f"{balance.leaders.min}-{balance.leaders.max}"
    return (
        f"{case:<16}{name:<11}{seconds:>7.2f}{judged.proposal.moved_replicas:>9,}"
        f"{judged.proposal.moved_bytes / 1e9:>9,.0f}{(judged.lower_bound_bytes or 0) / 1e9:>9,.0f}"
        f"{counts:>12}{leads:>10}{balance.bytes.max / max(1.0, balance.bytes.mean):>9.3f}"
        f"{len(judged.violations):>5}"
    )


if __name__ == "__main__":
    main()
