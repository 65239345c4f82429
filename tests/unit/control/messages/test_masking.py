"""Records as masking rules leave them: JSON as it was written, binary formats, other bytes."""

import io
import json
from typing import Any, Final

import fastavro
import pytest

from control.access.login import Login, acting_as
from control.access.masking import MASK, FieldPath, MaskingRule
from control.access.roles import ADMIN, EVERYWHERE, Role
from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.record import FetchedRecord, cut_record
from control.kafka.records.schema_registry import Schema, SchemaKind, UnknownSchemaError
from control.messages.decoding.decoder import Decoder
from control.messages.decoding.formats import FORMATS, Format, Formats
from control.messages.masking import RecordMask, masks_by
from tests.unit.control.messages.test_message_filters import record

PAN: Final = "4111222233334444"
CARD: Final = {"type": "record", "name": "Card", "fields": [
    {"name": "number", "type": ["null", "string"]}, {"name": "brand", "type": "string"},
]}  # fmt: skip
ORDER: Final[dict[str, Any]] = {
    "type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "long"}, {"name": "cards", "type": {"type": "array", "items": CARD}},
    ],
}  # fmt: skip


class OneSchema:
    """A registry with the schema of one number, 7."""

    def schema(self, schema_id: int) -> Schema:
        if schema_id != 7:
            raise UnknownSchemaError(f"no schema {schema_id}")
        return Schema(schema_id=7, kind=SchemaKind.AVRO, text=json.dumps(ORDER))


def masked(value: bytes | None, *fields: str, key: bytes | None = None, **headers: bytes) -> Any:
    registry: Any = OneSchema()
    mask = RecordMask(frozenset(map(FieldPath.of, fields)), Decoder("orders", registry=registry))
    return mask(record(value, key, **headers))


def shown(found: FetchedRecord, each: Format = Format.AUTO) -> Any:
    return Decoder("orders", Formats(key=each, value=each)).record(found)


def test_numbers_and_the_rest_stay_as_they_were_written() -> None:
    text = (
        b'{"price": 1.10, "big": 12345678901234567890.5, "card": {"number": "4"}, "n": "\xc3\xbc"}'
    )
    found = masked(text, "value.card.number")
    assert found.value == (
        '{"price":1.10,"big":12345678901234567890.5,"card":{"number":"***"},"n":"ü"}'.encode()
    )
    assert shown(found).value.label == "json"


@pytest.mark.parametrize("each", FORMATS)
def test_no_chosen_format_leads_around_a_rule(each: Format) -> None:
    for before, after in (
        (b'{"card": "', b'"}'), (b"", b""), (b"\0\0\0\0\x08", b""), (b'[1, {"card": "', b'"}'),
        (b"\x81\xa4card\xb0", b""),
    ):  # fmt: skip
        value = before + PAN.encode() + after
        found = masked(value, "value.card", "key", key=PAN.encode())
        told = shown(found, each)
        for secret in (PAN, PAN.encode().hex()):
            assert secret not in repr((found.value, found.key, told))


def test_avro_is_masked_by_field() -> None:
    content = io.BytesIO()
    order = {"id": 1, "cards": [{"number": PAN, "brand": "visa"}, {"number": None, "brand": "x"}]}
    fastavro.schemaless_writer(content, fastavro.parse_schema(ORDER), order)
    found = masked(b"\0\0\0\0\7" + content.getvalue(), "value.cards.number")
    told = shown(found).value
    assert told.document == {
        "id": 1, "cards": [{"number": MASK, "brand": "visa"}, {"number": MASK, "brand": "x"}],
    }  # fmt: skip
    assert told.label == "avro, schema 7, Order"
    assert PAN not in repr(found)


def test_what_is_no_document_is_masked_whole() -> None:
    for value in (b"text", b"\xff\xfe", b'{"card":', b"\0\0\0\0\7\xff", b"", b"NaN", b'"card"'):
        found = masked(value, "value.card")
        assert (found.value, shown(found).value.text) == (MASK.encode(), MASK)


def test_a_name_that_is_there_twice_hides_in_no_other() -> None:
    found = masked(b'{"a": {"card": "%s"}, "a": {}}' % PAN.encode(), "value.a.card")
    assert found.value == b'{"a":{}}'


def test_null_stays_null_and_headers_are_masked_by_name() -> None:
    found = masked(None, "value", "headers.auth", key=b"k", Auth=b"secret", trace=b"9f")
    assert (found.key, found.value) == (b"k", None)
    assert found.headers == (("Auth", MASK.encode()), ("trace", b"9f"))


def test_a_record_that_is_cut_later_shows_its_masked_beginning() -> None:
    value = json.dumps({"card": PAN, "note": "x" * 1_000}).encode()
    found = cut_record(masked(value, "value.card"), 100)
    told = shown(found).value
    assert told.text.startswith('{"card":"***","note":"xx')
    assert (told.is_document, found.value_bytes) == (False, len('{"card":"***","note":""}') + 1_000)


@pytest.fixture
def masks() -> Any:
    rules = [MaskingRule(topics=("cards",), fields=(FieldPath.of("key"),), clusters=("prod",))]
    names = {"a:1": "prod", "b:1": "test"}
    found = masks_by(rules, lambda at: names.get(at, ""))
    return lambda at, topic: found(KafkaSettings(bootstrap=at), topic) is not None


def test_rules_hold_where_they_are_meant_and_at_unknown_addresses(masks: Any) -> None:
    asked = [("a:1", "cards"), ("b:1", "cards"), ("c:1", "cards"), ("a:1", "orders")]
    assert [masks(*each) for each in asked] == [True, False, True, False]


@pytest.mark.parametrize(
    ("role", "is_masked"),
    [
        (ADMIN, True),
        (Role(name="a", may_read_records=True, sees_unmasked=True), False),
        (Role(name="b", may_read_records=True, sees_unmasked=True, topics=("pay-*",)), True),
        (Role(name="c", sees_unmasked=True), True),
    ],
)
def test_only_the_right_to_see_them_lifts_rules(masks: Any, role: Role, is_masked: bool) -> None:
    with acting_as(Login(name="x", roles={EVERYWHERE: role})):
        assert masks("a:1", "cards") is is_masked
    with acting_as(Login(name="x", roles={EVERYWHERE: role, "prod": ADMIN})):
        assert masks("a:1", "cards")
