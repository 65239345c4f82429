"""Requests of all kinds to three real nodes, and damage to their files: none ends without a reason.

`tests.support.fuzzing` says for how long, and with which dice.
"""

import asyncio
import random
import re
import shutil
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from broker.handlers.registry import Api, load_registry
from broker.handlers.services import Listener
from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch, iter_batch_headers, iter_records
from tests.support.cases import case
from tests.support.cluster import NOBODY_DIES, ClusterError, LocalCluster
from tests.support.fuzzing import FAULTS, FUZZ_S, FUZZ_SEED, damage
from tests.support.node_cluster import CLUSTER_ID
from tests.support.patience import patience_s
from tests.support.random_values import random_request
from tests.support.settle import wait_until
from tests.support.wire import ask

pytestmark = [pytest.mark.soak, pytest.mark.timeout(FUZZ_S + patience_s(300.0))]

LEDGER: Final = "ledger"
CREATE_TOPICS: Final = (19, 5)
PRODUCE: Final = (0, 9)
FETCH: Final = (1, 11)
ENVELOPE: Final = 58
NOW_MS: Final = 1_700_000_000_000
ANSWER_S_MAX: Final = 0.05
TOGETHER: Final = 8
SYNC_S: Final = 5.0
GROWTH_KIB_MAX: Final = 300 * 1024
"""What a node may take more than after its start; the bound of requests in flight is below it."""
PIECES: Final = (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00" * 8, b"\xff" * 10)


def damaged(dice: random.Random, frame: bytes) -> bytes:
    """A frame whose body, or seldom its size, is not what it should be."""
    body = bytearray(frame[4:])
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(body)) if body else 0
        match dice.randrange(5):
            case 0:
                body[at:at] = dice.choice(PIECES)
            case 1:
                body[at : at + 4] = dice.choice(PIECES)[:4]
            case 2:
                del body[at : at + dice.randint(1, 8)]
            case 3:
                body[at:] = b""
            case _:
                body[at : at + 1] = bytes([dice.randrange(256)])
    body[:4] = frame[4:8]  # so that it is still of this API and version
    size = len(body) if dice.random() < 0.95 else dice.choice((-1, 0, 5, len(body) + 1, 2**31 - 1))
    return struct.pack(">i", size) + bytes(body)


def frames(dice: random.Random, api: Api, version: int) -> Iterator[bytes]:
    """One that the schema allows, and one that is damaged."""
    message: Any = random_request(dice, api.api_key, version)
    if hasattr(message, "cluster_id") and dice.random() < 0.5:
        message = replace(message, cluster_id=CLUSTER_ID)
    if api.api_key == ENVELOPE and dice.random() < 0.8:
        message = replace(message, request_data=forwarded(dice))
    client = dice.choice(("fuzz", "broker-101", None, ""))
    whole = codec.encode_request(message, correlation_id=1, client_id=client)
    yield whole
    yield damaged(dice, whole)


def forwarded(dice: random.Random) -> bytes:
    """A request as a broker sends it on to the controller, mostly one that it takes."""
    api = dice.choice(load_registry(Listener.CLIENT).apis())
    version = dice.randint(api.version_min, api.version_max)
    message = random_request(dice, api.api_key, version)
    return codec.encode_request(message, correlation_id=1, client_id="fuzz")[4:]


async def send(port: int, frame: bytes) -> None:
    """A moment is given to the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(frame)
        with suppress(TimeoutError, OSError, asyncio.IncompleteReadError):
            async with asyncio.timeout(ANSWER_S_MAX):
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(size)
    finally:
        writer.close()


class Ledger:
    """Records that a cluster acknowledged; all of them are read afterwards."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._written = 0
        forever = {"name": "retention.ms", "value": "-1"}
        topic = {"num_partitions": 1, "replication_factor": 3, "assignments": []}
        topics = [
            {"name": LEDGER, **topic, "configs": [forever]},
            *({"name": name, **topic, "configs": []} for name in ("t", "u")),
        ]
        message = codec.build_request(*CREATE_TOPICS, topics=topics, timeout=30_000)
        ask(cluster.bootstrap.split(",")[0], *CREATE_TOPICS, message)
        for node_id in cluster.ids:
            cluster.wait_for_topic(node_id, LEDGER)

    def append(self) -> None:
        """One more record."""
        value = str(self._written).encode()
        records = build_batch([NewRecord(value=value, timestamp=NOW_MS)])
        data = [{"name": LEDGER, "partition_data": [{"index": 0, "records": records}]}]
        message = codec.build_request(
            *PRODUCE, transactional_id=None, acks=-1, timeout=5_000, topic_data=data
        )

        def is_taken() -> bool:
            answers = (self._cluster.ask(id_, *PRODUCE, message) for id_ in self._running())
            return any(
                int(answer.responses[0].partition_responses[0].error_code) == 0
                for answer in answers
            )

        wait_until(is_taken, "a record is acknowledged", story=self._cluster.story)
        self._written += 1

    def check(self) -> None:
        """All are there."""
        expected = {str(number).encode() for number in range(self._written)}
        lost = expected - max((self._read(id_) for id_ in self._running()), key=len)
        assert not lost, (lost, self._cluster.story())

    def isr(self) -> set[int]:
        """Replicas in sync, as one running node knows them."""
        topic = self._cluster.wait_for_topic(self._running()[0], LEDGER)
        return set(topic.partitions[0].isr_nodes)

    def _running(self) -> list[int]:
        return sorted(self._cluster.processes)

    def _read(self, node_id: int) -> set[bytes | None]:
        values: set[bytes | None] = set()
        offset = 0
        while True:
            partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            topics = [{"topic": LEDGER, "partitions": [partition]}]
            message = codec.build_request(*FETCH, topics=topics, max_wait=0, min_bytes=0)
            answer = self._cluster.ask(node_id, *FETCH, message).responses[0].partitions[0]
            content = memoryview(bytes(answer.records or b""))
            batches = list(iter_batch_headers(content))
            if not batches:
                return values
            for header, at in batches:
                batch = content[at : at + header.size_bytes]
                values |= {record.value for record in iter_records(batch)}
                offset = header.last_offset + 1


class Fuzzer:
    """Requests to all nodes, and a ledger of what was acknowledged meanwhile."""

    def __init__(self, cluster: LocalCluster, ledger: Ledger, dice: random.Random) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._dice = dice
        self._kinds = [
            (listener, api, version)
            for listener in (Listener.CLIENT, Listener.CONTROLLER)
            for api in load_registry(listener).apis()
            for version in range(api.version_min, api.version_max + 1)
        ]
        self._rss_kib = self._rss()

    async def round(self) -> None:
        """Every API in every version once, each at some node."""
        self._dice.shuffle(self._kinds)
        for start in range(0, len(self._kinds), TOGETHER):
            step = self._kinds[start : start + TOGETHER]
            async with asyncio.TaskGroup() as together:
                for listener, api, version in step:
                    together.create_task(self._send(listener, api, version))
        await asyncio.to_thread(self._check)

    async def _send(self, listener: Listener, api: Api, version: int) -> None:
        ports = self._cluster.ports
        if listener is Listener.CONTROLLER:
            ports = self._cluster.controller_ports
        for frame in frames(self._dice, api, version):
            await send(self._dice.choice(list(ports.values())), frame)

    def _check(self) -> None:
        """Nobody ended, nobody is full, and all go on serving."""
        story = self._cluster.story
        ended = {id_: it.poll() for id_, it in self._cluster.processes.items()}
        assert not any(status is not None for status in ended.values()), (ended, story())
        self._cluster.wait_ready()
        self._ledger.append()
        grown = self.grown_kib()
        assert max(grown.values()) < GROWTH_KIB_MAX, grown

    def grown_kib(self) -> dict[int, int]:
        """What each node takes more than at the start."""
        return {id_: kib - self._rss_kib[id_] for id_, kib in self._rss().items()}

    def _rss(self) -> dict[int, int]:
        found = {}
        for id_, process in self._cluster.processes.items():
            status = Path(f"/proc/{process.pid}/status").read_text()
            found[id_] = int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]
        return found


def said(cluster: LocalCluster, node_id: int) -> str:
    """All that a node wrote so far."""
    return (cluster.base_dir / f"broker-{node_id}.err").read_text(errors="replace")


def test_no_request_ends_hangs_or_fills_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LocalCluster(tmp_path, overrides=NOBODY_DIES) as cluster:
        ledger = Ledger(cluster)
        fuzzer = Fuzzer(cluster, ledger, random.Random(FUZZ_SEED))
        until_s, rounds = time.monotonic() + FUZZ_S, 0

        async def fuzz() -> None:
            nonlocal rounds
            while time.monotonic() < until_s:
                await fuzzer.round()
                rounds += 1

        asyncio.run(fuzz())
        with capsys.disabled():
            print(f"\n{rounds} rounds; nodes grew by {fuzzer.grown_kib()} KiB")
        ledger.check()
        for node_id in cluster.ids:
            assert not FAULTS.findall(said(cluster, node_id)), (node_id, said(cluster, node_id))
            cluster.kill(node_id)
            cluster.restart(node_id)
        ledger.check()


def test_a_node_with_a_damaged_file_comes_back_or_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(FUZZ_SEED)
    counts = {"came back": 0, "named": 0, "put back": 0}
    with LocalCluster(tmp_path) as cluster:
        ledger = Ledger(cluster)
        until_s = time.monotonic() + FUZZ_S
        while time.monotonic() < until_s:
            ledger.append()
            wait_until(lambda: ledger.isr() == set(cluster.ids), "all are in sync")
            counts[one_damage(cluster, ledger, dice)] += 1
        with capsys.disabled():
            print(f"\n{counts}")


def one_damage(cluster: LocalCluster, ledger: Ledger, dice: random.Random) -> str:
    """A node is stopped or killed, a file of it damaged, and it is started; what became of it."""
    node_id = dice.choice(cluster.ids)
    directory, saved = cluster.log_dir(node_id), cluster.base_dir / "saved"
    cluster.kill(node_id, dice.choice((signal.SIGTERM, signal.SIGKILL)))
    shutil.copytree(directory, saved)
    how, victim = damage(dice, directory)
    before = len(said(cluster, node_id))
    with case(node_id, how, str(victim)):
        cluster.start_node(node_id)
        wait_until(lambda: serves(cluster, node_id) is not None, "it serves or ends")
        outcome = "came back" if serves(cluster, node_id) else "named"
        if outcome == "named":
            assert cluster.processes.pop(node_id).returncode == 1, cluster.story()
        ledger.append()
        ledger.check()
        if outcome == "came back" and not is_in_sync(cluster, ledger, node_id):
            outcome = "put back"
        told = said(cluster, node_id)[before:]
        assert not FAULTS.findall(told), told
        assert outcome == "came back" or str(directory) in told, told
        if outcome != "came back":
            put_back(cluster, node_id, saved)
    shutil.rmtree(saved)
    return outcome


def serves(cluster: LocalCluster, node_id: int) -> bool | None:
    """Whether a node that was started is among all again; None while nobody can tell."""
    try:
        return cluster.alive_brokers(node_id) == set(cluster.ids) or None
    except ClusterError:
        return False


def is_in_sync(cluster: LocalCluster, ledger: Ledger, node_id: int) -> bool:
    """Whether it follows the ledger again before long; a replica whose files are bad does not."""
    deadline_s = time.monotonic() + patience_s(SYNC_S)
    while time.monotonic() < deadline_s and cluster.processes[node_id].poll() is None:
        if ledger.isr() == set(cluster.ids):
            return True
        time.sleep(0.05)
    return False


def put_back(cluster: LocalCluster, node_id: int, saved: Path) -> None:
    """Its files as they were before the damage."""
    if node_id in cluster.processes:
        cluster.kill(node_id)
    shutil.rmtree(cluster.log_dir(node_id))
    shutil.copytree(saved, cluster.log_dir(node_id))
    cluster.restart(node_id)
