"""The real thing, on a pseudo-terminal as over SSH."""

import re
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.patience import WAIT_S
from tests.support.question_store import write_story
from tests.support.terminal import Terminal

REFRESH_BYTES_MAX: Final = 20_000
LEFT_ALTERNATE_SCREEN: Final = b"\x1b[?1049l"


def test_it_starts_sends_little_copies_by_osc_52_and_leaves_a_clean_terminal(
    tmp_path: Path,
) -> None:
    write_story(tmp_path, at_ms=time.time_ns() // 1_000_000)
    with Terminal(tmp_path, (80, 24)) as terminal:
        first = terminal.read_until(b"THROUGHPUT")
        assert b"down since" not in first
        write_story(tmp_path, at_ms=time.time_ns() // 1_000_000)
        refresh = terminal.read_until(b" s ago")
        assert len(refresh) < REFRESH_BYTES_MAX
        terminal.type(b"y")
        terminal.read_until(b"\x1b]52;c;b3ZlcnZpZXc=")  # "overview"
        terminal.press(b"g", b"go to")
        terminal.press(b"\x1b", b"quit")  # Escape alone, not the begin of a sequence
        terminal.type(b"q")
        terminal.read_until(LEFT_ALTERNATE_SCREEN)
        terminal.read(1.0)
        assert terminal.process.wait(WAIT_S) == 0


def test_it_starts_with_secrets_that_one_process_alone_may_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "partiscope.toml"
    settings.write_text(
        '[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'
        '[clusters.prod.connection]\nsecurity_protocol = "SASL_PLAINTEXT"\n'
        'sasl_mechanism = "PLAIN"\nusername = "partiscope"\npassword = "p-a-s-s"\n'
    )
    monkeypatch.setenv("PARTISCOPE_CONFIG", str(settings))
    write_story(tmp_path / "store", at_ms=time.time_ns() // 1_000_000)
    with Terminal(tmp_path / "store", (80, 24)) as terminal:
        shown = terminal.read_until(b"THROUGHPUT")
        assert b"p-a-s-s" not in shown
        terminal.type(b"q")
        terminal.read_until(LEFT_ALTERNATE_SCREEN)
        assert terminal.process.wait(WAIT_S) == 0


def test_the_mouse_is_given_back_and_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_story(tmp_path, at_ms=time.time_ns() // 1_000_000)
    with Terminal(tmp_path, (80, 24)) as terminal:
        assert b"\x1b[?1003h" in terminal.read_until(b"THROUGHPUT")
        terminal.type(b"M")
        terminal.read_until(b"\x1b[?1003l")
        terminal.type(b"M")
        terminal.read_until(b"\x1b[?1003h")
    monkeypatch.setenv("PARTISCOPE_TERMINAL__MOUSE", "false")
    with Terminal(tmp_path, (80, 24)) as terminal:
        assert b"\x1b[?1003h" not in terminal.read_until(b"THROUGHPUT")
        terminal.type(b"M")
        terminal.read_until(b"\x1b[?1003h")


def test_without_colours_no_view_sends_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    write_story(tmp_path, at_ms=time.time_ns() // 1_000_000)
    with Terminal(tmp_path, (80, 24), path="map") as terminal:
        written = terminal.read_until(b"MAP")
        for keys in (b"b", b"gt", b"/x\x1b\x1b", b"gp", b"gb", b"gg", b"gw", b"gn", b"gj", b"?"):
            terminal.type(keys)
            written += terminal.read(0.3)
    styles = re.findall(rb"\x1b\[([\d;]*)m", written)
    numbers = {int(number) for style in styles for number in style.split(b";") if number}
    assert 7 in numbers, "what is selected is in reverse"
    assert not numbers & {38, 48, *range(30, 38), *range(40, 48), *range(90, 108)}
