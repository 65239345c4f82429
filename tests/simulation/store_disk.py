"""The disk of a metrics store that misbehaves at a chosen write, and a power cut. See ``Fault``.

Every write of the job goes through here: files, links, renames, deletions, folders. What was not
forced to disk is torn by a power cut.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

from spark_metrics.store import durable, files
from spark_metrics.store.files import StoreFiles
from tests.support.faulty_files import FaultyFiles


class Fault(StrEnum):
    """What becomes of a write."""

    FAILS = auto()
    """It is not done, and an error tells so."""
    TORN = auto()
    """Half of it is done before the error."""
    UNSURE = auto()
    """It is done, and an error says that it is not."""
    DIES = auto()
    """The process is killed before it."""
    POWER_CUT = auto()
    """The machine is: what was not forced to disk is lost in part."""


DEADLY: Final = (Fault.DIES, Fault.POWER_CUT)


@dataclass(kw_only=True)
class StoreDisk(FaultyFiles):
    """Counts the writes of the job; the one with number ``at`` goes wrong."""

    root: Path
    dice: Random
    fault: Fault = Fault.FAILS
    at: int = 1 << 60
    count: int = 0
    before_write: Callable[[], None] = lambda: None
    """Called before each write: whoever reads meanwhile."""
    story: list[str] = field(default_factory=list)
    died_of: Fault | None = None
    """Why nothing is done any more; None: the process is alive."""
    _unforced: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Let every store that is opened meanwhile lie on this disk."""
        really = StoreFiles.__init__
        disk = self

        def opened(store_files: StoreFiles, store: str) -> None:
            really(store_files, store)
            store_files.system = disk.as_pyarrow()

        with (
            patch.object(StoreFiles, "__init__", opened),
            patch.object(durable, "force", self._force),
            patch.object(files, "force", self._force),
            patch.object(os, "link", self._linked(os.link)),
        ):
            yield

    def go_wrong(self, fault: Fault, after: int) -> None:
        """Let a write from now on go wrong."""
        if self.died_of is None:
            self.fault, self.at = fault, self.count + after

    def restart(self) -> None:
        """Begin a new process on what the one before has left."""
        if self.died_of is Fault.POWER_CUT:
            for path in sorted(self._unforced):
                if os.path.exists(path):
                    os.truncate(path, self.dice.randrange(os.path.getsize(path) + 1))
        self._unforced.clear()
        self.died_of = None

    def create_dir(self, path: str, recursive: bool) -> None:
        self._do(f"create {path}", lambda: super(StoreDisk, self).create_dir(path, recursive))

    def delete_file(self, path: str) -> None:
        self._do(f"delete {path}", lambda: super(StoreDisk, self).delete_file(path))

    def move(self, src: str, dest: str) -> None:
        def moved() -> None:
            super(StoreDisk, self).move(src, dest)
            if src in self._unforced:
                self._unforced.add(dest)

        self._do(f"move {src}", moved)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        self._do(f"write {path}", lambda: self._unforced.add(path), torn=lambda: self._half(path))
        return super().open_output_stream(path, metadata)

    def _half(self, path: str) -> None:
        Path(path).write_bytes(b"PAR1 and then")
        self._unforced.add(path)

    def _force(self, path: str) -> None:
        self._do(f"force {path}", lambda: self._unforced.discard(path))

    def _linked(self, really: Callable[..., None]) -> Callable[..., None]:
        return lambda src, dest: self._do(f"link {dest}", lambda: really(src, dest))

    def _do(
        self, what: str, really: Callable[[], object], torn: Callable[[], object] | None = None
    ) -> None:
        number, self.count = self.count, self.count + 1
        if self.died_of is not None:
            raise OSError(5, "the process is dead")
        if number != self.at:
            self.before_write()
            really()
            return
        self.story.append(f"{self.fault}: {what}")
        if self.fault is Fault.TORN and torn is not None:
            torn()
        if self.fault is Fault.UNSURE:
            really()
        self.died_of = self.fault if self.fault in DEADLY else None
        raise OSError(5, f"{self.fault}", what)
