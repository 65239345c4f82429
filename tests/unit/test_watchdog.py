"""A test that hangs where no signal is heard ends its process, and is named."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.patience import WAIT_S

ROOT: Final = Path(__file__).resolve().parents[2]
HANGS: Final = """
import signal, time
import pytest
from tests.support import watchdog
watchdog.FURTHER_S = 1.0

@pytest.mark.parametrize("number", range(20))
def test_before(number):
    time.sleep(0.02)

@pytest.mark.timeout(0.2)
def test_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(10_000)

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(20))
def test_after(number):
    time.sleep(0.02)
"""


def _run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_hanging.py").write_text(HANGS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --timeout=60\n")
    command = (sys.executable, "-m", "pytest", "-p", "tests.support.watchdog", *arguments)
    return subprocess.run(
        (*command, "-p", "no:cacheprovider", "-q", str(tmp_path)),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def test_beside_others_the_rest_goes_on(tmp_path: Path) -> None:
    ran = _run(tmp_path, "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder")
    assert ran.returncode == 1
    assert "1 failed, 40 passed" in ran.stdout
    assert "crashed while running" in ran.stdout
    assert "test_hangs" in ran.stdout


def test_alone_the_run_ends_and_tells_where_it_hung(tmp_path: Path) -> None:
    ran = _run(tmp_path)
    assert ran.returncode == 1
    assert "in test_hangs" in ran.stderr
