"""Whatever ends the terminal screen from outside, the terminal is left as it was."""

import os
import signal
import termios
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.patience import patience_s
from tests.support.question_store import write_story
from tests.support.terminal import Terminal

RESTORED: Final = (
    b"\x1b[?1049l",  # the first screen
    b"\x1b[?25h",  # its cursor
    b"\x1b[?1000l",  # no reports of the mouse
    b"\x1b[?1003l",
    b"\x1b[?2004l",  # no marks around what is pasted
    b"\x1b[?7h",  # lines end at the margin
)
ENDS_WITHIN_S: Final = patience_s(5.0)


def _written_until_it_ends(terminal: Terminal) -> bytes:
    written = b""
    until_s = time.monotonic() + ENDS_WITHIN_S
    while terminal.process.poll() is None and time.monotonic() < until_s:
        written += terminal.read(0.1)
    return written + terminal.read(0.2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_terminal_as_it_was(number: signal.Signals, tmp_path: Path) -> None:
    write_story(tmp_path, at_ms=time.time_ns() // 1_000_000)
    # Under nohup children would ignore SIGHUP, as they should.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with Terminal(tmp_path, (80, 24)) as terminal:
        before = terminal.attributes()
        terminal.read_until(b"THROUGHPUT")
        assert terminal.attributes() != before
        os.kill(terminal.process.pid, number)
        written = _written_until_it_ends(terminal)
        assert terminal.process.poll() == -number, "it dies of the signal: 128 + its number"
        assert all(sequence in written for sequence in RESTORED), written[-300:]
        assert written.rindex(b"\x1b[?1049l") > written.rfind(b"\x1b[?1049h")
        assert terminal.attributes() == before
        assert b"Traceback" not in written


def test_a_stuck_application_loses_the_terminal_all_the_same(tmp_path: Path) -> None:
    write_story(tmp_path, at_ms=time.time_ns() // 1_000_000)
    with Terminal(tmp_path, (80, 24)) as terminal:
        before = terminal.attributes()
        terminal.read_until(b"THROUGHPUT")
        for _ in range(40):  # nobody reads: soon nothing that it writes gets through any more
            terminal.type(b"\x0c")  # ctrl+l paints all anew
            time.sleep(0.05)
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.process.wait(ENDS_WITHIN_S) in (-signal.SIGTERM, 128 + signal.SIGTERM)
        assert terminal.attributes()[3] & termios.ECHO == before[3] & termios.ECHO


def test_a_terminal_that_is_gone_ends_it(tmp_path: Path) -> None:
    write_story(tmp_path, at_ms=time.time_ns() // 1_000_000)
    with Terminal(tmp_path, (80, 24)) as terminal:
        terminal.read_until(b"THROUGHPUT")
        terminal.hang_up()
        assert terminal.process.wait(ENDS_WITHIN_S) is not None


def test_whoever_leaves_while_a_view_opens_sees_no_traceback(tmp_path: Path) -> None:
    write_story(tmp_path, at_ms=time.time_ns() // 1_000_000)
    with Terminal(tmp_path, (80, 24)) as terminal:
        terminal.read_until(b"THROUGHPUT")
        terminal.type(b"gt\r\rq")
        written = _written_until_it_ends(terminal)
        assert terminal.process.poll() == 0
        assert b"Traceback" not in written
        assert b"NoMatches" not in written
