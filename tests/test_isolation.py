"""Unit tests see nothing of the machine: they pass in a checkout that is poisoned for them."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.support.isolation import MACHINE
from tests.support.patience import patience_s

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

ROOT: Final = Path(__file__).resolve().parents[1]
EVERY: Final = 8
"""What reaches for the machine does so in many tests: one in eight shows it."""
USUAL_PORTS: Final = (8050, 9092)
DEAD: Final = '{"bus": "127.0.0.1:1", "bootstrap": "127.0.0.1:1"}'
POISON: Final = {
    "TZ": "Asia/Kathmandu",
    "LC_ALL": "C",
    "COLUMNS": "17",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PARTISCOPE_CONFIG": "/nowhere/partiscope.toml",
    "PARTISCOPE_BOOTSTRAP": "127.0.0.1:1",
    "PARTISCOPE_READ_ONLY": "maybe",
    "XDG_STATE_HOME": "/proc/nowhere",
    "HOME": "/proc/nowhere",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TESTS_EVERY": str(EVERY),
}


def test_units_pass_in_a_poisoned_checkout(tmp_path: Path) -> None:
    """Dead ``./data``, nonsense in ``partiscope.toml``, the usual ports taken, another time zone,
    locale and home; a space, a quote and an umlaut in the path."""
    checkout = tmp_path / "it's my Übung"
    _copy(checkout)
    (checkout / "partiscope.toml").write_text("nonsense = [")
    (checkout / "data" / "store").mkdir(parents=True)
    (checkout / "data" / "installation.json").write_text(DEAD)
    (checkout / "data" / "store" / "manifest.json").write_text("{")
    cache = os.environ["PARTISCOPE_CACHE"]
    with ExitStack() as taken:
        for port in USUAL_PORTS:
            _take(port, taken)
        done = subprocess.run(
            (sys.executable, "-m", "pytest", "-q", "-n", "2",
             "-p", "no:cacheprovider", "tests/unit"),
            cwd=checkout, env={**MACHINE, **POISON, "PARTISCOPE_CACHE": cache},
            capture_output=True, text=True, check=False, timeout=patience_s(840),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]


def _copy(checkout: Path) -> None:
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, checkout / name)


def _take(port: int, taken: ExitStack) -> None:
    """Answer nobody there, unless somebody has it already: as good."""
    with suppress(OSError):
        taken.enter_context(socket.create_server(("127.0.0.1", port)))
