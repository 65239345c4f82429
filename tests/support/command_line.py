"""``partiscope`` as an operator types it, for one cluster and one bus."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.node_cluster import ROOT
from tests.support.patience import patience_s
from tests.support.settle import wait_until

TIMEOUT_S: Final = patience_s(120)


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """Commands run in ``folder``; cluster and bus come from the environment, as in a profile."""

    bootstrap: str
    bus: str
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command; whoever started it ends it, or ``close`` does."""
        process = subprocess.Popen(
            (sys.executable, "-m", "partiscope", *words),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PARTISCOPE_BOOTSTRAP": self.bootstrap,
                "PARTISCOPE_BUS": self.bus,
                "PARTISCOPE_DATA": str(self.folder / "data"),
            },
        )
        self.started.append(process)
        return process

    def close(self) -> None:
        """End what is still under way, as after a test that failed."""
        for process in self.started:
            if process.returncode is None:
                process.kill()
                process.communicate()

    def run(self, *words: str, status: int = 0) -> str:
        """Run a command to its end, which must have this status; what it said on both ways."""
        return self.end_of(self.start(*words), status=status)

    def end_of(self, process: subprocess.Popen[str], *, status: int = 0) -> str:
        """What a started command said, once it has ended with this status."""
        try:
            said = "".join(process.communicate(timeout=TIMEOUT_S))
        except BaseException:
            process.kill()
            process.communicate()
            raise
        assert "Traceback" not in said, said
        assert process.returncode == status, f"{process.returncode}, not {status}\n{said}"
        return said

    def json(self, *words: str) -> Any:
        """The document that a command with ``--json`` writes."""
        process = self.start(*words, "--json")
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, f"{words}: {process.returncode}\n{out}{err}"
        return json.loads(out)

    def moves(self) -> list[dict[str, Any]]:
        """All reassignments, the newest first."""
        listed: list[dict[str, Any]] = self.json("moves")["moves"]
        return listed

    def wait_until_moving(self, at_least: int = 1, *, reason: str) -> str:
        """The id of the move of this reason, once it has copied so many bytes but not all."""
        found: list[str] = []

        def is_moving() -> bool:
            for move in self.moves():
                progress = move["progress"] or {"bytes_done": 0}
                if move["reason"] == reason and progress["bytes_done"] >= at_least:
                    assert move["outcome"] is None, f"it was over too soon: {move}"
                    found.append(move["id"])
            return bool(found)

        wait_until(is_moving, f"{reason!r} moves", story=lambda: str(self.moves()))
        return found[0]
