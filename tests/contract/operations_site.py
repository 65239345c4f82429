"""A cluster with data, a bus, an executor and a command line: where operators' scenes play."""

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.contract.operations_rig import ExecutorProcess, unique
from tests.support.cluster import LocalCluster
from tests.support.command_line import CommandLine
from tests.support.kafka_eyes import KafkaEyes
from tests.support.kafka_oracle import QUICK_START, KafkaCluster
from tests.support.node_cluster import NodeCluster, stretched
from tests.support.paced_producer import fill
from tests.support.settle import wait_until

Placement = Mapping[int, Sequence[int]]
NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, kw_only=True)
class Site:
    """Ours is its own bus, as after `partiscope up`; Kafka has one of ours beside it."""

    cluster: NodeCluster
    cli: CommandLine
    executor: ExecutorProcess
    eyes: KafkaEyes

    @property
    def folder(self) -> Path:
        """Where commands run and plans lie."""
        return self.cli.folder

    def topic(
        self, stem: str, placement: Placement, *, partition_bytes: int, acks: str = "all"
    ) -> str:
        """A topic of its own with so many bytes in each partition."""
        name = unique(stem)
        self.eyes.create(name, placement)
        fill(self.cluster.bootstrap, name, dict.fromkeys(placement, partition_bytes), acks=acks)
        return name

    def plan_by_hand(self, topic: str, placement: Placement) -> str:
        """Kafka's reassignment file as people write it; its name."""
        partitions = [
            {"topic": topic, "partition": number, "replicas": list(replicas)}
            for number, replicas in placement.items()
        ]
        name = f"{topic}.json"
        (self.folder / name).write_text(json.dumps({"version": 1, "partitions": partitions}))
        return name

    def check_settled(self, topic: str, placement: Placement) -> None:
        """It lies so and is led by its first replicas, all in sync; no throttle is left."""
        wanted = {number: tuple(replicas) for number, replicas in placement.items()}
        leaders = {number: replicas[0] for number, replicas in wanted.items()}
        eyes = self.eyes

        def is_settled() -> bool:
            return (
                eyes.replicas(topic) == wanted
                and eyes.leaders(topic) == leaders
                and eyes.is_in_sync(topic)
            )

        def story() -> str:
            return f"{eyes.replicas(topic)} led by {eyes.leaders(topic)}, wanted {wanted}"

        wait_until(is_settled, f"{topic} has settled", story=story)
        assert eyes.reassigning() == ""
        # A broker that has just come back may still tell the configs of before.
        wait_until(
            lambda: eyes.throttles(topic) == {},
            f"no throttle of {topic} is left",
            story=lambda: str(eyes.throttles(topic)),
        )

    @contextmanager
    def without(self, node: int) -> Iterator[None]:
        """A broker is killed, and back afterwards."""
        self.cluster.kill(node)
        try:
            yield
        finally:
            self.cluster.restart(node)

    def kill_executor(self) -> None:
        """As the kernel does when memory runs out."""
        assert self.executor.end(signal.SIGKILL) == -signal.SIGKILL


@contextmanager
def site_of(
    kind: str,
    folder: Path,
    *,
    brokers: int = 3,
    late: int = 0,
    kafka: type[KafkaCluster] = KafkaCluster,
    jvm_flags: tuple[str, ...] = QUICK_START,
    overrides: Mapping[str, str] = NOTHING,
) -> Iterator[Site]:
    """A site on a cluster of so many brokers, of which ``late`` are not there yet; ``ours`` is
    without Java."""
    cluster: NodeCluster
    data = folder / "cluster"
    if kind == "ours":
        cluster = LocalCluster(data, brokers=brokers, late=late, overrides=overrides)
    else:
        wanted = {**QUICK, **overrides}
        cluster = kafka(data, brokers=brokers, late=late, overrides=wanted, jvm_flags=jvm_flags)
    with ExitStack() as stack:
        stack.enter_context(cluster)
        bus = cluster.bootstrap
        if kind == "kafka":
            bus = stack.enter_context(LocalCluster(folder / "bus", brokers=1)).bootstrap
        executor = stack.enter_context(
            ExecutorProcess(bus=bus, log=folder / "executor.log", watched=cluster.bootstrap)
        )
        executor.wait_until_said("ready")
        cli = CommandLine(bootstrap=cluster.bootstrap, bus=bus, folder=folder)
        stack.callback(cli.close)
        yield Site(cluster=cluster, cli=cli, executor=executor, eyes=KafkaEyes(cluster.bootstrap))


QUICK: Final[Mapping[str, str]] = {
    **stretched({"broker.session.timeout.ms": 3_000}),
    "broker.heartbeat.interval.ms": "500",
}
"""Kafka fences a dead broker after nine seconds; these scenes need not wait for that."""
