"""The installation's key, which proves its records on the bus, in a file of its data directory.

The file belongs to its owner alone (0600), and is made by whoever needs it first.
"""

import fcntl
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from control.operations.bus.proof import KEY_BYTES
from control.operations.errors import ProofKeyError

KEY_FILE: Final = "installation.key"


class KeyFiles:
    """Keys in files: the own one, and those of further installations on the same bus."""

    def __init__(self, own: Path, further: Sequence[Path] = ()) -> None:
        self._own_file = own
        self._further_files = further
        self._own = b""
        self._further: tuple[bytes, ...] | None = None

    def own(self) -> bytes:
        """The installation's key; the first who asks makes it.

        :raises ProofKeyError: the file cannot be read or made, or is no key.
        """
        if not self._own:
            try:
                self._own = self._read(self._own_file) or _made(self._own_file)
            except OSError as error:
                raise ProofKeyError(str(self._own_file), error.strerror or str(error)) from error
        return self._own

    def known(self) -> Sequence[bytes]:
        """All keys that can be read: without the own one nothing of ours can be told from others'.

        A missing one may be made later by another process.
        """
        if self._further is None:
            self._further = tuple(filter(None, map(_readable, self._further_files)))
        self._own = self._own or _readable(self._own_file)
        return (*filter(None, (self._own,)), *self._further)

    @staticmethod
    def _read(file: Path) -> bytes:
        """Empty: there is none.

        :raises ProofKeyError: it is no key.
        """
        try:
            with file.open("rb") as lies:
                fcntl.flock(lies, fcntl.LOCK_SH)
                key = lies.read(KEY_BYTES + 1)
        except FileNotFoundError:
            return b""
        if key and len(key) != KEY_BYTES:
            why = f"it does not hold {KEY_BYTES} bytes"
            raise ProofKeyError(str(file), why)
        return key


def _readable(file: Path) -> bytes:
    with suppress(OSError, ProofKeyError):
        return KeyFiles._read(file)
    return b""


def _made(file: Path) -> bytes:
    """Two that make it at once come to the same: the lock's second holder reads the first's."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "r+b") as lies:
        fcntl.flock(lies, fcntl.LOCK_EX)
        key = lies.read()
        if not key:
            key = secrets.token_bytes(KEY_BYTES)
            lies.write(key)
            lies.flush()
            os.fsync(lies.fileno())
    return key
