"""What producers feel while partitions move, whoever moves them: the executor or Kafka's own tools.

A paced producer (acks=all) listens to itself before the move and during it, in a process of its
own. Another writes a little to a topic beside it, as on any cluster that is in use: a
follower asks its leader for all partitions at once, so that on an idle cluster the answer, and
with it the end of a move, may wait half a second (replica.fetch.wait.max.ms) for a record.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Final, Self, TypeVar

from benchmarks.moves_cases import MIB, Case
from tests.contract.operations_site import Placement, Site
from tests.support.kafka_oracle import run_tool
from tests.support.paced_producer import PacedProducer
from tests.support.settle import wait_until

VALUE_BYTES: Final = 1000
SETTLE_S: Final = 1.0
LISTEN_S: Final = 20.0
"""Before each move, to the producer alone."""
OTHERS: Final = {0: (101, 102, 103), 1: (102, 103, 101), 2: (103, 101, 102)}
OTHERS_PER_S: Final = 20
"""Into each of these partitions."""
REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT: Final = "org.apache.kafka.tools.LeaderElectionCommand"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Felt:
    """Seconds that each record waited, sorted, before and during a move."""

    before_s: list[float]
    during_s: list[float]
    slow: Mapping[int, int] = field(default_factory=dict)
    """How many records of each second of the move waited more than twice the p99 before it."""

    def slow_words(self, named: int = 8) -> str:
        """The seconds with most of them."""
        worst = sorted(self.slow.items(), key=lambda item: -item[1])[:named]
        each = ", ".join(f"{count:,} in second {second}" for second, count in sorted(worst))
        return f"over twice: {sum(self.slow.values()):,} of {len(self.during_s):,} ({each})"

    def words(self) -> str:
        """The p99 of both, and the longest wait."""
        before, during = p99_ms(self.before_s), p99_ms(self.during_s)
        return f"p99 {before:6.1f} → {during:6.1f} ms, at most {1000 * self.during_s[-1]:5.0f}"


def p99_ms(waits_s: Sequence[float]) -> float:
    """Of sorted seconds, in ms."""
    return 1000 * waits_s[min(len(waits_s) - 1, int(len(waits_s) * 0.99))] if waits_s else 0.0


def p99s_ms(felt: Sequence[Felt]) -> tuple[float, float]:
    """Of all their records together, before and during."""
    before = sorted(wait for one in felt for wait in one.before_s)
    during = sorted(wait for one in felt for wait in one.during_s)
    return p99_ms(before), p99_ms(during)


async def feel(site: Site, case: Case, move: Callable[[str], Awaitable[T]]) -> tuple[T, Felt]:
    """Fill a topic, listen to a producer for a while, have it moved."""
    placement = dict.fromkeys(range(case.partitions), case.before)
    size = case.mib * MIB // case.partitions
    topic = site.topic("bench", placement, partition_bytes=size)
    return await listen(site, topic, case.partitions, case.records_per_s, lambda: move(topic))


async def listen(
    site: Site,
    topic: str,
    partitions: int,
    per_s: int,
    move: Callable[[], Awaitable[T]],
    *,
    settle_s: float = SETTLE_S,
    listen_s: float = LISTEN_S,
) -> tuple[T, Felt]:
    """To a producer that writes to this topic, for a while and then during the move."""
    with ProducerProcess(site, topic, partitions, per_s) as producer:
        await asyncio.sleep(settle_s)
        listened_s = time.monotonic()
        await asyncio.sleep(listen_s)
        began_s = time.monotonic()
        moved = await move()
        ended_s = time.monotonic()
    before_s, during_s = (
        producer.waits_s(listened_s, began_s),
        producer.waits_s(began_s, ended_s),
    )
    limit_s = 2 * p99_ms(before_s) / 1000
    slow = producer.seconds_of(began_s, ended_s, over_s=limit_s)
    return moved, Felt(before_s=before_s, during_s=during_s, slow=slow)


@contextmanager
def other_traffic(site: Site, placement: Placement = OTHERS) -> Iterator[None]:
    """To a topic with next to nothing in it, which goes when it is over."""
    topic = site.topic("others", placement, partition_bytes=VALUE_BYTES)
    with ProducerProcess(site, topic, len(placement), OTHERS_PER_S * len(placement)):
        yield
    site.eyes.delete(topic)


async def move_by_tools(site: Site, topic: str, case: Case) -> None:
    """As an operator does without us: execute, look until it is done, verify, elect."""
    entries = [
        {"topic": topic, "partition": number, "replicas": list(case.after)}
        for number in range(case.partitions)
    ]
    plan = site.folder / f"{topic}.json"
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    named = ("--reassignment-json-file", str(plan))
    throttle = ("--throttle", str(case.throttle_mib * MIB))
    await _tool(site, REASSIGN, *named, "--execute", *throttle)
    await asyncio.to_thread(wait_until, lambda: not site.eyes.reassigning(), topic, timeout_s=3600)
    await _tool(site, REASSIGN, *named, "--verify")
    if case.moves_leader:
        await _tool(site, ELECT, "--election-type", "preferred", "--all-topic-partitions")


async def _tool(site: Site, name: str, *args: str) -> None:
    words = ("--bootstrap-server", site.cluster.bootstrap, *args)
    done = await asyncio.to_thread(run_tool, name, *words)
    assert done.returncode == 0, done.stdout + done.stderr


class ProducerProcess:
    """A paced producer in a process of its own: what is busy here does not count as a wait."""

    def __init__(self, site: Site, topic: str, partitions: int, per_s: int) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        args = (theirs, site.cluster.bootstrap, topic, partitions, per_s)
        self._process = context.Process(target=produce, args=args)
        self._acks: list[tuple[float, float]] = []

    def __enter__(self) -> Self:
        self._process.start()
        assert self._pipe.recv() == "ready"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pipe.send("stop")
        self._acks = self._pipe.recv()
        self._process.join()

    def waits_s(self, since_s: float, until_s: float) -> list[float]:
        """Of each record sent in this time (monotonic, as all processes have it), sorted."""
        return sorted(waited_s for sent_s, waited_s in self._acks if since_s <= sent_s < until_s)

    def seconds_of(self, since_s: float, until_s: float, *, over_s: float) -> Counter[int]:
        """How many records sent in each second since then waited longer than that."""
        return Counter(
            int(sent_s - since_s)
            for sent_s, waited_s in self._acks
            if since_s <= sent_s < until_s and waited_s > over_s
        )


def produce(pipe: Connection, bootstrap: str, topic: str, partitions: int, per_s: int) -> None:
    """Until it is told to stop; answers when each record was due and how long it waited."""
    with PacedProducer(
        bootstrap, topic, partitions=partitions, per_s=per_s, value_bytes=VALUE_BYTES
    ) as producer:
        pipe.send("ready")
        pipe.recv()
    assert not producer.failed, producer.failed
    pipe.send([(ack.sent_s, ack.waited_s) for ack in producer.acks.values()])
