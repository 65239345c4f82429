"""Bearer tokens on the connections of aiokafka; imported where there is a token to send.

Screens know how a cluster is reached without loading a Kafka client.
"""

from collections.abc import Awaitable, Callable

import aiokafka.conn
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import OAuthAuthenticator


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives aiokafka a bearer token for each connection."""

    def __init__(self, token: Callable[[], Awaitable[str]]) -> None:
        self._token = token

    async def token(self) -> str:
        """A valid one, for each connection."""
        return await self._token()


class CheckedOAuthAuthenticator(OAuthAuthenticator):  # type: ignore[misc]
    """aiokafka's, which takes a server's refusal for its consent.

    A refused token is answered by a JSON of the reason; the client says ``\\x01`` and only then
    learns the error (RFC 7628, section 3.2.3).
    """

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """The token; after it nothing, or what makes the server tell its error."""
        if self._token_sent and payload:
            return b"\x01", True
        answer: tuple[bytes, bool] | None = await super().step(payload)
        return answer


def provider_of(token: Callable[[], Awaitable[str]]) -> TokenProvider:
    """For aiokafka's classes; from now on all its connections notice that a token is refused."""
    aiokafka.conn.OAuthAuthenticator = CheckedOAuthAuthenticator
    return TokenProvider(token)
