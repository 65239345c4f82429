"""Answers with thousands of entries: threads code them."""

from typing import Any, Final

from broker.protocol import codec

LARGE_ENTRIES: Final = 500
"""An answer with more entries is built and encoded in a thread: some 4 µs for each."""


class LargeAnswer:
    """The fields of a response that is built where it is encoded; `entries` is how many it has."""

    __slots__ = ("entries", "fields")

    def __init__(self, entries: int, /, **fields: Any) -> None:
        self.entries = entries
        self.fields = fields

    def build(self, api_key: int, version: int) -> Any:
        """The response as kio's entity."""
        return codec.build_response(api_key, version, **self.fields)

    @property
    def is_large(self) -> bool:
        """Whether building it would hold the loop."""
        return self.entries > LARGE_ENTRIES
