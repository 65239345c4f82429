"""The head of the journal's chain, in a file of the data directory (0600)."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import IO, Final

from control.operations.bus.chain import Doubtful, Head
from control.operations.errors import ChainFileError

CHAIN_FILE: Final = "journal.chain"


class ChainFile:
    """It is written beside its name and renamed; a lock file beside it is held meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def try_hold(self) -> AbstractContextManager[None] | None:
        """None: another process holds it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = self._path.with_suffix(".lock").open("w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                return None
        except OSError as error:
            raise ChainFileError(str(self._path), error.strerror or str(error)) from error
        return _held(lock)

    def read(self) -> Head:
        """A new chain where there is no file.

        :raises ChainFileError: it cannot be read.
        """
        try:
            told = json.loads(self._path.read_bytes())
            doubtful = tuple(Doubtful(*each) for each in told["doubtful"])
            return Head(
                chain=told["chain"], number=told["number"], hash=told["hash"], doubtful=doubtful
            )
        except FileNotFoundError:
            return Head(chain=secrets.token_hex(16))
        except OSError as error:
            raise ChainFileError(str(self._path), error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise ChainFileError(str(self._path), f"it is no head of a chain ({error})") from error

    def known(self) -> Head | None:
        """For who only looks; None: nothing was written from here yet."""
        return self.read() if self._path.exists() else None

    def write(self, head: Head) -> None:
        """Durable when it returns.

        :raises ChainFileError: it cannot be written.
        """
        told = {
            "chain": head.chain,
            "number": head.number,
            "hash": head.hash,
            "doubtful": list(map(list, head.doubtful)),
        }
        beside = self._path.with_suffix(".new")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w") as file:
                json.dump(told, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
        except OSError as error:
            raise ChainFileError(str(self._path), error.strerror or str(error)) from error


@contextmanager
def _held(lock: IO[str]) -> Iterator[None]:
    with closing(lock):
        yield
