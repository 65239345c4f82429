"""Chaos on real processes: what was acknowledged is read, once, in order, on ours and on Kafka.

`PARTISCOPE_CHAOS_S` says how long each cluster is tormented, half an hour if it does not. Brokers
are killed, stopped and continued, cut off by a proxy, and run out of disk where the tests may mount
one. An idempotent producer and a group work all the while. The seed decides whom each misfortune
meets, not what the machine makes of it.

A line of JSON is printed for each cluster: misfortunes by kind, records acknowledged, read, lost,
out of order, the longest gap without an acknowledgement for each kind of misfortune and role of
its node, memory and descriptors of the largest node. `PARTISCOPE_CHAOS_LOGS` names a directory
that the brokers' logs are kept in.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.cimpl import NewTopic

from broker.protocol import codec
from tests.support.chaos_report import ChaosReport, Misfortune
from tests.support.cluster import LocalCluster
from tests.support.cut_proxy import CutProxy
from tests.support.isolation import MACHINE
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.ledger import (
    TOPIC,
    SteadyProducer,
    check_ledger,
    compare_ledger,
    consume_all,
)
from tests.support.node_cluster import NodeCluster
from tests.support.patience import WAIT_S, patience_s
from tests.support.wire import ask, topic_at

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]

CHAOS_S: Final = float(MACHINE.get("PARTISCOPE_CHAOS_S", "1800"))
LOGS: Final = MACHINE.get("PARTISCOPE_CHAOS_LOGS", "")
SEED: Final = int(MACHINE.get("PARTISCOPE_CHAOS_SEED", "1"))
PER_SECOND: Final = 400
DISK_BYTES: Final = 192 << 20
CALM_S: Final = 6.0
TORMENT_S: Final = 4.0
GAP_LOOK_S: Final = 15.0
GAP_S_MAX: Final = patience_s(2.0)
GROWTH_BYTES_MAX: Final = 64 << 20
DESCRIPTORS_MORE_MAX: Final = 60
COMMIT_EVERY: Final = 50
DESCRIBE_QUORUM: Final = (55, 0)


class GroupReader:
    """A member of a group that reads and commits; `went_back` are reads below a commit."""

    def __init__(self, bootstrap: str) -> None:
        self.committed = 0
        self.went_back: list[tuple[int, int]] = []
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "chaos",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "log_level": 0,
            }
        )
        consumer.subscribe([TOPIC])
        while not self._stop.is_set():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            offset = int(message.offset() or 0)
            if offset < self.committed:
                self.went_back.append((offset, self.committed))
            if offset % COMMIT_EVERY == 0:
                with suppress(KafkaException):
                    consumer.commit(message=message, asynchronous=False)
                    self.committed = offset + 1
        consumer.close()

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join()


class Chaos:
    """Torments a cluster step by step, and heals it after each."""

    def __init__(self, cluster: NodeCluster, proxies: dict[int, CutProxy], *, has_disks: bool):
        self.dice = random.Random(SEED)
        self.report = ChaosReport()
        self._cluster = cluster
        self._proxies = proxies
        self._kinds = ["kill", "stop", "cut", "silence", *(["fill"] if has_disks else [])]

    def step(self) -> None:
        """One misfortune of one node, and calm after it."""
        kind, node = self.dice.choice(self._kinds), self.dice.choice(self._cluster.ids)
        self.meet(kind, node)
        getattr(self, f"_{kind}")(node)
        self._revive()
        time.sleep(CALM_S)
        self.report.measure([process.pid for process in self._cluster.processes.values()])

    def meet(self, kind: str, node: int) -> None:
        """Note that a misfortune begins."""
        roles = _roles(self._cluster, node)
        self.report.misfortunes.append(
            Misfortune(kind=kind, node=node, roles=roles, begun_s=time.monotonic())
        )

    def _kill(self, node: int) -> None:
        self._cluster.kill(node)
        time.sleep(self.dice.uniform(0.2, TORMENT_S))

    def _stop(self, node: int) -> None:
        process = self._cluster.processes[node]
        process.send_signal(signal.SIGSTOP)
        time.sleep(TORMENT_S)
        process.send_signal(signal.SIGCONT)

    def _cut(self, node: int) -> None:
        self._proxies[node].cut()
        time.sleep(TORMENT_S)
        self._proxies[node].begin()

    def _silence(self, node: int) -> None:
        self._proxies[node].fall_silent()
        time.sleep(TORMENT_S)
        self._proxies[node].begin()

    def _fill(self, node: int) -> None:
        ballast = self._cluster.log_dir(node) / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        time.sleep(TORMENT_S)
        ballast.unlink()

    def _revive(self) -> None:
        """Start again whoever was killed, or ended because of its disk."""
        for node in self._cluster.ids:
            process = self._cluster.processes.get(node)
            if process is None or process.poll() is not None:
                self._cluster.start_node(node)


def _behind(kind: str) -> type[NodeCluster]:
    """A cluster whose brokers are met, by clients and by each other, behind proxies."""
    base: Any = LocalCluster if kind == "ours" else KafkaCluster

    class Proxied(base):  # type: ignore[misc]
        proxies: dict[int, CutProxy]

        def properties(self, node_id: int) -> dict[str, str]:
            proxy = self.proxies.setdefault(node_id, CutProxy(self.ports[node_id]))
            own: dict[str, str] = super().properties(node_id)
            return {**own, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}

    return Proxied


@pytest.fixture(params=["ours", pytest.param("kafka", marks=pytest.mark.kafka_oracle)])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, NodeCluster, Any]]:
    """The kind of a cluster, the cluster, and its proxies; each node on a small disk of its own."""
    if request.param == "kafka":
        request.getfixturevalue("kafka_libs")
    overrides = {"min.insync.replicas": "2", "log.segment.bytes": str(4 << 20)}
    cluster: Any = _behind(request.param)(tmp_path, overrides=overrides)
    cluster.proxies = {}
    with ExitStack() as stack:
        for node in (101, 102, 103):
            directory = cluster.log_dir(node)
            directory.mkdir(parents=True)
            if _mounted(directory):
                stack.callback(subprocess.run, ["umount", "-l", str(directory)], check=False)
        stack.callback(_keep_logs, cluster, request.param)
        stack.callback(cluster.stop)
        begin = cluster.prepare_node

        def prepare(node: int) -> None:
            stack.enter_context(cluster.proxies[node])
            begin(node)

        cluster.prepare_node = prepare
        cluster.start()
        yield request.param, cluster, cluster.proxies


def _keep_logs(cluster: NodeCluster, kind: str) -> None:
    if LOGS:
        Path(LOGS).mkdir(parents=True, exist_ok=True)
        for file in cluster.base_dir.glob("*.err"):
            shutil.copy(file, Path(LOGS) / f"{kind}-{file.name}")


def _mounted(directory: Path) -> bool:
    flags = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs"]
    done = subprocess.run(["mount", *flags, str(directory)], capture_output=True, check=False)
    return done.returncode == 0


def _controller(cluster: NodeCluster) -> int:
    topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    message = codec.build_request(*DESCRIBE_QUORUM, topics=topics)
    answer = ask(cluster.bootstrap.split(",")[0], *DESCRIBE_QUORUM, message)
    return int(answer.topics[0].partitions[0].leader_id)


def _leader(cluster: NodeCluster) -> int:
    return int(topic_at(cluster.bootstrap.split(",")[0], TOPIC).partitions[0].leader_id)


def _roles(cluster: NodeCluster, node: int) -> tuple[str, ...]:
    """What a node is by now, as far as the first node can tell."""
    roles = list[str]()
    for role, find in (("leader", _leader), ("controller", _controller)):
        with suppress(OSError, AttributeError):
            roles += [role] if find(cluster) == node else []
    return tuple(roles) or ("follower",)


def _gap_s(chaos: Chaos, cluster: NodeCluster, producer: SteadyProducer, victim: int) -> float:
    """The longest time without an acknowledgement after a node is killed."""
    producer.wait_acknowledged(500)
    chaos.meet("kill", victim)
    killed = time.monotonic()
    cluster.kill(victim)
    time.sleep(GAP_LOOK_S)
    producer.wait_acknowledged(100)
    gap_s = producer.longest_gap_s(killed)
    cluster.restart(victim)
    time.sleep(CALM_S)
    return gap_s


def test_chaos_loses_and_reorders_nothing(
    site: tuple[str, NodeCluster, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    kind, cluster, proxies = site
    admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(WAIT_S)
    producer = SteadyProducer(cluster.bootstrap, per_second=PER_SECOND)
    reader = GroupReader(cluster.bootstrap)
    chaos = Chaos(cluster, proxies, has_disks=os.path.ismount(cluster.log_dir(101)))
    figures: dict[str, Any] = {"cluster": kind, "seed": SEED}
    try:
        for role, find in (("leader", _leader), ("controller", _controller)):
            figures[f"gap_s_after_{role}"] = round(
                _gap_s(chaos, cluster, producer, find(cluster)), 2
            )
        begun = time.monotonic()
        while time.monotonic() - begun < CHAOS_S:
            chaos.step()
        cluster.wait_ready()
        producer.wait_acknowledged(500)
    finally:
        reader.stop()
        producer.stop()
    found = consume_all(cluster.bootstrap, len(producer.acknowledged))
    figures |= {
        "took_s": round(time.monotonic() - begun),
        **compare_ledger(producer, found),
        "longest_gap_s": round(producer.longest_gap_s(begun), 2),
        "commits_went_back": len(reader.went_back),
        **chaos.report.figures(producer.ack_times),
    }
    with capsys.disabled():
        print(f"\n{json.dumps(figures)}")
    check_ledger(producer, found)
    assert reader.went_back == []
    assert reader.committed > 0
    if kind == "ours":
        early, late = (chaos.report.half(is_late=is_late) for is_late in (False, True))
        assert late.resident_bytes < early.resident_bytes + GROWTH_BYTES_MAX
        assert late.descriptors <= early.descriptors + DESCRIPTORS_MORE_MAX
        assert max(figures["gap_s_after_leader"], figures["gap_s_after_controller"]) <= GAP_S_MAX
