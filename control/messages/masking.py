"""Masks records as they are read, so that no face, filter or file ever has what is masked.

A key or value is read by the format that its bytes show, whichever a person has chosen. Where a
rule names a field of it and it is no document, all of it is masked.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from control.access.login import acting
from control.access.masking import (
    HEADERS,
    KEY,
    MASK,
    VALUE,
    FieldPath,
    MaskingRule,
    fields_of,
    masked_document,
)
from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.record import FetchedRecord, Mask, MaskedPart
from control.messages.decoding.decoder import Decoder, decoder_of
from control.messages.decoding.formats import Decoded, Format, json_decoded
from control.messages.decoding.json_text import as_written_decoder, compact_json

_MASK: Final = MASK.encode()
_WHOLE: Final = MaskedPart(format=Format.STRING, is_document=False)
_JSON: Final = as_written_decoder()
OWN_PREFIX: Final = "__partiscope_"
"""Topics of the bus, which Partiscope itself reads."""


def masks_by(
    rules: Sequence[MaskingRule], name_of: Callable[[str], str]
) -> Callable[[KafkaSettings, str], Mask | None]:
    """The masks that rules make; ``name_of`` tells the name of the cluster at an address, empty
    where it has none."""

    def mask_of(settings: KafkaSettings, topic: str) -> Mask | None:
        cluster = name_of(settings.bootstrap)
        fields = fields_of(rules, cluster, topic)
        if not fields or topic.startswith(OWN_PREFIX):
            return None
        login = acting()
        if login is not None and login.sees_all_of(cluster, topic):
            return None
        return RecordMask(fields, decoder_of(settings, topic))

    return mask_of


class RecordMask:
    """Masks fields in the records of one topic."""

    def __init__(self, fields: Collection[FieldPath], decoder: Decoder) -> None:
        self._decoder = decoder
        self._headers = tuple(it for it in fields if it.part == HEADERS)
        self._by_part = {part: [it for it in fields if it.part == part] for part in (KEY, VALUE)}

    def __call__(self, record: FetchedRecord) -> FetchedRecord:
        """The record without them, its null key and value still null. In a thread: it may ask a
        registry."""
        key, key_part = self._masked(KEY, record.key, record)
        value, value_part = self._masked(VALUE, record.value, record)
        parts = {KEY: key_part, VALUE: value_part}
        return replace(
            record,
            key=key,
            value=value,
            headers=tuple((name, self._header(name, it)) for name, it in record.headers),
            masked={name: part for name, part in parts.items() if part is not None},
        )

    def _header(self, name: str, value: bytes | None) -> bytes | None:
        is_masked = value is not None and any(it.is_of_header(name) for it in self._headers)
        return _MASK if is_masked else value

    def _masked(
        self, name: str, data: bytes | None, record: FetchedRecord
    ) -> tuple[bytes | None, MaskedPart | None]:
        fields = self._by_part[name]
        if data is None or not fields:
            return data, None
        if all(field.names for field in fields):
            decoded = self._decoder.key(record) if name == KEY else self._decoder.value(record)
            if decoded is not None and decoded.is_document:
                return _masked_document(decoded, fields)
        return _MASK, _WHOLE


def _masked_document(decoded: Decoded, fields: Collection[FieldPath]) -> tuple[bytes, MaskedPart]:
    try:
        text = compact_json(masked_document(_JSON.decode(decoded.text), fields))
        data = text.encode(errors="backslashreplace")
        json_decoded(data.decode())
    except (ValueError, RecursionError):
        return _MASK, _WHOLE
    return data, MaskedPart(
        format=decoded.format,
        is_document=True,
        schema_id=decoded.schema_id,
        type_name=decoded.type_name,
    )
