"""A line that a reader types into a shell, at a terminal of 120 columns."""

import contextlib
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from fcntl import ioctl
from pathlib import Path
from struct import pack
from typing import Final

from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S, patience_s

ENDS_WITHIN_S: Final = 120.0
"""On a quiet machine, as all that is given to ``says``."""
CTRL_C: Final = 128 + signal.SIGINT
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Typed:
    """Runs in ``folder``, where `partiscope` and `.venv/bin/partiscope` are this program."""

    def __init__(self, line: str, folder: Path, environment: Mapping[str, str]) -> None:
        self.line = line
        self.said = ""
        _install(folder)
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, pack("HHHH", 40, 120, 0, 0))
        paths = {"PATH": f"{folder}/.venv/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            ["bash", "-c", f"{line}\nexit $?"],  # so that the shell stays, as a reader's does
            cwd=folder,
            env={**os.environ, **paths, "TERM": "xterm-256color", **environment},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def says(self, pattern: str | None = None, *, within_s: float = ENDS_WITHIN_S) -> bool:
        """Read on until it says this, or until it ends; whether that came in time."""
        until_s = time.monotonic() + patience_s(within_s)
        while time.monotonic() < until_s:
            if pattern is not None and re.search(pattern, self.said, re.MULTILINE):
                return True
            if not self._read():
                self.process.wait(WAIT_S)
                return pattern is None
        return False

    def press(self, keys: bytes) -> None:
        """Type into the running program."""
        os.write(self._master, keys)

    def end(self) -> int:
        """Ctrl-C, as the terminal sends it to all that the line started; the status."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGINT)
            self.says(within_s=60)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        os.close(self._master)
        status = self.process.wait(WAIT_S)
        return status if status >= 0 else 128 - status  # as a shell tells of a signal

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.1)[0]:
            return True
        try:
            told = os.read(self._master, 65_536)
        except OSError:  # EIO: nobody holds the other end
            return False
        self.said += _COLOURS.sub("", told.decode(errors="replace").replace("\r\n", "\n"))
        return bool(told)


def _install(folder: Path) -> None:
    program = folder / ".venv" / "bin" / "partiscope"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/bash\nexec {shlex.quote(sys.executable)} -m partiscope "$@"\n')
        program.chmod(0o755)
        (program.parent / "python").symlink_to(sys.executable)
