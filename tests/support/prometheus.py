"""A real Prometheus, from the Go module proxy, that scrapes what a test serves."""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.support.go_program import GoUnavailableError, install_go_program
from tests.support.patience import WAIT_S, patience_s
from tests.support.ports import free_ports

PACKAGE: Final = "github.com/prometheus/prometheus/cmd/prometheus"
VERSION: Final = "v0.316.0"
"""Of the module; the program calls itself 3.16."""
TAGS: Final = "remove_all_sd"
"""Without the clients of clouds, which are half of what is compiled."""
START_TIMEOUT_S: Final = patience_s(30)


class Prometheus:
    """Scrapes these ``host:port``, each a job of its own, every second; a context manager."""

    def __init__(self, folder: Path, targets: Sequence[str]) -> None:
        self._program = _program_or_skip()
        self._folder = folder
        (self._port,) = free_ports(1)
        jobs = [
            {"job_name": f"job-{place}", "static_configs": [{"targets": [target]}]}
            for place, target in enumerate(targets)
        ]
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        folder.mkdir(parents=True)
        (folder / "prometheus.yml").write_text(json.dumps(config))  # YAML holds JSON
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    self._program,
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "GOMAXPROCS": "1"},
            )
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.__exit__(None, None, None)
                raise AssertionError((self._folder / "prometheus.log").read_text())
            time.sleep(0.1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(WAIT_S)

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each series that it finds."""
        told = self._ask(f"query?query={quote(expression)}")["result"]
        return [(it["metric"], float(it["value"][1])) for it in told]

    def value(self, expression: str) -> float | None:
        """The value of the one series; None: there is none, or there are several."""
        found = self.query(expression)
        return found[0][1] if len(found) == 1 else None

    def errors(self) -> list[str]:
        """What it could not scrape, and why."""
        targets = self._ask("targets")["activeTargets"]
        return [it["lastError"] for it in targets if it["lastError"]]

    def _ask(self, path: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}"
        with urlopen(url, timeout=WAIT_S) as answer:
            return json.load(answer)["data"]

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=WAIT_S) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False


def _program_or_skip() -> Path:
    try:
        return install_go_program(PACKAGE, VERSION, tags=TAGS)
    except GoUnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Prometheus to test with: {error}")
