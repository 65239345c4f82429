"""The bundled cluster as a user starts it: ``partiscope cluster`` in a process of its own."""

import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient

from tests.support.cluster import TIMEOUTS
from tests.support.patience import WAIT_S
from tests.support.ports import free_ports_in_a_row
from tests.support.settle import wait_until


@dataclass
class BundledCluster:
    """Brokers under a supervisor; a context manager."""

    data: Path
    brokers: int = 3
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.port = self.port or free_ports_in_a_row(self.brokers)
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def log(self) -> Path:
        """All that it says."""
        return self.data.parent / "cluster.log"

    @property
    def bootstrap(self) -> str:
        """``host:port,…`` of the brokers of its newest start."""
        newest: str = re.findall(r"^ready (\S+)", self.said(), re.MULTILINE)[-1]
        return newest

    def said(self) -> str:
        """All that it has said."""
        return self.log.read_text()

    def start(self, *flags: str) -> None:
        """Start it, and wait until it is ready."""
        overrides = [f"--override={name}={value}" for name, value in TIMEOUTS.items()]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "partiscope", "cluster", "--data", str(self.data),
                 "--brokers", str(self.brokers), "--port", str(self.port), *overrides, *flags],
                stdout=log, stderr=log,
            )  # fmt: skip
        wait_until(lambda: "ready 127" in self.said(), "ready", timeout_s=60, story=self.said)

    def stop(self) -> None:
        """End it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(WAIT_S)

    def alive(self) -> set[int]:
        """Brokers that the cluster knows as alive."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return set(admin.list_topics(timeout=WAIT_S).brokers)
