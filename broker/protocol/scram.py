"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), without channel binding: both sides.

    client: n,,n=alice,r=NONCE          server: r=NONCE+MORE,s=SALT,i=4096
    client: c=biws,r=NONCE+MORE,p=PROOF  server: v=SIGNATURE

Messages are read as Kafka's ScramMessages reads them, names and passwords are UTF-8 as they are
(no SASLprep). Nonces come from the caller.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""Kafka's bounds of what a password is hashed with."""
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS: Final = r"(?:,[A-Za-z]+=[\x01-\x2b\x2d-\x7f]+)*"
_BASE64: Final = r"[A-Za-z0-9/+]*={0,2}"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<acts_as>{_NAME}))?,)"
    rf"(?P<bare>(?:m=[\x01-\x2b\x2d-\x7f]+,)?n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_SERVER_FIRST: Final = re.compile(
    rf"(?:m=[\x01-\x2b\x2d-\x7f]+,)?r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),"
    rf"i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_SERVER_FINAL: Final = re.compile(
    rf"(?:e=(?P<error>[^,]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}"
)
_NO_CHANNEL: Final = "n,,"


class ScramError(Exception):
    """A message that is none, or a proof that is wrong."""


class ScramMechanism(IntEnum):
    """Kafka's numbers of the mechanisms."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def label(self) -> str:
        """The name in properties and handshakes."""
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def hash_name(self) -> str:
        """The name that hashlib knows."""
        return self.name.replace("_", "").lower()


BY_LABEL: Final[Mapping[str, ScramMechanism]] = {it.label: it for it in ScramMechanism}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """The facts about a password by which a server checks it."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def of(
        cls, mechanism: ScramMechanism, salted: bytes, *, salt: bytes, iterations: int
    ) -> "ScramCredential":
        """The credential of a salted password."""
        client_key = _hmac(mechanism, salted, b"Client Key")
        return cls(
            salt=salt,
            stored_key=hashlib.new(mechanism.hash_name, client_key).digest(),
            server_key=_hmac(mechanism, salted, b"Server Key"),
            iterations=iterations,
        )


def salted_password(
    mechanism: ScramMechanism, password: str, *, salt: bytes, iterations: int
) -> bytes:
    """The password hashed as often as told: some milliseconds of work."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFirst:
    """The first message of a client."""

    name: str
    acts_as: str
    header: str
    bare: str
    nonce: str
    is_with_token: bool
    """Whether it shows a delegation token instead of a password."""

    @classmethod
    def parse(cls, token: bytes) -> "ClientFirst":
        """:raises ScramError: it is none."""
        found = _match(_CLIENT_FIRST, token)
        return cls(
            name=_decoded_name(found["name"]),
            acts_as=_decoded_name(found["acts_as"] or ""),
            header=found["header"],
            bare=found["bare"],
            nonce=found["nonce"],
            is_with_token="tokenauth=true" in found["extensions"].split(","),
        )


class ScramExchange:
    """The server's side behind the first message of a client."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        first: ClientFirst,
        credential: ScramCredential,
        more_nonce: str,
    ) -> None:
        self._mechanism = mechanism
        self._first = first
        self._credential = credential
        self._nonce = first.nonce + more_nonce
        salt = _base64(credential.salt)
        self.challenge = f"r={self._nonce},s={salt},i={credential.iterations}".encode()
        """What the client is sent."""

    def finish(self, token: bytes) -> bytes:
        """The last message to a client whose proof is right.

        :raises ScramError: it is wrong, or of another exchange.
        """
        found = _match(_CLIENT_FINAL, token)
        if found["nonce"] != self._nonce:
            raise ScramError("the nonce is that of another exchange")
        if found["channel"] != _base64(self._first.header.encode()):
            raise ScramError("the channel binding differs from the one that was announced")
        name = self._mechanism
        text = f"{self._first.bare},{self.challenge.decode()},{found['bare']}".encode()
        proof = _bytes(found["proof"])
        signature = _hmac(name, self._credential.stored_key, text)
        client_key = _xor(proof, signature) if len(proof) == len(signature) else b""
        stored_key = hashlib.new(name.hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, self._credential.stored_key):
            raise ScramError("the proof is wrong")
        return b"v=" + _base64(_hmac(name, self._credential.server_key, text)).encode()


class ScramClient:
    """The client's side: `first`, then `answer`, then `check`."""

    def __init__(self, mechanism: ScramMechanism, name: str, password: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """The message that begins."""
        return f"{_NO_CHANNEL}{self._bare}".encode()

    def answer(self, challenge: bytes) -> bytes:
        """The proof that the password is known; it takes some milliseconds.

        :raises ScramError: no challenge, one of another exchange, or of too little or much work.
        """
        found = _match(_SERVER_FIRST, challenge)
        iterations = int(found["iterations"])
        if not found["nonce"].startswith(self._nonce):
            raise ScramError("the nonce is that of another exchange")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise ScramError(f"{iterations} iterations are asked for")
        salt, name = _bytes(found["salt"]), self._mechanism
        salted = salted_password(name, self._password, salt=salt, iterations=iterations)
        own = ScramCredential.of(name, salted, salt=salt, iterations=iterations)
        bare = f"c={_base64(_NO_CHANNEL.encode())},r={found['nonce']}"
        text = f"{self._bare},{challenge.decode()},{bare}".encode()
        self._signature = _hmac(name, own.server_key, text)
        client_key = _hmac(name, salted, b"Client Key")
        proof = _xor(client_key, _hmac(name, own.stored_key, text))
        return f"{bare},p={_base64(proof)}".encode()

    def check(self, token: bytes) -> None:
        """:raises ScramError: the server does not know the password itself."""
        found = _match(_SERVER_FINAL, token)
        signature = _bytes(found["signature"] or "")
        if found["error"] or not hmac.compare_digest(signature, self._signature):
            raise ScramError("the server does not prove that it knows the user")


def _match(pattern: re.Pattern[str], token: bytes) -> re.Match[str]:
    try:
        found = pattern.fullmatch(token.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise ScramError("that is no message of SCRAM")
    return found


def _decoded_name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")


def _hmac(mechanism: ScramMechanism, key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, mechanism.hash_name)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ScramError("that is no Base64") from error
