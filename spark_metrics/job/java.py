"""Finds a Java that Spark can run on: 17 or 21; newer ones are not tried."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

JAVA_VERSIONS: Final = (17, 21)
DRIVER_MEMORY: Final = "768m"
"""Heap of the metrics job's JVM: it only reads the topic, whatever the size of the cluster."""
_PLACES: Final = ("/usr/lib/jvm", "/usr/java", "/Library/Java/JavaVirtualMachines", "/opt/java")
_HOMEBREW: Final = ("/opt/homebrew/opt", "/usr/local/opt")
HOW_TO_INSTALL: Final = (
    "Install Java 17 or 21: `sudo apt-get install -y openjdk-17-jre-headless` (Debian, Ubuntu), "
    "`sudo dnf install -y java-17-openjdk-headless` (Fedora, RHEL), `brew install openjdk@17` "
    "(macOS); or set JAVA_HOME to one."
)


class JavaMissingError(Exception):
    """No usable Java; the text says what was found and what to type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """One Java on this machine."""

    home: Path
    version: int


def find_java() -> Java:
    """The Java to run Spark with: JAVA_HOME first, then PATH, then the usual places.

    Raises:
        JavaMissingError: none is of a version that Spark runs on.
    """
    seen: list[str] = []
    for home in _candidates():
        version = _version(home)
        if version in JAVA_VERSIONS:
            return Java(home=home, version=version)
        if version is not None:
            seen.append(f"Java {version} at {home}")
    seen_text = f"found only {', '.join(seen)}" if seen else "no Java was found"
    raise JavaMissingError(f"Spark needs Java 17 or 21, but {seen_text}. {HOW_TO_INSTALL}")


def refusal(java: Java, memory: str) -> str:
    """Why its JVM does not start with a heap like ``2g``; empty: it starts."""
    try:
        done = subprocess.run(
            [java.home / "bin" / "java", f"-Xmx{memory}", "-version"],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else " ".join(f"{done.stdout}{done.stderr}".split())


def _candidates() -> Iterator[Path]:
    if java_home := os.environ.get("JAVA_HOME"):
        yield Path(java_home)
    if java := shutil.which("java"):
        yield Path(java).resolve().parents[1]
    for place in map(Path, _PLACES):
        for home in sorted(place.glob("*")) if place.is_dir() else []:
            yield home / "Contents" / "Home" if (home / "Contents").is_dir() else home
    for brew in map(Path, _HOMEBREW):
        for version in JAVA_VERSIONS:
            yield brew / f"openjdk@{version}"


def _version(home: Path) -> int | None:
    """Major version by the ``release`` file, or by asking it; None when it is no Java."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.exists() else _ask(java)
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found.group(1)) if found else None


def _ask(java: Path) -> str:
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr


def main(arguments: list[str]) -> int:
    """Print the Java found, or what to type; with ``--quiet`` only the status tells."""
    try:
        java = find_java()
    except JavaMissingError as error:
        if "--quiet" not in arguments:
            sys.stderr.write(f"{error}\n")
        return 1
    if "--quiet" not in arguments:
        sys.stdout.write(f"Java {java.version} at {java.home}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
