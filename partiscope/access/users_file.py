"""The users file: names, hashes of passwords (Argon2id), and roles by cluster.

It belongs to its owner alone (0600). It is written beside its name and renamed, so that a reader
meets the old one or the new one. Where it is there, the page asks for a login.
"""

import fcntl
import hashlib
import json
import os
import pwd
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from control.access.login import COMMAND_LINE, OPERATING_SYSTEM, Login
from control.access.roles import ADMIN, EVERYWHERE, Role

if TYPE_CHECKING:
    from argon2 import PasswordHasher

FORMAT: Final = 1
BYTES_MAX: Final = 4 << 20
PASSWORD_CHARACTERS_MIN: Final = 10
PASSWORD_CHARACTERS_MAX: Final = 1_000
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_NO_PASSWORD: Final = ""


class UsersFileError(Exception):
    """The users file cannot be used; the text says why, and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """One user of the file."""

    name: str
    password: str = field(default=_NO_PASSWORD, repr=False)
    """Its hash; empty: the user comes by a proxy, or by the operating system, alone."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Names of roles by cluster, ``*`` for all others."""

    @property
    def stamp(self) -> str:
        """Another one once anything of it changes."""
        told = json.dumps([self.name, self.password, sorted(self.roles.items())])
        return hashlib.sha256(told.encode()).hexdigest()


class UsersFile:
    """Users of one file, read anew once it has changed. ``roles`` are those of the settings."""

    def __init__(self, path: Path, roles: Mapping[str, Role]) -> None:
        self.path = path
        self._roles = roles
        self._known: dict[str, User] = {}
        self._mark: tuple[int, ...] | None = None

    @property
    def is_there(self) -> bool:
        """Whether users are declared; also of a file that cannot be read."""
        return os.path.lexists(self.path)

    def users(self) -> Mapping[str, User]:
        """By name; none where there is no file.

        :raises UsersFileError: it cannot be read, or is none of ours.
        """
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                mark = (found.st_ino, found.st_mtime_ns, found.st_size)
                if mark != self._mark:
                    self._known, self._mark = _decoded(file.read(BYTES_MAX + 1), self.path), mark
        except FileNotFoundError:
            self._known, self._mark = {}, None
        except OSError as error:
            why = error.strerror or str(error)
            raise UsersFileError(
                f"the users file {self.path} cannot be read: {why}. Only its owner may read it; "
                "run this as its owner"
            ) from error
        return self._known

    def login(self, name: str, *, proven_by: str, face: str, address: str) -> Login | None:
        """The login of a name, with its roles of now; None: there is no such user."""
        user = self._user(name)
        if user is None:
            return None
        roles = {where: self._role(role) for where, role in user.roles.items()}
        return Login(
            name=name, proven_by=proven_by, face=face, address=address, roles=roles,
            why_none="no role is given there",
        )  # fmt: skip

    def stamp(self, name: str) -> str:
        """Another one once password or roles of the user change; empty: there is no such user."""
        user = self._user(name)
        return "" if user is None else user.stamp

    def verify(self, name: str, password: str) -> bool:
        """Whether it is the user's password. It takes as long where there is no such user."""
        from argon2.exceptions import InvalidHashError, VerificationError

        user = self._user(name)
        stored = user.password if user is not None and user.password else _decoy()
        try:
            _hasher().verify(stored, password[: PASSWORD_CHARACTERS_MAX + 1])
        except (VerificationError, InvalidHashError):
            return False
        return user is not None and bool(user.password)

    def process_login(self, face: str = COMMAND_LINE) -> Login | None:
        """The login of this process: its OS user. None: no users are declared. Who owns the file
        may write any role into it, and is an admin where no role is written."""
        if not self.is_there:
            return None
        name, why = _system_user(), f"{self.path} has no user of this name"
        roles: dict[str, Role] = {}
        try:
            user = self.users().get(name)
            is_owner = self.path.stat().st_uid == os.geteuid()
            if user is not None:
                roles = {where: self._role(role) for where, role in user.roles.items()}
            elif is_owner or not os.geteuid():
                roles = {EVERYWHERE: ADMIN}
        except (UsersFileError, OSError) as error:
            why = str(error)
        return Login(name=name, proven_by=OPERATING_SYSTEM, face=face, roles=roles, why_none=why)

    @contextmanager
    def changing(self) -> Iterator[dict[str, User]]:
        """All users, to be changed; they are written once this ends without an error. Two who
        change it at once come one after the other.

        :raises UsersFileError: it cannot be read or written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.path.with_name(f".{self.path.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                users = dict(self.users())
                yield users
                _write(self.path, users)
        except OSError as error:
            why = error.strerror or str(error)
            raise UsersFileError(
                f"the users file {self.path} cannot be written: {why}. Correct its rights, or name "
                "another by access.users_file"
            ) from error

    def _user(self, name: str) -> User | None:
        try:
            return self.users().get(name)
        except UsersFileError:
            return None  # nobody gets in by a file that cannot be read

    def _role(self, name: str) -> Role:
        """A role that the settings declare no longer has no rights, and says so by its name."""
        return self._roles.get(name) or Role(name=f"{name} (not declared in [roles])")


def _system_user() -> str:
    """By the process's id: variables such as LOGNAME are anybody's to set."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's user has a number alone
        return str(os.geteuid())


def hashed(password: str) -> str:
    """The hash of a new password.

    :raises UsersFileError: it is too short or too long.
    """
    if not PASSWORD_CHARACTERS_MIN <= len(password) <= PASSWORD_CHARACTERS_MAX:
        raise UsersFileError(
            f"the password has {len(password)} characters: choose one of "
            f"{PASSWORD_CHARACTERS_MIN} to {PASSWORD_CHARACTERS_MAX:,}"
        )
    return _hasher().hash(password)


@cache
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _decoy() -> str:
    """Verified in the place of a hash that there is not, so that time tells nothing."""
    return _hasher().hash(os.urandom(16).hex())


def _decoded(content: bytes, path: Path) -> dict[str, User]:
    """:raises UsersFileError: it is none of ours."""
    try:
        if len(content) > BYTES_MAX:
            raise ValueError(f"it has more than {BYTES_MAX:,} bytes")
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise ValueError(f"it has format {document['format']!r}")
        return {name: _user_of(name, each) for name, each in document["users"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsersFileError(
            f"the users file {path} cannot be used: {error}. Restore it from a backup, or remove "
            "it and add the users again"
        ) from error


def _user_of(name: str, told: Any) -> User:
    password, roles = told["password"], told["roles"]
    texts = [name, password, *roles, *roles.values()]
    if not all(isinstance(it, str) for it in texts) or not NAME.fullmatch(name):
        raise ValueError(f"the user {name[:100]!r} is not one that `partiscope users` wrote")
    return User(name=name, password=password, roles=dict(roles))


def _write(path: Path, users: Mapping[str, User]) -> None:
    told = {
        name: {"password": user.password, "roles": dict(user.roles)}
        for name, user in sorted(users.items())
    }
    content = json.dumps({"format": FORMAT, "users": told}, indent=2) + "\n"
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
