"""What pyproject.toml makes a package of."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

from tests.support.node_cluster import ROOT

PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: Final[list[str]] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def packaged_files() -> list[Path]:
    """All files of the packages but bytecode, relative to the checkout."""
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*"))
    return sorted(
        file.relative_to(ROOT)
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    )


def ignored_files(files: list[Path]) -> list[str]:
    """Those that Git ignores; the build leaves them out as well."""
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        input="\n".join(map(str, files)),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()
