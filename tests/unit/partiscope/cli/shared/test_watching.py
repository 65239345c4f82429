"""``--watch``: rounds in a pipe and on a terminal, failed rounds, and its end by Ctrl-C."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ
from typing import IO, Any

import pytest

from partiscope.cli.app import run
from tests.support.patience import WAIT_S
from tests.unit.partiscope.cli.test_told import store

__all__ = ["store"]

ENDED_BY_INTERRUPT = 0
Process = subprocess.Popen[bytes]


@contextmanager
def _watching(*words: str, **streams: Any) -> Iterator[Process]:
    command = (sys.executable, "-m", "partiscope", *words, "--watch", "1")
    # Readline puts COLUMNS and LINES where only a child would find them.
    with subprocess.Popen(command, env={**os.environ}, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def _interrupted(process: Process) -> int:
    process.send_signal(signal.SIGINT)
    return process.wait(WAIT_S)


def _line(stream: IO[bytes] | None) -> str:
    assert stream is not None
    return stream.readline().decode()


@pytest.fixture
def flags(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setenv("PARTISCOPE_DATA", str(tmp_path))
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return ("--store", store)


def test_json_is_one_document_a_line(flags: tuple[str, str]) -> None:
    with _watching("status", "--json", *flags, stdout=subprocess.PIPE) as process:
        told = [json.loads(_line(process.stdout)) for _ in range(2)]
        assert _interrupted(process) == ENDED_BY_INTERRUPT
    assert [len(each["brokers"]) for each in told] == [3, 3]
    assert told[0]["age_ms"] < told[1]["age_ms"]


def test_an_empty_line_parts_rounds_in_a_pipe(flags: tuple[str, str]) -> None:
    with _watching("brokers", *flags, stdout=subprocess.PIPE) as process:
        lines = [_line(process.stdout) for _ in range(9)]
        assert _interrupted(process) == ENDED_BY_INTERRUPT
    heads = [at for at, line in enumerate(lines) if line.startswith("broker\t")]
    assert heads == [0, 5]
    assert [at for at, line in enumerate(lines) if line == "\n"] == [4]


def test_a_reader_that_has_seen_enough_ends_it(flags: tuple[str, str]) -> None:
    with _watching("brokers", *flags, stdout=subprocess.PIPE) as process:
        _line(process.stdout)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(WAIT_S) == 0


def test_a_failed_round_is_told_once_and_the_next_is_tried(
    flags: tuple[str, str], store: str
) -> None:
    away = Path(f"{store}-away")
    with _watching(
        "brokers", "--json", *flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        _line(process.stdout)
        Path(store).rename(away)
        assert "there are no figures" in _line(process.stderr)
        time.sleep(2.5)  # two more rounds fail
        away.rename(store)
        assert _line(process.stdout).startswith("{")
        assert process.poll() is None
        assert _interrupted(process) == ENDED_BY_INTERRUPT
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--watch", "0"),
        ("brokers", "--watch", "86401"),
        ("topics", "--watch", "soon"),
        ("moves", "pause", "--watch", "2", "--bus", "127.0.0.1:1"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_watched_is_wrong_use(flags: tuple[str, str], words: tuple[str]) -> None:
    assert run(list(words)) == 2


def test_a_wrong_word_ends_it_at_once(flags: tuple[str, str]) -> None:
    assert run(["brokers", "--sort", "nonsense", "--watch", "1", *flags]) == 2


class _Terminal:
    """What a terminal gets from a watched command."""

    def __init__(self, rows: int, columns: int) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.written = ""

    def resize(self, rows: int, columns: int) -> None:
        ioctl(self.slave, TIOCSWINSZ, pack("HHHH", rows, columns, 0, 0))

    def read_until(self, is_enough: Callable[[list[str]], bool]) -> list[list[str]]:
        """Frames, each as its lines."""
        until = time.monotonic() + WAIT_S
        while not is_enough(self._frames()):
            assert time.monotonic() < until, self.written
            self.written += os.read(self.master, 65536).decode()
        return [frame.replace("\x1b[K", "").splitlines() for frame in self._frames()]

    def _frames(self) -> list[str]:
        return [frame.split("\x1b[J")[0] for frame in self.written.split("\x1b[H")[1:]
                if "\x1b[J" in frame]  # fmt: skip


@pytest.fixture
def terminal() -> Iterator[_Terminal]:
    opened = _Terminal(rows=8, columns=240)
    yield opened
    os.close(opened.master)
    os.close(opened.slave)


def _on(terminal: _Terminal) -> dict[str, int]:
    return {"stdout": terminal.slave, "stderr": terminal.slave}


def test_a_terminal_is_drawn_over_and_cut_to_its_height(
    flags: tuple[str, str], terminal: _Terminal
) -> None:
    with _watching("partitions", *flags, **_on(terminal)) as process:
        frames = terminal.read_until(lambda frames: len(frames) >= 2)
        assert _interrupted(process) == ENDED_BY_INTERRUPT
    assert [len(frame) for frame in frames[:2]] == [7, 7]
    assert [frame[-1] for frame in frames[:2]] == ["… 8 more lines"] * 2
    assert "\x1b[2J" not in terminal.written, "a terminal that is cleared flickers"


def test_a_resized_terminal_is_drawn_anew(flags: tuple[str, str], terminal: _Terminal) -> None:
    with _watching("partitions", *flags, **_on(terminal)):
        terminal.read_until(lambda frames: len(frames) >= 1)
        terminal.resize(40, 240)
        frames = terminal.read_until(lambda frames: "more lines" not in frames[-1])
    assert len(frames[-1]) == 14


def test_figures_stay_when_a_round_fails(
    flags: tuple[str, str], store: str, terminal: _Terminal
) -> None:
    terminal.resize(40, 240)
    with _watching("brokers", *flags, **_on(terminal)):
        whole = terminal.read_until(lambda frames: len(frames) >= 1)[0]
        Path(store).rename(f"{store}-away")
        frames = terminal.read_until(lambda frames: "✖" in frames[-1])
    assert "there are no figures" in frames[-1][1]
    assert frames[-1][2:] == whole[1:]
