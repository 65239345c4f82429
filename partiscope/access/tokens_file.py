"""The tokens file: who may use the API, as which role, until when. Tokens are kept hashed."""

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from control.access.login import API, TOKEN, Login, TokenRefusedError
from control.access.roles import Role
from control.model.moments import iso_text
from partiscope.access.private_file import AccessFileError, PrivateFile, role_named

PREFIX: Final = "partiscope_"
"""Begins each token, so that scanners for secrets find one that was published."""
USED_EVERY_MS: Final = 60_000
"""The last use is written so often at most."""
TOKENS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token of the file."""

    name: str
    hash: str = field(repr=False)
    """SHA-256 of the token; 256 random bits need no slower one."""
    roles: Mapping[str, str]
    """Names of roles by cluster, ``*`` for all others."""
    made_ms: int
    expires_ms: int
    used_ms: int | None = None
    """None: never."""


def now_ms() -> int:
    """Milliseconds since the epoch by this machine's clock."""
    return time.time_ns() // 1_000_000


def made(name: str, roles: Mapping[str, str], *, lasts_ms: int, at_ms: int) -> tuple[Token, str]:
    """A new token, and the secret that stands for it: shown once, kept by nobody here."""
    secret = PREFIX + secrets.token_urlsafe(32)
    token = Token(
        name=name, hash=hashed(secret), roles=roles, made_ms=at_ms, expires_ms=at_ms + lasts_ms
    )
    return token, secret


def hashed(secret: str) -> str:
    """The hash by which a token is known."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


class TokensFile:
    """Tokens of one file. ``roles`` are those of the settings."""

    def __init__(
        self, path: Path, roles: Mapping[str, Role], *, clock_ms: Callable[[], int] = now_ms
    ) -> None:
        self.path = path
        self._roles = roles
        self._clock_ms = clock_ms
        self._file = PrivateFile(
            path, "tokens", setting="access.tokens_file", decode=_token_of, encode=_told
        )

    def tokens(self) -> Mapping[str, Token]:
        """By name; none where there is no file.

        :raises AccessFileError: it cannot be read, or is none of ours.
        """
        return self._file.entries()

    def changing(self) -> AbstractContextManager[dict[str, Token]]:
        """All tokens, to be changed; they are written once this ends without an error.

        :raises AccessFileError: they cannot be read or written.
        """
        return self._file.changing()

    def login(self, secret: str, *, address: str) -> Login:
        """The login of a token, with its roles of now.

        :raises TokenRefusedError: nobody has such a token, or it has expired.
        """
        token = self._token(secret)
        if token is None:
            raise TokenRefusedError("no such token is known here: it is wrong, or was removed")
        if self._clock_ms() >= token.expires_ms:
            raise TokenRefusedError(
                f"the token {token.name} expired at {iso_text(token.expires_ms)}"
            )
        return Login(
            name=f"token:{token.name}",
            proven_by=TOKEN,
            face=API,
            address=address,
            roles={where: role_named(role, self._roles) for where, role in token.roles.items()},
            why_none="no role is given there",
        )

    def maybe_note_use(self, secret: str) -> None:
        """Write down that a token was used, unless that was done a moment ago."""
        found, at_ms = self._token(secret), self._clock_ms()
        if found is None or at_ms - (found.used_ms or 0) < USED_EVERY_MS:
            return
        with suppress(AccessFileError), self._file.changing() as tokens:
            known = tokens.get(found.name)
            if known is not None and known.hash == found.hash:
                tokens[known.name] = replace(known, used_ms=at_ms)

    def _token(self, secret: str) -> Token | None:
        wanted = hashed(secret)
        try:
            return next((it for it in self.tokens().values() if it.hash == wanted), None)
        except AccessFileError:
            return None  # nobody gets in by a file that cannot be read


def _token_of(name: str, told: Any) -> Token:
    roles = told["roles"]
    texts = [told["hash"], *roles, *roles.values()]
    times = [told["made_ms"], told["expires_ms"], told["used_ms"] or 0]
    if not all(isinstance(it, str) for it in texts) or not all(type(it) is int for it in times):
        raise ValueError(f"the token {name} is not one that `partiscope tokens` wrote")
    return Token(
        name=name,
        hash=told["hash"],
        roles=dict(roles),
        made_ms=told["made_ms"],
        expires_ms=told["expires_ms"],
        used_ms=told["used_ms"],
    )


def _told(token: Token) -> dict[str, Any]:
    return {
        "hash": token.hash,
        "roles": dict(token.roles),
        "made_ms": token.made_ms,
        "expires_ms": token.expires_ms,
        "used_ms": token.used_ms,
    }
