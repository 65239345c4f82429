"""Keeps the data directory of a version, small, for tests that open it with later versions.

    git worktree add /tmp/old v0.1.0
    .venv/bin/python scripts/keep_data.py /tmp/old tests/golden/data-0.1.0.tar.xz

It runs `up` of that checkout with this Python, makes a topic, records, a group and a reassignment,
ends it, and packs what is there, without logs. tests/e2e/test_old_data.py tells what is in it.
"""

import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

PORT, PAGE_PORT = 19_392, 19_350
BOOTSTRAP: Final = f"127.0.0.1:{PORT}"
TOPIC, GROUP = "orders", "billing"
RECORDS, COMMITTED = 60, 40
"""By tests the group lags by the difference."""
PLAN: Final = f"{TOPIC}-0: 102,103"
RUNS_S: Final = 20.0
"""Long enough for some batches of the metrics job."""
_LEFT_OUT: Final = ("logs", ".lock")


class Version:
    """A checkout of it, and the data directory that it makes."""

    def __init__(self, checkout: Path, data: Path) -> None:
        self.checkout, self.data = checkout, data
        self.environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONUNBUFFERED": "1"}

    def command(self, *words: str) -> list[str]:
        """A command of that version."""
        return [sys.executable, "-m", "partiscope", *words]

    def type(self, *words: str) -> None:
        """Run a command to its end."""
        command = self.command(*words, "--data", str(self.data))
        subprocess.run(command, cwd=self.checkout, env=self.environment, check=True)

    def fill(self) -> None:
        """Start it, use it, end it."""
        ports = ("--port", str(PORT), "--dashboard-port", str(PAGE_PORT))
        flags = ("--no-demo", "--data", str(self.data), *ports)
        up = subprocess.Popen(
            self.command("up", *flags),
            cwd=self.checkout,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert up.stdout is not None
        try:
            for line in up.stdout:
                print(line, end="")
                if line.startswith("ready in"):
                    break
            use()
            plan = self.data.with_name("plan.json")
            self.type("plan", "--edit", PLAN, "--out", str(plan))
            self.type("reassign", str(plan), "--yes")
            time.sleep(RUNS_S)
        finally:
            up.send_signal(signal.SIGTERM)
            up.communicate(timeout=30)


def use() -> None:
    """A topic with records, and a group that has read some of them."""
    address = {"bootstrap.servers": BOOTSTRAP}
    replicas = [[101, 102], [102, 103]]
    topic = NewTopic(TOPIC, len(replicas), replica_assignment=replicas)
    admin = AdminClient(address)  # ends what it was asked for when it goes
    admin.create_topics([topic])[TOPIC].result()
    producer = Producer({**address, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(TOPIC, key=f"user-{number}", value=f"{number}", partition=number % 2)
    assert producer.flush(30) == 0
    about = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**address, **about})
    consumer.subscribe([TOPIC])
    read = 0
    while read < COMMITTED:
        read += len(consumer.consume(COMMITTED - read, timeout=1))
    consumer.commit(asynchronous=False)
    consumer.close()


def pack(data: Path, archive: Path) -> None:
    """All but logs and locks, as small as it gets."""
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in sorted(data.rglob("*")):
            is_file = path.is_file() or path.is_dir()
            if is_file and not set(_LEFT_OUT).intersection(path.relative_to(data).parts):
                tar.add(path, arcname=str(path.relative_to(data)), recursive=False)


def main() -> None:
    """Fill a data directory by the version of a checkout, and pack it."""
    checkout, archive = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="keep-data-") as folder:
        data = Path(folder) / "data"
        Version(checkout.resolve(), data).fill()
        pack(data, archive.absolute())
    print(f"{archive}: {archive.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
