"""What tasks look for or end: leaders that are not preferred, a broker that hangs, a line of the
journal, a reassignment that is over, reassignments that run."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition
from tests.support.command_line import CommandLine
from tests.support.installation import Installation
from tests.support.settle import wait_until

FACES: Final = ("page", "terminal")
"""Each changes things of its own, whose names end with the face."""
MOVED_FROM: Final = (102, 101)
MOVED_TO: Final = (103, 101)
BROKER: Final = {"page": 103, "terminal": 104}
"""Which a face cordons and decommissions."""
LED: Final = (102, 101)
"""Replicas as created: the first leads on when their order changes."""
UNLED: Final = "unled"
FROZEN: Final = 104
"""No voter of the controller quorum."""
BACK_S: Final = 60.0
SETTLED: Final = "settled"
SLOW: Final = "slow"
CHANGED_WHY: Final = "ticket-4711"
MOVED_WHY: Final = "ticket-4712"
SLOW_RATE: Final = "60KiB"
SLOW_FROM: Final = 102
SLOW_TO: Final = {"page": 103, "terminal": 104}
THROTTLED_TO: Final = {"page": 41, "terminal": 43}
"""KiB/s, each of another broker."""
RATE: Final = "follower.replication.throttled.rate"
PLACED: Final[Mapping[str, Sequence[int]]] = {
    **{f"moved-{face}": MOVED_FROM for face in FACES},
    **{f"led-{face}": LED for face in FACES},
    **{f"{SLOW}-{face}": (SLOW_FROM,) for face in FACES},
    UNLED: LED,
    SETTLED: (102, 103, 101),
}
"""Topics on these brokers."""


def prepare(installation: Installation) -> None:
    """What is so from the beginning."""
    _run(_unlead(installation.bootstrap, UNLED))
    line = command_line(installation)
    line.run("topics", "alter", "audit", "--config", "segment.ms=7300000", "--reason", CHANGED_WHY)
    line.run(*_reassign(line, SETTLED, (104, 103, 102), MOVED_WHY))


@contextmanager
def unled(installation: Installation, face: str) -> Iterator[None]:
    """The preferred replica of the face's own topic does not lead."""
    _run(_unlead(installation.bootstrap, f"led-{face}"))
    yield


def _run(work: Coroutine[object, object, None]) -> None:
    """In a thread: Chromium's client has a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


async def _unlead(bootstrap: str, topic: str) -> None:
    """Change the order of its replicas: the leader goes on to lead."""
    async with KafkaAdmin.to(bootstrap) as admin:
        assert not await admin.alter_reassignments({TopicPartition(topic, 0): LED[::-1]})


@contextmanager
def frozen(installation: Installation, face: str) -> Iterator[None]:
    """A broker hangs: its replicas leave the ISR."""
    del face
    pid = installation.pid_of(f"broker-{FROZEN}.properties")
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: _is_in_sync(installation) is False, "a replica leaves the ISR")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: _is_in_sync(installation), "all replicas are back", timeout_s=BACK_S)


def _is_in_sync(installation: Installation) -> bool:
    found = installation.aggregates()
    parts = found.tables["partitions"].to_pylist() if found else []
    return bool(parts) and all(set(it["isr"] or ()) == set(it["replicas"]) for it in parts)


@contextmanager
def moving(installation: Installation, face: str) -> Iterator[None]:
    """A reassignment of the face goes on for minutes."""
    why, line = f"{face} runs {uuid4().hex[:6]}", command_line(installation)
    asked = line.start(*_reassign(line, f"{SLOW}-{face}", (SLOW_TO[face],), why),
                       "--throttle", SLOW_RATE, "--partitions-per-wave", "1")  # fmt: skip
    move = line.wait_until_moving(reason=why)
    asked.kill()  # the executor goes on
    asked.communicate()
    try:
        yield
    finally:
        if line.json("moves", "show", move)["outcome"] is None:
            line.run("moves", "cancel", move)
        wait_until(lambda: line.json("moves", "show", move)["outcome"], "it is over")


@contextmanager
def roomy(installation: Installation, face: str) -> Iterator[None]:
    """A broker that is drained has somewhere to move its replicas to."""
    for other, broker in BROKER.items():
        if other != face:
            command_line(installation).run("brokers", "uncordon", str(broker))
    yield


Around = Callable[[Installation, str], AbstractContextManager[None]]
AROUND: Final[Mapping[str, Around]] = {
    "Under-replicated partitions": frozen,
    "Elect preferred leaders": unled,
    "Throttle a running reassignment": moving,
    "Pause a running reassignment": moving,
    "Cancel a running reassignment": moving,
    "Move all replicas off a broker, and cordon it": roomy,
}
"""What is so while a face does the task."""


def command_line(installation: Installation) -> CommandLine:
    """Commands about the cluster of the tasks."""
    address = installation.bootstrap
    return CommandLine(bootstrap=address, bus=address, folder=installation.data)


def _reassign(line: CommandLine, topic: str, replicas: Sequence[int], why: str) -> tuple[str, ...]:
    wanted = [{"topic": topic, "partition": number, "replicas": list(replicas)}
              for number in range(partitions_of(topic))]  # fmt: skip
    plan = Path(line.folder) / f"{topic}.json"
    plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
    return ("reassign", str(plan), "--yes", "--reason", why)


def partitions_of(topic: str) -> int:
    """Of a topic that is placed: one that moves slowly has a second wave to hold back."""
    return 2 if topic.startswith(SLOW) else 1
