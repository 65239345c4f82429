"""The page as a process of its own, on a store that a test writes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from partiscope.installation import Installation
from tests.support.patience import patience_s
from tests.support.ports import free_ports

ROOT: Final = Path(__file__).resolve().parents[2]
READY_TIMEOUT_S: Final = patience_s(90.0)
STOP_TIMEOUT_S: Final = patience_s(10.0)
NOWHERE: Final = "127.0.0.1:1"
"""Of a page that shows a store alone: no cluster and no bus answer there."""


class PageServer:
    """``partiscope dashboard`` on a free port, of a cluster that does not answer unless flags name
    one; a context manager. ``log`` has what it said."""

    def __init__(self, store: Path, *flags: str) -> None:
        (self.port,) = free_ports(1)
        # Not what may run from this repository's own data directory.
        self._data = store.parent / "data"
        if not {"--bootstrap", "--data"} & set(flags):
            Installation(bus=NOWHERE).save(self._data)
        self.log = store.parent / f"page-{self.port}.log"
        self._command = (
            *(sys.executable, "-m", "partiscope", "dashboard"),
            *("--store", str(store), "--port", str(self.port), *flags),
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "PYTHONUNBUFFERED": "1",
                    "PARTISCOPE_DATA": str(self._data),
                },
            )
        deadline = time.monotonic() + READY_TIMEOUT_S
        while b"ready " not in self.log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"the page did not start:\n{self.log.read_text()}")
            time.sleep(0.02)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> int:
        """End it as ``up`` does; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
