"""A whole installation as a user starts it: ``partiscope up`` in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from broker.host_name import address_text
from spark_metrics.window.aggregates import Aggregates, AggregatesReader
from tests.support.patience import patience_s
from tests.support.ports import free_ports, free_ports_in_a_row
from tests.support.settle import wait_until

READY_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = patience_s(5.0)


@dataclass
class Installation:
    """``partiscope up`` on free ports and its own data directory; a context manager."""

    data: Path
    flags: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    """Of its brokers and its page."""
    brokers: int = 3
    """As many as ``flags`` ask for."""
    port: int = 0
    dashboard_port: int = 0
    program: tuple[str, ...] = (sys.executable, "-m", "partiscope")
    environment: Mapping[str, str] | None = None
    """The whole of it; None: that of the tests."""
    folder: Path | None = None
    """Where it is typed; None: where the tests run."""
    lines: list[str] = field(default_factory=list)
    started_s: float = 0.0
    _process: subprocess.Popen[str] | None = None
    _listener: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()

    @property
    def bootstrap(self) -> str:
        """``host:port,…`` of its brokers."""
        ports = range(self.port, self.port + self.brokers)
        return ",".join(address_text(self.host, port) for port in ports)

    @property
    def page(self) -> str:
        """URL of its page."""
        return f"http://{address_text(self.host, self.dashboard_port)}"

    @property
    def store(self) -> str:
        """Where its aggregates lie."""
        return str(self.data / "store")

    def start(self) -> None:
        """Start it; returns at once."""
        self.port, self.dashboard_port = free_ports_in_a_row(self.brokers), free_ports(1)[0]
        ports = ("--port", str(self.port), "--dashboard-port", str(self.dashboard_port))
        self.started_s = time.monotonic()
        self._process = subprocess.Popen(
            [*self.program, "up", "--data", self.data, *ports, *self.flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **(self.environment or os.environ),
                "PYTHONUNBUFFERED": "1",
                "PARTISCOPE_CLUSTER__HOST": self.host,
                "PARTISCOPE_DASHBOARD__HOST": self.host,
            },
            cwd=self.folder,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_for_line(self, pattern: str, timeout_s: float = READY_TIMEOUT_S) -> str:
        """The first line it says (or said) that matches."""
        found: list[str] = []

        def is_said() -> bool:
            assert self._process is not None
            has_ended = self._process.poll() is not None
            found[:] = [line for line in self.lines if re.search(pattern, line)]
            assert found or not has_ended, "`up` ended:\n" + self.story()
            return bool(found)

        wait_until(is_said, f"`up` says {pattern!r}", timeout_s=timeout_s, story=self.story)
        return found[0]

    def wait_ready(self) -> None:
        """Until it says that everything is ready."""
        self.wait_for_line(r"^ready in")

    def aggregates(self) -> Aggregates | None:
        """What its store holds now."""
        return AggregatesReader(self.store).now()

    def status(self) -> tuple[dict[str, Any], int]:
        """What ``partiscope status --json`` tells of it, and its exit status (5: critical)."""
        done = subprocess.run(
            [*self.program, "status", "--json", "--data", str(self.data)],
            capture_output=True,
            text=True,
            check=False,
            env=self.environment,
            cwd=self.folder,
        )
        assert done.returncode in (0, 5), done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document, done.returncode

    def children(self) -> dict[int, str]:
        """Process ids of everything it started, down to the JVM, with their command lines."""
        assert self._process is not None
        found: dict[int, str] = {}
        parents = {self._process.pid}
        while parents:
            parents = {pid for pid, parent, _ in processes() if parent in parents} - found.keys()
            found |= {pid: command for pid, _, command in processes() if pid in parents}
        return found

    def pid_of(self, words: str) -> int:
        """The one child whose command line contains ``words``."""
        found = [pid for pid, command in self.children().items() if words in command]
        assert found, f"no child with {words!r} among {self.children()}"
        return min(found)

    def stop(self, signum: int = signal.SIGTERM) -> float:
        """End it as a user would; returns the seconds that it took."""
        assert self._process is not None
        children = self.children()
        asked_s = time.monotonic()
        self._process.send_signal(signum)
        self._process.wait(STOP_TIMEOUT_S + 5)
        took_s = time.monotonic() - asked_s
        assert self._listener is not None
        self._listener.join(STOP_TIMEOUT_S)
        left = {pid: command for pid, command in children.items() if _is_alive(pid)}
        assert not left, f"left behind: {left}"
        return took_s

    def story(self) -> str:
        """What it said, and the ends of its parts' logs."""
        logs = sorted((self.data / "logs").glob("*.log"))
        tails = [f"--- {log.name}\n" + "\n".join(_tail(log)) for log in logs]
        return "\n".join([*self.lines, *tails])

    def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as said:
            for line in said:
                self.lines.append(line.rstrip())


def _tail(log: Path, lines: int = 15) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-lines:]


def processes() -> list[tuple[int, int, str]]:
    """(pid, parent, command line) of every process."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = (line.split(None, 2) for line in listed.stdout.splitlines())
    return [(int(row[0]), int(row[1]), row[2] if len(row) > 2 else "") for row in rows]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and ") Z " in status.read_text())
