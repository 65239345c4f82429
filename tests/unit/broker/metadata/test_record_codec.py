"""The bytes were read by Kafka 4.4's DumpLogSegments --cluster-metadata-decoder."""

from dataclasses import fields
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.metadata import records
from broker.metadata.record_codec import SCHEMAS, decode_record, encode_record
from broker.metadata.records import MetadataRecord, RecordError, UnknownRecordError

TOPIC_ID = UUID("00000000-0000-0000-0000-0000000000ff")


# One of each type, with what is optional set.
EXAMPLES: tuple[MetadataRecord, ...] = (
    records.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=TOPIC_ID,
        broker_epoch=7,
        endpoints=(records.BrokerEndpoint(name="PLAINTEXT", host="h", port=65_535),),
        features=(
            records.BrokerFeature(
                name="metadata.version", min_supported_version=7, max_supported_version=27
            ),
        ),
        rack="a",
        log_dirs=(TOPIC_ID,),
        cordoned_log_dirs=(TOPIC_ID,),
    ),
    records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1),
    records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, cordoned_log_dirs=()),
    records.TopicRecord(name="t", topic_id=TOPIC_ID),
    records.PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=(1, 2),
        isr=(1,),
        removing_replicas=(2,),
        adding_replicas=(1,),
        leader=1,
        leader_epoch=3,
        partition_epoch=4,
    ),
    records.PartitionChangeRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        isr=(3, 1),
        leader=3,
        replicas=(3, 1, 2),
        removing_replicas=(2,),
        adding_replicas=(3,),
    ),
    records.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1"),
    records.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value=None),
    records.ProducerIdsRecord(broker_id=1, broker_epoch=7, next_producer_id=1_000),
    records.FeatureLevelRecord(name="metadata.version", feature_level=27),
    records.UserScramCredentialRecord(
        name="alice",
        mechanism=1,
        salt=b"salt",
        stored_key=b"stored",
        server_key=b"server",
        iterations=8_192,
    ),
    records.RemoveUserScramCredentialRecord(name="alice", mechanism=2),
    records.AccessControlEntryRecord(
        id=TOPIC_ID,
        resource_type=2,
        resource_name="orders",
        pattern_type=4,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=2,
    ),
    records.RemoveAccessControlEntryRecord(id=TOPIC_ID),
    records.ClientQuotaRecord(
        entity=(
            records.QuotaEntityPart(entity_type="client-id", entity_name=None),
            records.QuotaEntityPart(entity_type="user", entity_name="alice"),
        ),
        key="producer_byte_rate",
        value=1_024.0,
    ),
    records.NoOpRecord(),
    records.RemoveTopicRecord(topic_id=TOPIC_ID),
    records.UnregisterBrokerRecord(broker_id=1, broker_epoch=7),
)


def test_examples_have_every_type() -> None:
    assert {type(record) for record in EXAMPLES} == {schema.record for schema in SCHEMAS}


def test_partition_change_is_written_as_kafka_writes_it() -> None:
    change = records.PartitionChangeRecord(
        partition_id=2, topic_id=TOPIC_ID, isr=(103, 101), leader=103
    )
    assert encode_record(change).hex() == (
        "010500"  # frame, type, version
        "00000002"
        "000000000000000000000000000000ff"
        "02"  # two tagged fields
        "0009" + "03" + "00000067" + "00000065" + "0104" + "00000067"
    )


def test_topic_record_is_written_as_kafka_writes_it() -> None:
    encoded = encode_record(records.TopicRecord(name="t", topic_id=TOPIC_ID))
    assert encoded.hex() == "0102000274000000000000000000000000000000ff00"


def test_registrations_that_earlier_builds_wrote_are_read() -> None:
    registered = records.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=TOPIC_ID,
        broker_epoch=7,
        endpoints=(records.BrokerEndpoint(name="P", host="h", port=1),),
        rack="a",
    )
    written = (
        "01000100000001000000000000000000000000000000ff0000000000000007"
        "0202500268000100000001" + "0261" + "010000"
    )
    assert decode_record(bytes.fromhex(written)) == registered
    change = records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1)
    written = "011101000000010000000000000007010001ff"
    assert decode_record(bytes.fromhex(written)) == change


_IDS = st.tuples(st.integers(0, 2**31 - 1)) | st.lists(st.integers(0, 200)).map(tuple)
_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(0, 127),
    "bool": st.booleans(),
    "str": st.text(max_size=300),
    "str | None": st.none() | st.text(max_size=20),
    "float": st.floats(allow_nan=False),
    "UUID": st.uuids(),
    "bytes": st.binary(max_size=70),
    "tuple[int, ...]": _IDS,
    "tuple[int, ...] | None": st.none() | _IDS,
    "tuple[UUID, ...]": st.lists(st.uuids(), max_size=3).map(tuple),
    "tuple[UUID, ...] | None": st.none() | st.lists(st.uuids(), max_size=3).map(tuple),
    "tuple[BrokerEndpoint, ...]": st.lists(
        st.builds(records.BrokerEndpoint, port=st.integers(0, 65535)), max_size=3
    ).map(tuple),
    "tuple[QuotaEntityPart, ...]": st.lists(st.builds(records.QuotaEntityPart), max_size=3).map(
        tuple
    ),
    "tuple[BrokerFeature, ...]": st.lists(
        st.builds(
            records.BrokerFeature,
            min_supported_version=st.integers(-1, 9),
            max_supported_version=st.integers(-1, 9),
        ),
        max_size=3,
    ).map(tuple),
}


def _any_record() -> st.SearchStrategy[MetadataRecord]:
    def of(record: Any) -> st.SearchStrategy[MetadataRecord]:
        arguments = {}
        for field in fields(record):
            name = field.type if isinstance(field.type, str) else _name(field.type)
            arguments[field.name] = _BY_TYPE[name]
        return st.builds(record, **arguments)

    return st.one_of([of(schema.record) for schema in SCHEMAS])


def _name(type_: Any) -> str:
    return str(getattr(type_, "__name__", type_)) if isinstance(type_, type) else _plain(type_)


def _plain(type_: Any) -> str:
    return str(type_).replace("broker.metadata.records.", "").replace("uuid.", "")


@given(_any_record())
def test_every_record_comes_back(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record


def test_unknown_tag_is_skipped() -> None:
    change = records.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID)
    encoded = encode_record(change)
    assert encoded[-1] == 0
    with_tag = encoded[:-1] + bytes((1, 42, 3)) + b"abc"
    assert decode_record(with_tag) == change


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"\x02\x02\x00", UnknownRecordError),
        (b"\x01\x7f\x00", UnknownRecordError),
        (b"\x01\x02\x09", UnknownRecordError),
        (b"\x01\x02\x00\x05ab", RecordError),
        (b"\x01\x14\x00\x00\x00", RecordError),
        (b"\xff\xff\xff\xff\xff\xff", RecordError),
        (b"", RecordError),
    ],
)
def test_what_is_no_record_is_refused(value: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_record(value)
