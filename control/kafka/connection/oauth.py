"""Bearer tokens for SASL OAUTHBEARER: from a file, or by OAuth's client-credentials grant.

Both give a coroutine for `KafkaSettings.sasl_token`. Tokens are never logged.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from broker.named_file import NamedFileError, read_first_line

TOKEN_TIMEOUT_S: Final = 10.0
TOKEN_BYTES_MAX: Final = 1 << 20
RENEW_BEFORE_S: Final = 30.0
LIFETIME_S_DEFAULT: Final = 300.0

Token = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """RFC 6749, section 4.4: our own id and secret for a token at `url`."""

    url: str
    client_id: str
    client_secret: str
    scope: str | None = None


def token_of_file(path: Path) -> Token:
    """Read the token anew for each connection, as a mounted secret is renewed in place."""

    async def token() -> str:
        try:
            line = await asyncio.to_thread(read_first_line, path, "oauth_token_file")
        except NamedFileError as error:
            raise ConnectionError(str(error)) from error
        return line.strip()

    return token


def token_of_credentials(credentials: ClientCredentials) -> Token:
    """Ask the token's issuer, and keep the answer until shortly before it expires.

    :raises ValueError: the address is not HTTP(S).
    """
    if urlsplit(credentials.url).scheme not in ("http", "https"):
        raise ValueError(f"oauth_token_url {credentials.url!r} is not an http(s) address")
    kept = ("", 0.0)

    async def token() -> str:
        nonlocal kept
        if time.monotonic() >= kept[1]:
            kept = await asyncio.to_thread(_ask, credentials)
        return kept[0]

    return token


def _ask(credentials: ClientCredentials) -> tuple[str, float]:
    """The token and the monotonic time until which it may be used."""
    from urllib.error import URLError  # every command would load HTTP and its parsers
    from urllib.request import Request, urlopen

    form = {
        "grant_type": "client_credentials",
        "client_id": credentials.client_id,
        "client_secret": credentials.client_secret,
    }
    if credentials.scope:
        form["scope"] = credentials.scope
    request = Request(  # noqa: S310 (the scheme was checked)
        credentials.url, data=urlencode(form).encode()
    )
    try:
        with urlopen(request, timeout=TOKEN_TIMEOUT_S) as answer:  # noqa: S310
            document: dict[str, Any] = json.loads(answer.read(TOKEN_BYTES_MAX))
        lifetime_s = float(document.get("expires_in", LIFETIME_S_DEFAULT))
        return str(document["access_token"]), time.monotonic() + lifetime_s - RENEW_BEFORE_S
    except URLError as error:
        raise ConnectionError(f"no token from {credentials.url}: {error.reason}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConnectionError(f"{credentials.url} did not answer with a token") from error
