"""`partiscope tui` on a pseudo-terminal: what it writes, what keys do, what it costs."""

import os
import pty
import select
import subprocess
import sys
import time
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from typing import Final, Self

DEADLINE_S: Final = 120.0
QUIET_S: Final = 0.4


class Terminal:
    """One terminal of so many columns and rows, at a view's path."""

    def __init__(self, store: Path, size: tuple[int, int], *, path: str = "overview") -> None:
        self._master, slave = pty.openpty()
        columns, rows = size
        ioctl(slave, TIOCSWINSZ, pack("HHHH", rows, columns, 0, 0))
        self.started_s = time.monotonic()
        self.process = subprocess.Popen(
            (Path(sys.executable).parent / "partiscope", "tui", "--store", str(store), path),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)
        os.close(self._master)

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
            found += self.read(0.02)
        return found

    def type(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._master, key)

    def press(self, key: bytes) -> float:
        """Milliseconds until the first byte comes back."""
        self.read(QUIET_S)
        pressed_s = time.monotonic()
        self.type(key)
        select.select([self._master], [], [], 5.0)
        return (time.monotonic() - pressed_s) * 1000

    def resident_mib(self) -> int:
        """Memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) // 1024
