"""The login that acts, and its rights.

Each request of the page carries its own (``acting_as``); a command or a terminal has that of its
process (``use_login``). Where no users are declared there is none, and nobody is refused.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Protocol

from control.access.roles import EVERY_OPERATION, EVERYWHERE, Role

PAGE: Final = "page"
TERMINAL: Final = "terminal"
COMMAND_LINE: Final = "command line"
API: Final = "api"
PASSWORD: Final = "password"  # noqa: S105 (a way to prove a name)
PROXY: Final = "proxy"
OPERATING_SYSTEM: Final = "operating system"
TOKEN: Final = "token"  # noqa: S105 (as above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Somebody with a name that was proven."""

    name: str
    proven_by: str = PASSWORD
    face: str = PAGE
    address: str = ""
    """Where the request came from; empty: this machine."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """By cluster; under ``EVERYWHERE`` the role on all others."""
    why_none: str = ""
    """Why the login has no role at all."""

    @property
    def who(self) -> str:
        """For the journal: ``alice (page, 10.0.0.5)``."""
        return f"{self.name} ({', '.join(filter(None, (self.face, self.address)))})"

    def role_on(self, cluster: str) -> Role | None:
        """The role on a cluster; None: there is none."""
        return self.roles.get(cluster) or self.roles.get(EVERYWHERE)

    def why_not(
        self,
        cluster: str,
        operation: str,
        topics: Collection[str] | None = (),
        *,
        is_brake: bool = False,
    ) -> str:
        """Why an operation is refused; empty: it may be done. ``topics`` None: it names none."""
        role = self.role_on(cluster)
        lacks = self._nothing if role is None else role.lacks(operation, topics, is_brake=is_brake)
        return self._refusal(role, cluster, lacks)

    def why_no_records(self, cluster: str, topic: str) -> str:
        """Why records of a topic may not be read; empty: they may."""
        role = self.role_on(cluster)
        lacks = self._nothing if role is None else role.lacks_records(topic)
        return self._refusal(role, cluster, lacks)

    def sees_all_of(self, cluster: str, topic: str) -> bool:
        """Whether masking rules leave records of a topic as they are."""
        role = self.role_on(cluster)
        return role is not None and role.sees_all_of(topic)

    def refusals(self, cluster: str) -> dict[str, str]:
        """By operation of the catalogue that is in no case allowed on a cluster, why."""
        found = {it: self.why_not(cluster, it) for it in sorted(EVERY_OPERATION)}
        return {name: why for name, why in found.items() if why}

    @property
    def _nothing(self) -> str:
        return self.why_none or "no role is given there"

    def _refusal(self, role: Role | None, cluster: str, lacks: str) -> str:
        if not lacks:
            return ""
        has = "no role" if role is None else f"the role {role.name}"
        where = f" on {cluster}" if cluster else ""
        return f"✖ {self.name} has {has}{where}; {lacks}"


class Users(Protocol):
    """The users that are declared."""

    def login(self, name: str, *, proven_by: str, face: str, address: str) -> Login | None:
        """The login of a name, with its roles of now; None: there is no such user."""

    def stamp(self, name: str) -> str:
        """Another one once password or roles of the user change; empty: there is no such user."""

    def verify(self, name: str, password: str) -> bool:
        """Whether it is the user's password. It takes as long where there is no such user."""


class TokenRefusedError(Exception):
    """A token lets nobody in; the text says why."""


class Tokens(Protocol):
    """The tokens of programs that use the API."""

    def login(self, secret: str, *, address: str) -> Login:
        """The login of a token, with its roles of now.

        :raises TokenRefusedError: nobody has such a token, or it has expired.
        """

    def maybe_note_use(self, secret: str) -> None:
        """Write down that a token was used, unless that was done a moment ago."""


NOBODY: Final = Login(name="nobody", why_none="nobody has logged in")
"""Of a page with users, outside a request of anybody."""


def _of_process() -> Login | None:
    return None


_acting: ContextVar[Login | None] = ContextVar("acting", default=None)


def use_login(of_process: Callable[[], Login | None]) -> None:
    """Sets who acts where no request says so; asked each time, since roles change meanwhile."""
    global _of_process
    _of_process = of_process


def acting() -> Login | None:
    """The login that acts now; None: no users are declared, and everything is allowed."""
    return _acting.get() or _of_process()


def acting_name() -> str:
    """Name of who acts now; empty: no users are declared."""
    login = acting()
    return "" if login is None else login.name


def acting_who(otherwise: str) -> str:
    """As the journal names who acts now."""
    login = acting()
    return otherwise if login is None else login.who


def act_as(login: Login) -> None:
    """Until this context ends (a request, a task), it acts."""
    _acting.set(login)


@contextmanager
def acting_as(login: Login) -> Iterator[None]:
    """It acts within."""
    token = _acting.set(login)
    try:
        yield
    finally:
        _acting.reset(token)
