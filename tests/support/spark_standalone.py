"""A standalone Spark of one master and one worker on 127.0.0.1, of pip's pyspark, for tests."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Final, Self

import pyspark

from spark_metrics.job.java import find_java
from tests.support.metrics_job import is_running, processes_below
from tests.support.patience import WAIT_S, patience_s
from tests.support.ports import free_ports

SPARK_HOME: Final = Path(pyspark.__file__).parent
START_TIMEOUT_S: Final = patience_s(60.0)
_DEPLOY: Final = "org.apache.spark.deploy"


class StandaloneSpark:
    """`spark-class …Master` and a `…Worker` for each host; output in ``base_dir``.

    Spark makes no second attempt of a task on the host of the first. Names of one machine are
    hosts of their own to it.
    """

    def __init__(
        self, base_dir: Path, hosts: Sequence[str] = ("127.0.0.1",), *, secret: bool = True
    ) -> None:
        self._base_dir = base_dir
        self._hosts = hosts
        self._has_secret = secret
        port, *pages = free_ports(2 + len(hosts))
        self.master = f"spark://127.0.0.1:{port}"
        self._port = port
        self._pages = pages
        self._processes: list[subprocess.Popen[bytes]] = []
        self.environment = {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": str(base_dir / "conf"),
            "SPARK_WORKER_DIR": str(base_dir / "work"),
        }

    def __enter__(self) -> Self:
        self._base_dir.mkdir(parents=True, exist_ok=True)
        if self._has_secret:
            self._write_secret()
        ports = ("--port", str(self._port), "--webui-port", str(self._pages[0]))
        self._start(f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", *ports)
        self._wait_for_master()
        size = ("--cores", str(2 // len(self._hosts)), "--memory", "1g")
        for host, page in zip(self._hosts, self._pages[1:], strict=True):
            where = ("--host", host, "--webui-port", str(page))
            self._start(f"{_DEPLOY}.worker.Worker", *where, *size, self.master)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            for pid in [*processes_below(process.pid), process.pid]:
                if is_running(pid):
                    os.kill(pid, signal.SIGKILL)
            process.wait(WAIT_S)

    def executors(self) -> list[int]:
        """Process ids of the executors that run now."""
        return [
            pid
            for worker in self._processes[1:]
            for pid in processes_below(worker.pid)
            if b"CoarseGrainedExecutorBackend" in _command(pid)
        ]

    def kill_worker(self, number: int) -> None:
        """Kill one of the workers, not its executors: they end once they miss it."""
        worker = self._processes[1 + number]
        worker.kill()
        worker.wait(WAIT_S)

    def daemons(self) -> list[int]:
        """Process ids of master and workers."""
        started = [it.pid for it in self._processes]
        return [*started, *(pid for it in started for pid in processes_below(it))]

    def logs(self) -> dict[str, str]:
        """What each executor has written so far, by the paths of its `stdout` and `stderr`."""
        folder = Path(self.environment["SPARK_WORKER_DIR"])
        found = sorted(folder.glob("app-*/*/std*"))
        return {str(it.relative_to(folder)): it.read_text(errors="replace") for it in found}

    def _write_secret(self) -> None:
        """Where master, worker and job look for it: the secret of the cluster."""
        conf = self._base_dir / "conf" / "spark-defaults.conf"
        conf.parent.mkdir(parents=True, exist_ok=True)
        conf.touch(mode=0o600)
        conf.write_text(f"spark.authenticate true\nspark.authenticate.secret {token_hex(16)}\n")

    def _start(self, *arguments: str) -> None:
        with (self._base_dir / f"{arguments[0]}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(SPARK_HOME / "bin/spark-class"), *arguments],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **self.environment},
                )
            )

    def _wait_for_master(self) -> None:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"no Spark master on {self.master}")


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
