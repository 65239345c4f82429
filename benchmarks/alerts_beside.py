"""A bus with one broker, and the process that delivers alerts of a store by so many rules."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.alerts import CONDITIONS
from benchmarks.processes import cpu_seconds
from partiscope.installation import Installation
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.store_builder import CLUSTER

STOP_S: Final = 20
HEAD: Final = """
[alerts.receivers.nobody]
kind = "command"
command = ["true"]
"""


class AlertsBeside:
    """Delivers to a command that does nothing; a context manager. Without rules there is only the
    bus, so that a page with it and one without rules do the same otherwise."""

    def __init__(self, store: Path, rules: int, *, cluster: str = CLUSTER) -> None:
        self._store = store
        self._rules = rules
        self._cluster = cluster
        self._folder = store.parent / "alerts"
        self._stack = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        bus = LocalCluster(
            self._folder, brokers=1, overrides={**NOBODY_DIES, "cluster.id": self._cluster}
        )
        at = self._stack.enter_context(bus).bootstrap
        Installation(bus=at).save(self._store.parent / "data")
        rules = "".join(
            f'[[alerts.rules]]\nname = "rule-{number}"\nwhen = "{it}"\n'
            for number, it in enumerate(self._conditions)
        )
        (self._folder / "partiscope.toml").write_text(HEAD + rules)
        if self._rules:
            self._start(at)
        return self

    @property
    def _conditions(self) -> list[str]:
        return [CONDITIONS[number % len(CONDITIONS)] for number in range(self._rules)]

    def _start(self, at: str) -> None:
        flags = ("--bus", at, "--bootstrap", at, "--store", str(self._store))
        with (self._folder / "alerts.log").open("wb") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "partiscope", "alerts", "run", *flags),
                cwd=self._folder, stdout=log, stderr=log,
            )  # fmt: skip

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the process until now; 0: there is none."""
        return 0.0 if self._process is None else cpu_seconds(self._process.pid)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_S)
        self._stack.close()
