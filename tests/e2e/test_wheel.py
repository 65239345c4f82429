"""The wheel as a stranger has it: installed from the registry, run in an empty folder.

By another user, who may not write the installation, below a path with a space and an umlaut, in
the C locale. Dependencies are those of the lock; `make soak` takes the newest that pyproject.toml
allows.

On two cores: half a minute to install with uv, 1.0 GB (5 minutes with pip, which builds PySpark),
11 MB of jars, 25 s from `up` to `ready`.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT
from typing import Final
from urllib.request import urlopen
from zipfile import ZipFile

import pytest

from spark_metrics.job.connector_jars import JARS, connector_jars
from spark_metrics.job.java import find_java
from tests.support.installation import Installation
from tests.support.isolation import MACHINE
from tests.support.node_cluster import ROOT
from tests.support.packages import packaged_files
from tests.support.patience import patience_s
from tests.support.phrases import lacking

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.timeout(900),
]

NOBODY: Final = 65_534
AS_NOBODY: Final = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
PYTHON: Final = Path(MACHINE.get("TESTS_PYTHON", "/usr/bin/python3"))
"""One that every user may run; that of the tests may lie in a home directory."""


def uv(*words: str | Path) -> None:
    """With the machine's network and cache."""
    program = shutil.which("uv", path=MACHINE.get("PATH")) or ROOT / ".cache" / "uv" / "bin" / "uv"
    if not Path(program).exists():
        pytest.skip("needs uv, which `make setup` installs")
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, check=False, env=dict(MACHINE)
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    """A folder that all users can enter."""
    path = Path(tempfile.mkdtemp(prefix="partiscope für alle "))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def wheel(room: Path) -> Path:
    uv("build", "--quiet", "--wheel", "--out-dir", room / "dist", ROOT)
    (found,) = (room / "dist").glob("*.whl")
    return found


@pytest.fixture(scope="module", params=["locked", pytest.param("newest", marks=pytest.mark.soak)])
def program(request: pytest.FixtureRequest, room: Path, wheel: Path) -> Path:
    """The command, installed from the wheel."""
    venv, locked = room / f"venv {request.param}", room / "constraints.txt"
    uv("venv", "--quiet", "--python", PYTHON if PYTHON.exists() else "3.11", venv)
    shipped = ("--locked", "--no-dev", "--no-emit-project", "--no-hashes", "--project", ROOT)
    uv("export", "--quiet", *shipped, "-o", locked)
    constraints = ("--constraints", locked) if request.param == "locked" else ()
    python = venv / "bin" / "python"
    uv("pip", "install", "--quiet", "--python", python, *constraints, wheel)
    return venv / "bin" / "partiscope"


@pytest.fixture(scope="module")
def mirror(room: Path) -> str:
    """A Maven repository with the machine's jars."""
    for jar, file in zip(JARS, connector_jars(), strict=True):
        place = room / "maven" / jar.address
        place.parent.mkdir(parents=True)
        shutil.copyfile(file, place)
    return (room / "maven").as_uri()


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        assert {*map(str, packaged_files())} <= {*archive.namelist()}


def test_the_wheel_runs_everything_from_an_empty_folder(
    room: Path, program: Path, mirror: str
) -> None:
    is_root = os.geteuid() == 0
    venv = program.parents[1]
    home, folder = room / f"héme {venv.name}", room / f"émpty {venv.name}"
    for each in (home, folder):
        each.mkdir()
        if is_root:
            os.chown(each, NOBODY, NOBODY)
    installed = {*venv.rglob("*")}
    installation = Installation(
        folder / "data",
        program=(*(AS_NOBODY if is_root else ()), str(program)),
        environment={
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C",
            "JAVA_HOME": str(find_java().home),
            "PARTISCOPE_MAVEN": mirror,
        },
        folder=folder,
    )
    with installation:
        installation.wait_ready()
        assert not lacking(installation.lines[0], "fetching 11.1 MB", mirror)
        document, _ = installation.status()
        assert len(document["brokers"]) == installation.brokers
        for path in ("/", "/assets/partiscope.css", "/assets/modules/main.js"):
            with urlopen(installation.page + path, timeout=patience_s(30)) as answer:
                assert answer.read(), path
        installation.stop(SIGINT)
    assert {*venv.rglob("*")} == installed, "nothing is written there"
    assert len([*(home / ".cache" / "partiscope").rglob("*.jar")]) == len(JARS)
