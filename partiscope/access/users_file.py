"""The users file: names, hashes of passwords (Argon2id), and roles by cluster. Where it is there,
the page asks for a login."""

import hashlib
import json
import os
import pwd
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from control.access.login import COMMAND_LINE, OPERATING_SYSTEM, Login
from control.access.roles import ADMIN, EVERYWHERE, Role
from partiscope.access.private_file import AccessFileError, PrivateFile, role_named

if TYPE_CHECKING:
    from argon2 import PasswordHasher

PASSWORD_CHARACTERS_MIN: Final = 10
PASSWORD_CHARACTERS_MAX: Final = 1_000
_NO_PASSWORD: Final = ""


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
    """Users of one file. ``roles`` are those of the settings."""

    def __init__(self, path: Path, roles: Mapping[str, Role]) -> None:
        self.path = path
        self._roles = roles
        self._file = PrivateFile(
            path, "users", setting="access.users_file", decode=_user_of, encode=_told
        )

    @property
    def is_there(self) -> bool:
        """Whether users are declared; also of a file that cannot be read."""
        return self._file.is_there

    def users(self) -> Mapping[str, User]:
        """By name; none where there is no file.

        :raises AccessFileError: it cannot be read, or is none of ours.
        """
        return self._file.entries()

    def login(self, name: str, *, proven_by: str, face: str, address: str) -> Login | None:
        """The login of a name, with its roles of now; None: there is no such user."""
        user = self._user(name)
        if user is None:
            return None
        roles = self._roles_of(user)
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
                roles = self._roles_of(user)
            elif is_owner or not os.geteuid():
                roles = {EVERYWHERE: ADMIN}
        except (AccessFileError, OSError) as error:
            why = str(error)
        return Login(name=name, proven_by=OPERATING_SYSTEM, face=face, roles=roles, why_none=why)

    def changing(self) -> AbstractContextManager[dict[str, User]]:
        """All users, to be changed; they are written once this ends without an error.

        :raises AccessFileError: they cannot be read or written.
        """
        return self._file.changing()

    def _user(self, name: str) -> User | None:
        try:
            return self.users().get(name)
        except AccessFileError:
            return None  # nobody gets in by a file that cannot be read

    def _roles_of(self, user: User) -> dict[str, Role]:
        return {where: role_named(role, self._roles) for where, role in user.roles.items()}


def _system_user() -> str:
    """By the process's id: variables such as LOGNAME are anybody's to set."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's user has a number alone
        return str(os.geteuid())


def hashed(password: str) -> str:
    """The hash of a new password.

    :raises AccessFileError: it is too short or too long.
    """
    if not PASSWORD_CHARACTERS_MIN <= len(password) <= PASSWORD_CHARACTERS_MAX:
        raise AccessFileError(
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


def _user_of(name: str, told: Any) -> User:
    password, roles = told["password"], told["roles"]
    texts = [name, password, *roles, *roles.values()]
    if not all(isinstance(it, str) for it in texts):
        raise ValueError(f"the user {name[:100]!r} is not one that `partiscope users` wrote")
    return User(name=name, password=password, roles=dict(roles))


def _told(user: User) -> dict[str, Any]:
    return {"password": user.password, "roles": dict(user.roles)}
