"""What tests see of the machine that they run on: its programs and its caches, nothing else.

``tests/conftest.py`` calls ``isolate`` before anything of the product is imported. From then on
neither ``./data`` nor ``./partiscope.toml``, no home directory, setting, time zone, locale or
terminal of whoever runs the tests reaches them or what they start.
"""

import atexit
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_HANDED_ON: Final = "TESTS_MACHINE"
"""Hands the machine's environment to pytest's workers, which begin with an isolated one."""
MACHINE: Final[Mapping[str, str]] = json.loads(
    os.environ.get(_HANDED_ON) or json.dumps(dict(os.environ))
)
"""The environment as it was: for what says how to test, and for Maven, Go and uv, which reach the
network by it."""
REMOVED: Final = (
    "PARTISCOPE_", "XDG_", "LC_", "LANG", "SPARK_", "PYSPARK_", "HADOOP_", "KAFKA_", "AWS_",
    "KRB5", "TMUX", "TEXTUAL", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES", "TERM",
    "COLORTERM", "ESCDELAY", "PYTHONPATH", "PYTHONWARNINGS", "PYTHONUTF8", "PYTHONIOENCODING",
    "PYTHONDONTWRITEBYTECODE", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
)  # fmt: skip
FIXED: Final = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}


def isolate() -> None:
    """Move into an empty home and an empty working directory, with a fixed environment. Most of
    what a worker finds comes from the process that started it, and is fixed already."""
    is_worker = _HANDED_ON in os.environ
    os.environ[_HANDED_ON] = json.dumps(dict(MACHINE))
    cache = os.environ.get("PARTISCOPE_CACHE") or Path.home() / ".cache" / "partiscope"
    room = Path(tempfile.mkdtemp(prefix="partiscope-tests-"))
    atexit.register(shutil.rmtree, room, ignore_errors=True)
    removed = ("COLUMNS", "LINES") if is_worker else REMOVED  # pytest-xdist sets these for workers
    for name in [*os.environ]:
        if name.startswith(removed):
            del os.environ[name]
    home, state, folder = room / "home", room / "state", room / "folder"
    for each in (home, state, folder):
        each.mkdir()
    own = {"HOME": home, "XDG_STATE_HOME": state, "PARTISCOPE_CACHE": Path(cache).absolute()}
    if not is_worker:  # All that tests start is one installation, whatever its data directory.
        own["PARTISCOPE_PROOF__KEY_FILE"] = room / "installation.key"
    os.environ.update({name: str(path) for name, path in own.items()} | FIXED)
    time.tzset()
    # Bytecode is kept, whatever the environment asks: pytest would rewrite each test file anew in
    # each process, and hundreds of brokers and pages would compile themselves.
    sys.dont_write_bytecode = False


def working_directory() -> Path:
    """The empty one of this process."""
    return Path(os.environ["HOME"]).with_name("folder")
