"""The login that comes before all else on a connection of a SASL listener.

States and errors are those of Kafka's SaslServerAuthenticator: ApiVersions and SaslHandshake come
first, then tokens, in SaslAuthenticate or, after a handshake of version 0, as bare frames. Whoever
fails is told so after a while and then loses the connection.
"""

from typing import Final

from broker.config.sasl import PLAIN, SaslConfig
from broker.protocol.request_context import Principal

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
FAILED_DELAY_S: Final = 0.1
"""Kafka's connection.failed.authentication.delay.ms: it slows down who tries passwords."""
TOKEN_BYTES_MAX: Final = 524_288
"""Kafka's sasl.server.max.receive.size, of requests that come before a login."""


class LoginError(Exception):
    """A login that failed; its text is told to the client, as Kafka words it."""


class Login:
    """The state of one connection."""

    def __init__(self, config: SaslConfig) -> None:
        self.config = config
        self.principal: Principal | None = None
        """None until it has logged in."""
        self._mechanism = ""
        self.takes_bare_tokens = False

    def choose(self, mechanism: str, version: int) -> bool:
        """Whether the handshake names a mechanism that is spoken."""
        if mechanism not in self.config.mechanisms:
            return False
        self._mechanism = mechanism
        self.takes_bare_tokens = version == 0
        return True

    def take(self, token: bytes) -> bytes:
        """The answer to a token; `principal` is set where it was the last one.

        :raises LoginError: no handshake before it, or wrong words.
        """
        if self._mechanism != PLAIN:
            raise LoginError("SaslAuthenticate request received before SaslHandshake")
        self.takes_bare_tokens = False
        name = _plain_name(token, self.config)
        self.principal = Principal(type="User", name=name)
        return b""


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
        raise LoginError(
            "Authentication failed: Client requested an authorization id that is "
            "different from username"
        )
    return name


def plain_token(own: tuple[str, str]) -> bytes:
    """The only token of a client."""
    name, password = own
    return f"\0{name}\0{password}".encode()
