"""`partiscope tui` on a pseudo-terminal: what it writes, what keys do, what it costs."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from typing import Any, Final, Self

from tests.support.patience import WAIT_S, patience_s
from tests.support.ssh_server import LOGGED_IN, SshServer

DEADLINE_S: Final = patience_s(120.0)


class Terminal:
    """One terminal of so many columns and rows, at a view's path; ``over``: through that SSH."""

    def __init__(
        self,
        store: Path,
        size: tuple[int, int],
        *,
        path: str = "overview",
        over: SshServer | None = None,
    ) -> None:
        self._master, slave = pty.openpty()
        columns, rows = size
        ioctl(slave, TIOCSWINSZ, pack("HHHH", rows, columns, 0, 0))
        program = str(Path(sys.executable).parent / "partiscope")
        self._command = [program, "tui", "--store", str(store), path]
        called_s = time.monotonic()
        self.process = subprocess.Popen(
            self._command if over is None else over.command(self._command),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={
                **os.environ,
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                # Not what may run from this repository's own data directory.
                "PARTISCOPE_DATA": str(store.parent / "data"),
            },
        )
        os.close(slave)
        if over is not None:
            self.read_until(LOGGED_IN.encode())
        self.started_s = time.monotonic() if over is not None else called_s
        self.login_s = self.started_s - called_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(WAIT_S)
        self.hang_up()

    def hang_up(self) -> None:
        """As when a window is closed or a connection breaks."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def attributes(self) -> list[Any]:
        """What ``stty -a`` tells."""
        return termios.tcgetattr(self._master)

    def resize(self, columns: int, rows: int) -> None:
        """As when a window is made larger or smaller."""
        ioctl(self._master, TIOCSWINSZ, pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def read(self, for_s: float) -> bytes:
        """Everything that is written within so many seconds."""
        until_s = time.monotonic() + for_s
        found = b""
        while (left_s := until_s - time.monotonic()) > 0:
            if select.select([self._master], [], [], left_s)[0]:
                try:
                    found += os.read(self._master, 1 << 16)
                except OSError:  # it has ended
                    return found
        return found

    def read_until(self, word: bytes) -> bytes:
        """Until it has written a word."""
        found = b""
        began_s = time.monotonic()
        while word not in found:
            if time.monotonic() - began_s > DEADLINE_S:
                raise TimeoutError(f"the terminal never wrote {word!r}, but {found[-2000:]!r}")
            select.select([self._master], [], [], 0.1)
            found += self.read(0.001)
        return found

    def type(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._master, key)

    def press(self, key: bytes, answer: bytes) -> float:
        """Milliseconds until the key's answer stands on the screen."""
        pressed_s = time.monotonic()
        self.type(key)
        self.read_until(answer)
        return (time.monotonic() - pressed_s) * 1000

    @property
    def pid(self) -> int:
        """Of the terminal's process itself, wherever it was started from."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().decode().split("\0")
            except OSError:  # it has ended
                continue
            if words[-len(self._command) - 1 : -1] == self._command:
                return int(folder.name)
        raise AssertionError("the terminal does not run")

    def resident_mib(self) -> int:
        """Memory of the process."""
        return _kib(Path(f"/proc/{self.pid}/status"), "VmRSS") // 1024

    def proportional_mib(self) -> int:
        """The same, what it shares with other processes (libraries) divided among them."""
        return _kib(Path(f"/proc/{self.pid}/smaps_rollup"), "Pss") // 1024

    def received_bytes(self) -> int:
        """Over SSH: what its client has read from the network so far, encrypted and all."""
        text = Path(f"/proc/{self.process.pid}/io").read_text()
        return int(text.split()[1])


def _kib(file: Path, name: str) -> int:
    line = next(line for line in file.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])
