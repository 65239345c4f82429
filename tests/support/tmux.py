"""A program in a real terminal of its own (tmux): keys, pasted text, what stands on the screen."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.support.settle import wait_until

PROGRAM: Final = Path(sys.executable).parent / "partiscope"
SEEN_S: Final = 20.0
START_S: Final = 60.0


class Tmux:
    """One server of its own, with one window of this size; ``close`` ends it."""

    def __init__(self, command: str, size: tuple[int, int]) -> None:
        self._name = f"partiscope-{uuid4().hex[:8]}"
        columns, rows = size
        shell = f"env -u COLUMNS -u LINES {command}"
        window = ("new-session", "-d", "-x", str(columns), "-y", str(rows), shell)
        self.run(*window, ";", "set-option", "-g", "remain-on-exit", "on")

    def close(self) -> None:
        """Ends its server."""
        self.run("kill-server")

    def picture(self) -> str:
        """What stands on the screen."""
        return self.run("capture-pane", "-p")

    def words(self) -> str:
        """The same in one line: however wide the screen is."""
        return " ".join(self.picture().split())

    def press(self, *keys: str) -> None:
        """Keys by tmux's names."""
        self.run("send-keys", *keys)

    def type(self, text: str) -> None:
        """Each character as a key."""
        self.run("send-keys", "-l", text)

    def paste(self, text: str) -> None:
        """As a terminal does it: in brackets where the program asks for them."""
        self.run("load-buffer", "-", put=text)
        self.run("paste-buffer", "-p", "-d")

    def wait(self, *wanted: str, seconds: float = SEEN_S) -> None:
        """Until all these words stand on the screen, wherever its lines break."""
        wait_until(
            lambda: all(words in self.words() for words in wanted),
            str(wanted),
            timeout_s=seconds,
            story=self.picture,
        )

    def run(self, *words: str, put: str | None = None) -> str:
        """A command of tmux."""
        return subprocess.run(
            ["tmux", "-L", self._name, "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            check=True,
            input=put,
        ).stdout


@contextmanager
def terminal(
    path: str, *flags: str, size: tuple[int, int] = (80, 24), data: Path
) -> Iterator[Tmux]:
    """``partiscope tui`` at a view."""
    command = shlex.join((f"PARTISCOPE_DATA={data}", str(PROGRAM), "tui", path, *flags))
    shown = Tmux(command, size)
    try:
        yield shown
    finally:
        shown.close()
