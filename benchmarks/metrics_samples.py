"""The samples of a large cluster, round by round, for benchmarks of the metrics job."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from confluent_kafka import Producer

from broker.metrics.round_times import RoundTimes
from broker.metrics_schema import (
    BrokerSample,
    CommitSample,
    Envelope,
    GroupSample,
    ReplicaSample,
    Row,
    cut_round,
    encode_part,
)

TOPIC: Final = "samples"
CLUSTER: Final = "bench"
BROKERS: Final = (101, 102, 103)
PER_TOPIC: Final = 50
Template = tuple[dict[str, Any], dict[str, Any], bytes]
"""A record's head, its columns or their layout, and the bytes of those that are packed."""
READERS: Final = 10
"""Groups that read each partition."""


class Rounds:
    """The records of every broker's rounds.

    The rows of a round are made once; each round only moves the numbers in them on, so that the
    generator costs less than what it measures.
    """

    def __init__(self, *, partitions: int, groups: int, interval_ms: int) -> None:
        self._partitions = partitions
        self._groups = groups
        self._interval_ms = interval_ms
        self._templates = {broker: self._template(broker) for broker in BROKERS}

    def next(self, now_ms: int) -> Iterator[tuple[int, bytes]]:
        """A round of every broker that begins now: broker and record."""
        for broker in BROKERS:
            for template in self._templates[broker]:
                yield broker, _moved_on(template, now_ms)

    def _template(self, broker: int) -> list[Template]:
        """The records of a broker's round, decoded."""
        now_ms = time.time_ns() // 1_000_000
        envelope = Envelope(
            cluster=CLUSTER,
            broker=broker,
            broker_epoch=1,
            round_ms=now_ms,
            interval_ms=self._interval_ms,
        )
        found = []
        for part, chunk in cut_round(envelope, self._rows(broker, now_ms)):
            value = encode_part(part, chunk)
            head, body, packed = (*value.split(b"\n", 2), b"", b"")[:3]
            found.append((json.loads(head), json.loads(body) if body else {}, packed))
        return found

    def _rows(self, broker: int, now_ms: int) -> list[Row]:
        place = BROKERS.index(broker)
        rows: list[Row] = [
            BrokerSample(id=it, host="127.0.0.1", port=9_000 + it, fenced=False, read_ms=now_ms)
            for it in BROKERS
        ]
        rows += [
            GroupSample(group_id=f"group-{n}", state="Stable", members=3, read_ms=now_ms)
            for n in range(self._groups)
            if n % len(BROKERS) == place
        ]
        for number in range(self._partitions):
            rows.append(_replica(number, broker, now_ms))
            if self._groups:
                rows += [
                    _commit(number, group, now_ms)
                    for group in _readers(number, self._groups)
                    if group % len(BROKERS) == place
                ]
        return rows


class Generator(threading.Thread):
    """Writes a round of every broker each interval."""

    def __init__(self, bootstrap: str, *, partitions: int, groups: int, interval_ms: int) -> None:
        super().__init__(daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "1",
                "linger.ms": 20,
                "compression.type": "zstd",
                "queue.buffering.max.kbytes": 1_000_000,
            }
        )
        self._interval_ms = interval_ms
        self._made = Rounds(partitions=partitions, groups=groups, interval_ms=interval_ms)
        self.stopped = threading.Event()
        self.late_ms: list[float] = []
        self.rounds = self.rows = self.bytes = 0
        self._rows_of_round = partitions * (len(BROKERS) + (READERS if groups else 0))

    def run(self) -> None:
        times, due_s = RoundTimes(), time.time()
        while not self.stopped.wait(max(0.0, due_s - time.time())):
            began_s = time.time()
            self.late_ms.append((began_s - due_s) * 1_000)
            self._round(int(began_s * 1_000))
            now_s = time.time()
            took_ms = int((now_s - began_s) * 1_000)
            wait_ms = times.wait_ms(
                now_ms=int(now_s * 1_000), took_ms=took_ms, interval_ms=self._interval_ms
            )
            due_s = now_s + wait_ms / 1_000

    def _round(self, now_ms: int) -> None:
        self.rounds += 1
        self.rows += self._rows_of_round
        for broker, value in self._made.next(now_ms):
            self.bytes += len(value)
            self._produce(value, broker)
        self._producer.flush(30)

    def _produce(self, value: bytes, broker: int) -> None:
        while True:
            try:
                self._producer.produce(TOPIC, value, partition=broker % 3)
                return
            except BufferError:
                self._producer.poll(0.05)


def _readers(number: int, groups: int) -> list[int]:
    return [(number + step * (groups // READERS)) % groups for step in range(READERS)]


def _replica(number: int, broker: int, now_ms: int) -> ReplicaSample:
    replicas = [BROKERS[(number + step) % 3] for step in range(3)]
    end = 1_000_000 + number
    return ReplicaSample(
        topic=f"topic-{number // PER_TOPIC}",
        partition=number % PER_TOPIC,
        leader=replicas[0],
        leader_epoch=3,
        replicas=replicas,
        isr=replicas,
        log_start_offset=0,
        high_watermark=end,
        log_end_offset=end,
        read_ms=now_ms,
        size_bytes=1_000 * end,
        segments=2,
        segment_bytes=(800 * end, 200 * end),
        segment_offsets=(0, end // 2),
        min_isr=2,
        bytes_in=100 * end,
        bytes_out=200 * end,
    )


def _commit(number: int, group: int, now_ms: int) -> CommitSample:
    return CommitSample(
        group_id=f"group-{group}",
        topic=f"topic-{number // PER_TOPIC}",
        partition=number % PER_TOPIC,
        committed_offset=1_000_000 + number - 100 * (group % 7),
        read_ms=now_ms - 5,
        commit_ms=now_ms - 1_000,
        member_id=f"consumer-{group}-{number % 3}",
    )


_STEPS: Final = {
    "high_watermark": 50,
    "log_end_offset": 50,
    "size_bytes": 50_000,
    "bytes_in": 50_000,
    "bytes_out": 100_000,
    "committed_offset": 50,
}


def _moved_on(template: Template, now_ms: int) -> bytes:
    """A record of the next round: the same partitions, further on."""
    head, body, packed = template
    moved_by = now_ms - head["round_ms"]
    rows: dict[str, Any] = {
        kind: [{**row, "read_ms": row["read_ms"] + moved_by} for row in head[kind]]
        for kind in ("brokers", "groups")
        if kind in head
    }
    new_head = {**head, **rows, "round_ms": now_ms}
    lines = [new_head, body] if body else [new_head]
    is_packed = "packed" in head
    for columns in body.values():
        move = _move_packed if is_packed else _move_columns
        move(columns, now_ms)
    told = [json.dumps(it, separators=(",", ":")).encode() for it in lines]
    return b"\n".join([*told, packed] if is_packed else told)


def _move_columns(columns: dict[str, Any], now_ms: int) -> None:
    for name, step in _STEPS.items():
        if name in columns:
            columns[name] = [value + step for value in columns[name]]
    if "commit_ms" in columns:
        columns["commit_ms"] = [now_ms - 1_000] * len(columns["commit_ms"])


def _move_packed(layout: dict[str, Any], now_ms: int) -> None:
    """The same of columns that are packed: what is least in them moves."""
    for column in layout["columns"]:
        column[2] = now_ms - 1_000 if column[0] == "commit_ms" else column[2]
        column[2] += _STEPS.get(column[0], 0)
