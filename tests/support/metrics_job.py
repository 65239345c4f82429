"""The metrics job as a process, for tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.patience import WAIT_S, patience_s

ROOT: Final = Path(__file__).resolve().parents[2]
READY_TIMEOUT_S: Final = patience_s(120.0)


@dataclass
class MetricsJob:
    """Starts, kills and stops `python -m spark_metrics`; output in ``base_dir``."""

    bootstrap: str
    base_dir: Path
    flags: tuple[str, ...] = ()
    command: tuple[str, ...] = (sys.executable, "-m", "spark_metrics")
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    timeout_s: float = READY_TIMEOUT_S
    """How long to wait for anything."""
    store: str = ""
    """Folder or URL; a folder in ``base_dir`` where none is given."""

    def __post_init__(self) -> None:
        self.store = self.store or str(self.base_dir / "store")

    def start(self) -> None:
        self.base_dir.mkdir(parents=True, exist_ok=True)
        out, err = self.base_dir / "out", self.base_dir / "err"
        out.write_bytes(b"")
        with out.open("ab") as stdout, err.open("ab") as stderr:
            self.process = subprocess.Popen(
                [
                    *(*self.command, "--bootstrap", self.bootstrap),
                    *("--store", self.store, "--checkpoint", str(self.base_dir / "checkpoint")),
                    *self.flags,
                ],
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, **self.environment},
            )

    def wait_until(self, is_done: Callable[[], bool], what: str) -> None:
        """Poll until done; fail with the job's own words when it is not, or when it ends."""
        deadline_s = time.monotonic() + self.timeout_s
        while not is_done():
            assert self.process is not None
            ended = self.process.poll()
            assert ended is None, f"the job ended with {ended} before {what}:\n{self.words()}"
            assert time.monotonic() < deadline_s, f"not {what}:\n{self.words()}"
            time.sleep(0.1)

    def wait_ready(self) -> None:
        """Until the first batch of this process is committed."""
        self.wait_until(lambda: self.out().startswith("ready "), "ready")

    def out(self) -> str:
        return (self.base_dir / "out").read_text()

    def words(self) -> str:
        """The end of what it said on stderr."""
        return (self.base_dir / "err").read_text(errors="replace")[-3_000:]

    def jvms(self) -> list[int]:
        """Process ids of its JVM (by way of Spark's launching shell)."""
        assert self.process is not None
        return processes_below(self.process.pid)

    def end(self, number: int) -> int:
        """Send a signal and wait; the exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(WAIT_S)
        self.process = None
        return status

    def close(self) -> None:
        if self.process is not None:
            self.end(signal.SIGKILL)


def processes_below(parent: int) -> list[int]:
    """Children of this process, and theirs."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    )
    children: dict[int, list[int]] = {}
    for line in listed.stdout.splitlines():
        pid, ppid = map(int, line.split())
        children.setdefault(ppid, []).append(pid)
    found, queue = [], [parent]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def is_running(pid: int) -> bool:
    """Whether the process is there and not just waiting to be reaped."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
