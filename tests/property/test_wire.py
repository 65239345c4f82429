"""Whatever bytes come, the wire vocabulary answers with a value or with a ProtocolError."""

import struct
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.index import api_key_map, schema_name_map

from broker.protocol import codec
from broker.protocol.errors import ProtocolError
from broker.protocol.frames import ReceiveBuffer
from broker.protocol.records import (
    NewRecord,
    batch_crc_is_valid,
    build_batch,
    iter_batch_headers,
    iter_records,
    parse_batch_header,
)
from broker.protocol.varint import encode_varint, read_varlong

VERSIONS = [
    (key, version) for key, name in api_key_map.items() for version in schema_name_map[name]
]

content = st.none() | st.binary(max_size=200)
records = st.builds(
    NewRecord,
    key=content,
    value=content,
    timestamp=st.integers(0, 2**42),
    headers=st.lists(st.tuples(st.text(max_size=5), content), max_size=3).map(tuple),
)


@given(st.lists(records, min_size=1, max_size=20), st.integers(0, 4), st.integers(0, 2**62))
def test_batches_round_trip(new: list[NewRecord], compression: int, base_offset: int) -> None:
    batch = build_batch(new, base_offset=base_offset, codec=compression)
    header = parse_batch_header(batch)
    assert batch_crc_is_valid(batch, header)
    got = list(iter_records(batch))
    assert [record.offset for record in got] == [base_offset + i for i in range(len(new))]
    assert [(r.key, r.value, r.timestamp, r.headers) for r in got] == [
        (r.key, r.value, r.timestamp, r.headers) for r in new
    ]


@given(st.lists(records, min_size=1, max_size=5), st.integers(0, 4), st.data())
def test_a_damaged_batch_never_crashes(
    new: list[NewRecord], compression: int, data: st.DataObject
) -> None:
    batch = bytearray(build_batch(new, codec=compression))
    for _ in range(data.draw(st.integers(1, 5))):
        position = data.draw(st.integers(0, len(batch) - 1))
        batch[position] = data.draw(st.integers(0, 255))
    # Counts are read from the header: keep the loop small, as the log's CRC check does.
    struct.pack_into(">i", batch, 57, len(new))
    with suppress(ProtocolError):
        for header, position in iter_batch_headers(batch):
            list(iter_records(bytes(batch[position : position + header.size_bytes])))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    assert read_varlong(encoded, 0) == (value, len(encoded))


@given(st.sampled_from(VERSIONS), st.binary(max_size=300))
@settings(max_examples=500, deadline=None)  # the first of a kind makes kio's classes
def test_random_requests_are_decoded_or_malformed(api: tuple[int, int], body: bytes) -> None:
    frame = struct.pack(">hhih", *api, 1, -1) + body
    try:
        decoded = codec.decode_request(frame)
    except codec.MalformedRequestError:
        return
    assert decoded.api_key == api[0]


@given(st.binary(max_size=100))
@settings(deadline=None)
def test_random_frames_are_decoded_or_refused(frame: bytes) -> None:
    with suppress(ProtocolError):
        codec.decode_request(frame)


@given(st.lists(st.binary(max_size=2000), max_size=20), st.data())
def test_frames_do_not_depend_on_the_pieces(payloads: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)
    growing = ReceiveBuffer()
    got: list[bytes] = []
    position = 0
    while position < len(stream):
        piece = stream[position : position + data.draw(st.integers(1, 3000))]
        position += len(piece)
        while piece:
            tail = growing.writable()
            count = min(len(tail), len(piece))
            tail[:count] = piece[:count]
            piece = piece[count:]
            got += map(bytes, growing.received(count))
            growing.release()
    assert got == payloads
