"""A record as the filters of a search see it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final

from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import Decoder

JUDGED_BYTES_MAX: Final = 1 << 20
"""A larger value is not parsed as JSON: it is counted among the records that cannot be judged."""

Judge = Callable[["Judged"], bool]


class Judged:
    """A record as the filters see it; parsed once, and only when one of them asks."""

    def __init__(self, record: FetchedRecord, decoder: Decoder | None = None) -> None:
        self.record = record
        self._decoder = decoder

    @cached_property
    def parts(self) -> Sequence[bytes]:
        """Key, value, and the headers' names and values."""
        record = self.record
        found = [part for part in (record.key, record.value) if part]
        for name, value in record.headers:
            found.append(name.encode(errors="replace"))
            if value:
                found.append(value)
        return found

    @cached_property
    def key(self) -> Any:
        """The key: a document where it is decoded to one, else its bytes."""
        decoded = None if self._decoder is None else self._decoder.key(self.record)
        is_document = decoded is not None and decoded.is_document
        return decoded.document if decoded is not None and is_document else self.record.key

    @cached_property
    def document(self) -> Any:
        """The value as a document: as it is decoded, else as JSON.

        :raises ValueError: it is none, or too large.
        """
        value = self.record.value
        if value is None:
            return None
        if len(value) > JUDGED_BYTES_MAX:
            raise ValueError(f"a value of more than {JUDGED_BYTES_MAX >> 20} MiB is not parsed")
        if self._decoder is not None:
            decoded = self._decoder.value(self.record)
            if decoded is not None and decoded.is_document:
                return decoded.document
            if decoded is not None and decoded.error:
                raise ValueError(decoded.error)
        try:
            return json.loads(value)
        except RecursionError:
            raise ValueError("JSON that is nested too deeply") from None


def is_text(part: bytes) -> bool:
    """Whether it is UTF-8."""
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True
