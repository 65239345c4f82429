"""Builds and runs the Go client of the seed scenarios (confluent-kafka-go)."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("go_client")
BUILD_TIMEOUT_S: Final = 600
RUN_TIMEOUT_S: Final = 60


class GoUnavailableError(Exception):
    """No Go here, or its modules cannot be fetched."""


def build_go_client() -> Path:
    """The program, built once per state of its source and kept in the cache.

    Raises:
        GoUnavailableError: with what is missing.
    """
    cache = Path(os.environ.get("PARTISCOPE_CACHE", Path.home() / ".cache" / "partiscope"))
    program = cache / "go" / "go_client"
    newest = max(path.stat().st_mtime for path in SOURCE.iterdir())
    if program.exists() and program.stat().st_mtime >= newest:
        return program
    if shutil.which("go") is None:
        raise GoUnavailableError("`go` is not installed")
    program.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["go", "build", "-o", str(program), "."],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise GoUnavailableError(f"the Go client cannot be built: {done.stderr[-500:]}")
    return program


def run_go_client(program: Path, *args: str) -> list[tuple[int, int, str, str]]:
    """Run it; each line as (partition, offset, key, value)."""
    done = subprocess.run(
        [program, *args], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split(" ", 3) for line in done.stdout.splitlines()]
    return [(int(partition), int(offset), key, value) for partition, offset, key, value in lines]
