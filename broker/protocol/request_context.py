"""The principal, client and listener of a request (Kafka's RequestContext).

A principal travels in an Envelope as Kafka's DefaultPrincipalData, version 0.
"""

import struct
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from broker.protocol.errors import MalformedRequestError
from broker.protocol.hot.cursor import Cursor, encode_string

PLAINTEXT: Final = 0
"""Kafka's number of the security protocol."""
_VERSION: Final = struct.Struct(">h")
_NO_TOKEN_NO_TAGS: Final = b"\x00\x00"


class _PrincipalBytes(Cursor):
    error = MalformedRequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An identity (KafkaPrincipal), like User:alice."""

    type: str
    name: str

    def to_bytes(self) -> bytes:
        """As it travels between our nodes."""
        named = encode_string(self.type, True) + encode_string(self.name, True)
        return _VERSION.pack(0) + named + _NO_TOKEN_NO_TAGS

    @classmethod
    def from_bytes(cls, data: bytes) -> "Principal":
        """Raises MalformedRequestError."""
        cursor = _PrincipalBytes(memoryview(data))
        cursor.i16()  # later versions append fields
        return cls(type=cursor.string(True), name=cursor.string(True))

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(type="User", name="ANONYMOUS")
"""Whoever comes through a listener that asks for no identity."""
ITSELF: Final = Principal(type="Node", name="itself")
"""The node, where it asks for its own sake. Compared by identity: no bytes make another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """The client of a request, and the listener that it came through."""

    principal: Principal = ANONYMOUS
    listener_name: str
    security_protocol: int = PLAINTEXT
    client_id: str | None = None
    client_host: str = ""


def address_bytes(host: str) -> bytes:
    """An IP address as an Envelope has it; nothing for what is no address."""
    try:
        return ip_address(host).packed
    except ValueError:
        return b""


def address_text(packed: bytes) -> str:
    """Raises MalformedRequestError."""
    try:
        return str(ip_address(packed)) if packed else ""
    except ValueError:
        raise MalformedRequestError(f"an address of {len(packed)} bytes") from None
