"""The login that comes before all else on a connection of a SASL listener.

States and errors are those of Kafka's SaslServerAuthenticator: ApiVersions and SaslHandshake come
first, then tokens, in SaslAuthenticate or, after a handshake of version 0, as bare frames. Whoever
fails is told so after a while and then loses the connection.
"""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable
from hashlib import sha512
from secrets import token_urlsafe
from typing import Final

from broker.config.sasl import PLAIN, OwnLogin, SaslConfig
from broker.metadata.metadata_service import MetadataService
from broker.protocol.request_context import Principal
from broker.protocol.scram import (
    BY_LABEL,
    ITERATIONS_MIN,
    ClientFirst,
    ScramClient,
    ScramCredential,
    ScramError,
    ScramExchange,
    ScramMechanism,
)

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
FAILED_DELAY_S: Final = 0.1
"""Kafka's connection.failed.authentication.delay.ms: it slows down who tries passwords."""
TOKEN_BYTES_MAX: Final = 524_288
"""Kafka's sasl.server.max.receive.size, of requests that come before a login."""
NONCE_BYTES: Final = 24
_ACTS_AS_ANOTHER: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)

log = logging.getLogger(__name__)


class LoginError(Exception):
    """A login that failed; its text is told to the client, as Kafka words it."""


class ScramUsers:
    """Credentials of users; a stranger gets one that no password fits, and always the same, so that
    nobody learns who is known."""

    def __init__(self, metadata: MetadataService) -> None:
        self._metadata = metadata
        self._seen: object = None
        self._seed = b""

    def credential(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """The user's own, or one that fits nobody."""
        known = self._metadata.image.scram.get((mechanism, name))
        return known or self._of_nobody(mechanism, name)

    def _of_nobody(self, mechanism: ScramMechanism, name: str) -> ScramCredential:
        """Salt and iterations look like a user's. What they are made from is a secret that all
        nodes share: the keys of all users."""
        users = self._metadata.image.scram
        if users is not self._seen:
            self._seen = users
            keys = b"".join(sorted(it.server_key for it in users.values()))
            self._seed = sha512(keys).digest()
        noise = hmac.digest(self._seed, f"{mechanism.label} {name}".encode(), "sha512")
        others = [it for (kind, _), it in sorted(users.items()) if kind is mechanism]
        like = others[int.from_bytes(noise[:4]) % len(others)] if others else None
        letters = sorted(set(like.salt)) if like and like.salt else range(256)
        size = min(len(like.salt), len(noise)) if like else 26
        return ScramCredential(
            salt=bytes(letters[it % len(letters)] for it in noise[:size]),
            stored_key=hmac.digest(self._seed, noise, mechanism.hash_name),
            server_key=noise,
            iterations=like.iterations if like else ITERATIONS_MIN,
        )


class Login:
    """The state of one connection."""

    def __init__(self, config: SaslConfig, scram: ScramUsers) -> None:
        self.config = config
        self.principal: Principal | None = None
        """None until it has logged in."""
        self._scram = scram
        self._mechanism = ""
        self._exchange: tuple[ScramExchange, str] | None = None
        """With the name of the user, behind the first message of SCRAM."""
        self.takes_bare_tokens = False

    def choose(self, mechanism: str, version: int) -> bool:
        """Whether the handshake names a mechanism that is spoken."""
        if mechanism not in self.config.mechanisms:
            return False
        self._mechanism = mechanism
        self._exchange = None
        self.takes_bare_tokens = version == 0
        return True

    def take(self, token: bytes) -> bytes:
        """The answer to a token; `principal` is set where it was the last one.

        :raises LoginError: no handshake before it, or wrong words.
        """
        if not self._mechanism:
            raise LoginError("SaslAuthenticate request received before SaslHandshake")
        if self._mechanism == PLAIN:
            self._end(_plain_name(token, self.config))
            return b""
        try:
            return self._take_scram(BY_LABEL[self._mechanism], token)
        except ScramError as error:
            log.info("a login by %s failed: %s", self._mechanism, error)
            raise LoginError(
                "Authentication failed during authentication due to invalid credentials with SASL "
                f"mechanism {self._mechanism}"
            ) from error

    def _take_scram(self, mechanism: ScramMechanism, token: bytes) -> bytes:
        if self._exchange is not None:
            exchange, name = self._exchange
            answer = exchange.finish(token)
            self._end(name)
            return answer
        first = ClientFirst.parse(token)
        if first.is_with_token:
            raise ScramError("there are no delegation tokens")
        if first.acts_as not in ("", first.name):
            raise LoginError(_ACTS_AS_ANOTHER)
        credential = self._scram.credential(mechanism, first.name)
        exchange = ScramExchange(mechanism, first, credential, token_urlsafe(NONCE_BYTES))
        self._exchange = exchange, first.name
        return exchange.challenge

    def _end(self, name: str) -> None:
        self.takes_bare_tokens = False
        self.principal = Principal(type="User", name=name)


def _plain_name(token: bytes, config: SaslConfig) -> str:
    """The user whose name and password it holds (RFC 4616)."""
    try:
        acts_as, name, password = token.decode().split("\0")
    except ValueError:
        raise LoginError("Invalid SASL/PLAIN response: expected 3 tokens") from None
    if not name or not password:
        lacking = "username" if not name else "password"
        raise LoginError(f"Authentication failed: {lacking} not specified")
    if not config.is_right(name, password):
        raise LoginError("Authentication failed: Invalid username or password")
    if acts_as not in ("", name):
        raise LoginError(_ACTS_AS_ANOTHER)
    return name


async def tokens(own: OwnLogin, send: Callable[[bytes], Awaitable[bytes]]) -> None:
    """Log in as a client; `send` gives the answer to a token.

    :raises ScramError: a server that does not know the password itself, or asks for the wrong work.
    """
    if own.mechanism == PLAIN:
        await send(f"\0{own.name}\0{own.password}".encode())
        return
    nonce = token_urlsafe(NONCE_BYTES)
    client = ScramClient(BY_LABEL[own.mechanism], own.name, own.password, nonce)
    challenge = await send(client.first())
    client.check(await send(await asyncio.to_thread(client.answer, challenge)))
