"""Whatever bytes a log holds: reading ends, nothing else than gaps is told, good batches are shown.

A log of good batches of every format is damaged at random; the broker's index still knows where
each batch lies, as it does when a disk or a faulty client has spoilt what is in it.
"""

import asyncio
import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol.errors import ProtocolError
from broker.protocol.message_formats import crc_is_valid, iter_batches, open_batch
from broker.protocol.records import NewRecord, build_batch, compute_crc
from control.kafka.records.browsing import Browsed
from control.kafka.records.reader import Start, StartKind
from control.kafka.records.record import FetchedRecord
from control.model.ids import TopicPartition
from tests.support.cases import case
from tests.support.memory_log import MemoryCluster, MemoryLog, Stored
from tests.support.patience import WAIT_S

GOLDEN = Path(__file__).parents[1] / "golden" / "message_sets.txt"
OLD = [bytes.fromhex(line.split()[2]) for line in GOLDEN.read_text().splitlines()[1:]]
KEY = TopicPartition("orders", 0)


def moved(data: bytes, offset: int) -> tuple[bytes, int]:
    """A message set of three from another offset on, and its last offset."""
    out = bytearray(data)
    for header, start in iter_batches(data):
        struct.pack_into(">q", out, start, header.base_offset - 1_000 + offset)
    return bytes(out), offset + 2


def batch_at(draw: random.Random, offset: int) -> Stored:
    if draw.random() < 0.3:
        data, last = moved(draw.choice(OLD[4:8]), offset)
        return Stored(first=offset, last=last, data=data)
    count = draw.randint(1, 5)
    records = [
        NewRecord(key=b"k%d" % n, value=b"value" * n, timestamp=n, headers=(("h", b"1"),))
        for n in range(count)
    ]
    data = build_batch(records, base_offset=offset, codec=draw.randint(0, 4))
    return Stored(first=offset, last=offset + count - 1, data=data)


def damaged(draw: random.Random, batch: Stored) -> Stored:
    data = bytearray(batch.data)
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    if draw.random() < 0.3:  # its length and place
        struct.pack_into(">qi", data, 0, draw.randint(-5, 1 << 40), draw.randint(-1, 1 << 31 - 1))
    if draw.random() < 0.5 and len(data) > 61 and data[16] == 2:
        struct.pack_into(">I", data, 17, compute_crc(bytes(data)))
    if draw.random() < 0.2:
        del data[draw.randrange(len(data)) :]
    return Stored(first=batch.first, last=batch.last, data=bytes(data))


def log_of(draw: random.Random) -> tuple[MemoryLog, set[int]]:
    """A log, and the offsets whose records must be shown."""
    log, good = MemoryLog(), set[int]()
    offset, was_spoilt = 0, False
    for _ in range(draw.randint(1, 12)):
        offset += draw.choice((0, 0, 0, 3))
        batch = batch_at(draw, offset)
        is_spoilt = draw.random() < 0.3
        kept = damaged(draw, batch) if is_spoilt else batch
        log.append(kept.data, first=kept.first, last=kept.last)
        # A spoilt length hides what follows it in one fetch; later fetches may leap over it.
        if not is_spoilt and not was_spoilt:
            good |= set(range(batch.first, batch.last + 1))
        was_spoilt, offset = is_spoilt, batch.last + 1
    return log, good


@pytest.mark.parametrize(
    "seeds", [range(50), pytest.param(range(50, 150), marks=pytest.mark.soak)], ids=str
)
async def test_reading_a_damaged_log_ends_and_shows_what_is_good(
    seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.records.browsing.SILENT_S", 0.01)
    for seed in seeds:
        with case(seed):
            await _read_damaged(seed)


async def _read_damaged(seed: int) -> None:
    draw = random.Random(seed)
    log, good = log_of(draw)
    for start in (
        Start(kind=StartKind.EARLIEST),
        Start(kind=StartKind.LAST, value=1_000),
        Start(kind=StartKind.LAST, value=3),
    ):
        cluster = MemoryCluster({KEY: log})
        found: Browsed = await asyncio.wait_for(
            cluster.reader().browse([KEY], start, limit=1_000), WAIT_S
        )
        shown = {record.offset for record in found.records}
        if start.value != 3:
            gaps = [(gap.first_offset, gap.last_offset) for gap in found.skipped.gaps]
            lost = {o for o in good - shown if not any(a <= o <= b for a, b in gaps)}
            assert not lost
            assert found.skipped.unread == []
        assert all(isinstance(record, FetchedRecord) for record in found.records)
        assert all(gap.first_offset <= gap.last_offset for gap in found.skipped.gaps)


@given(st.binary(max_size=400), st.integers(-1, 3))
@settings(max_examples=300)
def test_random_bytes_are_records_or_malformed(body: bytes, magic: int) -> None:
    size = len(body) + 5
    entry = struct.pack(">qiIb", 7, size, 0, magic) + body
    with suppress(ProtocolError):
        for header, start in iter_batches(entry):
            batch = entry[start : start + header.size_bytes]
            crc_is_valid(batch, header)
            _, records = open_batch(batch, header)
            for _, _record in zip(range(10_000), records, strict=False):
                pass
