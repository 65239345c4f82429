"""Builds Go programs for tests: a client of confluent-kafka-go, and servers of other projects."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from spark_metrics.job.connector_jars import cache_folder
from tests.support.isolation import MACHINE
from tests.support.patience import patience_s

SOURCE: Final = Path(__file__).with_name("go_client")
BUILD_TIMEOUT_S: Final = patience_s(600)
RUN_TIMEOUT_S: Final = patience_s(60)


class GoUnavailableError(Exception):
    """No Go here, or its modules cannot be fetched."""


def build_go_client() -> Path:
    """The program, built once per state of its source and kept in the cache.

    Raises:
        GoUnavailableError: with what is missing.
    """
    program = cache_folder() / "go" / "go_client"
    newest = max(path.stat().st_mtime for path in SOURCE.iterdir())
    if program.exists() and program.stat().st_mtime >= newest:
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    _go("build", "-o", str(program), ".", folder=SOURCE)
    return program


def install_go_program(package: str, version: str, *, tags: str = "") -> Path:
    """The program of a public Go package, built once and kept in the cache. ``tags`` may leave out
    parts that no test needs.

    Raises:
        GoUnavailableError: with what is missing.
    """
    folder = cache_folder() / "go" / version
    program = folder / re.sub(r"/v\d+$", "", package).rpartition("/")[2]
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _go("install", "-tags", tags, f"{package}@{version}", folder=folder)
    return program


def _go(*words: str, folder: Path) -> None:
    if shutil.which("go") is None:
        raise GoUnavailableError("`go` is not installed")
    done = subprocess.run(
        ["go", *words],
        cwd=folder,
        env={**MACHINE, "GOBIN": str(folder)},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise GoUnavailableError(f"go {' '.join(words)} failed: {done.stderr[-500:]}")


def run_go_client(program: Path, *args: str) -> list[tuple[int, int, str, str]]:
    """Run it; each line as (partition, offset, key, value)."""
    done = subprocess.run(
        [program, *args], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split(" ", 3) for line in done.stdout.splitlines()]
    return [(int(partition), int(offset), key, value) for partition, offset, key, value in lines]
