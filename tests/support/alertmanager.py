"""A real Alertmanager, from the Go module proxy, that tells a webhook of what it gets."""

import json
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.support.go_program import GoUnavailableError, install_go_program
from tests.support.patience import WAIT_S, patience_s
from tests.support.ports import free_ports

PACKAGE: Final = "github.com/prometheus/alertmanager/cmd/alertmanager"
VERSION: Final = "v0.31.1"
"""Modules of later releases lack the files of its page, without which it is not built."""
START_TIMEOUT_S: Final = patience_s(30)


class Alertmanager:
    """Tells ``hook`` of alerts at once; a context manager."""

    def __init__(self, folder: Path, hook: str) -> None:
        self._program = _program_or_skip()
        self._folder = folder
        (self._port,) = free_ports(1)
        waits = {"group_wait": "1s", "group_interval": "1s", "repeat_interval": "1h"}
        config = {
            "route": {"receiver": "hook", "group_by": ["alertname", "subject"], **waits},
            "receivers": [{"name": "hook", "webhook_configs": [{"url": hook}]}],
        }
        folder.mkdir(parents=True)
        (folder / "alertmanager.yml").write_text(json.dumps(config))  # YAML holds JSON
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        with (self._folder / "alertmanager.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    self._program,
                    f"--config.file={self._folder / 'alertmanager.yml'}",
                    f"--storage.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                    "--cluster.listen-address=",
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "GOMAXPROCS": "1"},
            )
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.__exit__(None, None, None)
                raise AssertionError((self._folder / "alertmanager.log").read_text())
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

    def alerts(self) -> Any:
        """All that it holds, by its own API."""
        with urlopen(f"{self.url}/api/v2/alerts", timeout=WAIT_S) as answer:
            return json.load(answer)

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/-/ready", timeout=WAIT_S) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False


def _program_or_skip() -> Path:
    try:
        return install_go_program(PACKAGE, VERSION)
    except GoUnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Alertmanager to test with: {error}")
