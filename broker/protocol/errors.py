"""Faults of bytes from the wire.

ProtocolError
├── FrameTooLargeError         a length prefix beyond the bound, or a negative one
├── MalformedRequestError      bytes that are not the message they claim to be
├── UnsupportedVersionError    a readable header naming an API or version outside the schema
└── MalformedRecordsError      a record batch that cannot be opened
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader:
    """The part of a request that every version shares.

    `body_position` is where the body starts in the frame, in bytes.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


class ProtocolError(Exception):
    """Base of everything this package raises about bytes it was given."""


class FrameTooLargeError(ProtocolError):
    """The length prefix of a frame is negative or beyond the configured bound."""

    def __init__(self, size_bytes: int, bytes_max: int) -> None:
        super().__init__(f"a frame of {size_bytes} bytes is outside 0..{bytes_max}")
        self.size_bytes = size_bytes
        self.bytes_max = bytes_max


class MalformedRequestError(ProtocolError):
    """The bytes do not follow the schema."""


class UnsupportedVersionError(ProtocolError):
    """The API key or version is not in the schema."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API key {header.api_key} version {header.api_version} is unknown")
        self.header = header


class MalformedRecordsError(ProtocolError):
    """A record batch whose records cannot be read."""
