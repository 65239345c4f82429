"""Files of named entries that belong to their owner alone: users, and tokens.

A file is written beside its name (0600) and renamed, so that a reader meets the old one or the new
one. It is read anew once it has changed.
"""

import fcntl
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from control.access.roles import Role

FORMAT: Final = 1
BYTES_MAX: Final = 4 << 20
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
"""A name of a user or a token."""
_Entry = TypeVar("_Entry")


class AccessFileError(Exception):
    """Users or tokens cannot be read or written; the text says why, and what would do."""


class PrivateFile(Generic[_Entry]):
    """Entries of one file by name. ``kind`` names them: ``users``."""

    def __init__(
        self,
        path: Path,
        kind: str,
        *,
        setting: str,
        decode: Callable[[str, Any], _Entry],
        encode: Callable[[_Entry], dict[str, Any]],
    ) -> None:
        """``setting`` names another file. ``decode`` raises ValueError, KeyError or TypeError where
        an entry is none of ours."""
        self.path = path
        self._kind = kind
        self._setting = setting
        self._decode = decode
        self._encode = encode
        self._known: dict[str, _Entry] = {}
        self._mark: tuple[int, ...] | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is one; also where it cannot be read."""
        return os.path.lexists(self.path)

    def entries(self) -> Mapping[str, _Entry]:
        """By name; none where there is no file.

        :raises AccessFileError: it cannot be read, or is none of ours.
        """
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                mark = (found.st_ino, found.st_mtime_ns, found.st_size)
                if mark != self._mark:
                    self._known, self._mark = self._decoded(file.read(BYTES_MAX + 1)), mark
        except FileNotFoundError:
            self._known, self._mark = {}, None
        except OSError as error:
            why = error.strerror or str(error)
            raise AccessFileError(
                f"the {self._kind} file {self.path} cannot be read: {why}. Only its owner may read "
                "it; run this as its owner"
            ) from error
        return self._known

    @contextmanager
    def changing(self) -> Iterator[dict[str, _Entry]]:
        """All entries, to be changed; they are written once this ends without an error. Two who
        change them at once come one after the other.

        :raises AccessFileError: they cannot be read or written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.path.with_name(f".{self.path.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                entries = dict(self.entries())
                yield entries
                self._write(entries)
        except OSError as error:
            why = error.strerror or str(error)
            raise AccessFileError(
                f"the {self._kind} file {self.path} cannot be written: {why}. Correct its rights, "
                f"or name another by {self._setting}"
            ) from error

    def _decoded(self, content: bytes) -> dict[str, _Entry]:
        """:raises AccessFileError: it is none of ours."""
        try:
            if len(content) > BYTES_MAX:
                raise ValueError(f"it has more than {BYTES_MAX:,} bytes")
            document = json.loads(content)
            if document["format"] != FORMAT:
                raise ValueError(f"it has format {document['format']!r}")
            told = document[self._kind]
            return {_checked(name): self._decode(name, each) for name, each in told.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise AccessFileError(
                f"the {self._kind} file {self.path} cannot be used: {error}. Restore it from a "
                f"backup, or remove it and add the {self._kind} again"
            ) from error

    def _write(self, entries: Mapping[str, _Entry]) -> None:
        told = {name: self._encode(entry) for name, entry in sorted(entries.items())}
        content = json.dumps({"format": FORMAT, self._kind: told}, indent=2) + "\n"
        handle, beside = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        except BaseException:
            os.unlink(beside)
            raise
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def role_named(name: str, roles: Mapping[str, Role]) -> Role:
    """A role that the settings declare no longer has no rights, and says so by its name."""
    return roles.get(name) or Role(name=f"{name} (not declared in [roles])")


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(f"{name[:100]!r} is not a name that Partiscope wrote")
    return name
