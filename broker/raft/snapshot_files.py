"""Snapshots of the metadata log: Kafka's `<end offset>-<epoch>.checkpoint` files (KIP-630).

A file holds record batches: a header control record, the records, a footer control record. It
is written under another name and renamed when it is durable, so one without footer is damaged.
A snapshot saves a starting node the replay of everything before it; the log before the older of
the two that are kept is deleted, and voters that lack it fetch the newest one.

The header tells the snapshot's own end and epoch, in a tagged field that Kafka passes over. An
older snapshot under the name of a newer one would bring back deleted topics, and lose those made
since.
"""

import asyncio
import logging
import os
import re
import struct
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.log.disk.durable import force_file, remove_if_there, rename_durably
from broker.protocol.errors import ProtocolError
from broker.protocol.records import (
    NewRecord,
    batch_crc_is_valid,
    build_batch,
    iter_batch_headers,
    iter_records,
)
from broker.raft.snapshot_id import SnapshotId, SnapshotPart
from broker.raft.timers import sleep_ms

PART_SUFFIX: Final = ".part"
HEADER_TYPE: Final = 3
FOOTER_TYPE: Final = 4
BATCH_RECORDS_MAX: Final = 500
KEPT_MAX: Final = 2
_OWN_ID_AT: Final = 10
_OWN_ID: Final = b"\x01\x90\x4e\x0c"
"""One tagged field: its tag is 10000, its size 12 bytes."""
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint\Z")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot that was read: the values of its records."""

    id: SnapshotId
    values: tuple[bytes, ...]


class SnapshotFiles:
    """The snapshots in the directory of the metadata log; the newest two are kept."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._written: Path | None = None

    def ids(self) -> list[SnapshotId]:
        """All snapshots, oldest first."""
        matches = (_NAME.match(path.name) for path in self._directory.iterdir())
        return sorted(
            SnapshotId(end_offset=int(match[1]), epoch=int(match[2])) for match in matches if match
        )

    def read_latest(self, *, offset_max: int) -> Snapshot | None:
        """The newest whole snapshot that does not end behind `offset_max`."""
        for id_ in reversed(self.ids()):
            if id_.end_offset > offset_max:
                continue
            reason: object = "it is damaged, or another one under this name"
            try:
                if (values := _read(self._directory / id_.file_name, id_)) is not None:
                    return Snapshot(id=id_, values=values)
            except OSError as error:
                reason = error
            log.warning("an older snapshot than %s, or the log, is read: %s", id_.file_name, reason)
        return None

    async def write(self, id_: SnapshotId, values: Iterable[bytes], *, now_ms: int) -> None:
        """Write a snapshot a batch at a time, letting others run in between; drop old ones."""
        part = self._written = self._part(id_)
        try:
            with part.open("wb") as file:
                async for batch in _batches(id_, values, now_ms):
                    file.write(batch)
            await asyncio.to_thread(self._name_durably, id_)
        except OSError:
            remove_if_there(str(part))
            raise
        finally:
            self._written = None
        self.keep_only(self.ids()[-KEPT_MAX:])

    def read_part(self, id_: SnapshotId, position: int, *, bytes_max: int) -> SnapshotPart | None:
        """Bytes of a snapshot; None when there is no such file (any more)."""
        try:
            with (self._directory / id_.file_name).open("rb") as file:
                size_bytes = os.fstat(file.fileno()).st_size
                data = os.pread(file.fileno(), bytes_max, position) if position >= 0 else b""
        except FileNotFoundError:
            return None
        return SnapshotPart(size_bytes=size_bytes, data=data)

    def write_part(self, id_: SnapshotId, position: int, data: bytes) -> None:
        """Bytes of another node's snapshot, in their place; position 0 begins the file anew, and
        takes the place of other snapshots that were fetched in part."""
        if not position:
            self.drop_parts()
        with self._part(id_).open("r+b" if position else "wb") as file:
            file.seek(position)
            file.write(data)

    def adopt(self, id_: SnapshotId) -> None:
        """Give a fetched snapshot its name, durably; remove it if it is damaged. For a thread."""
        part = self._part(id_)
        if _is_whole(memoryview(part.read_bytes()), id_):
            self._name_durably(id_)
        else:
            part.unlink(missing_ok=True)

    def drop_parts(self) -> None:
        """Remove what nobody will finish: the one that is being written stays."""
        for part in self._directory.glob(f"*.checkpoint{PART_SUFFIX}"):
            if part != self._written:
                remove_if_there(str(part))

    def keep_only(self, ids: Collection[SnapshotId]) -> None:
        """Remove all others."""
        for each in self.ids():
            if each not in ids:
                (self._directory / each.file_name).unlink(missing_ok=True)

    def _name_durably(self, id_: SnapshotId) -> None:
        """Give a written snapshot its name, once its bytes are on the disk."""
        force_file(str(self._part(id_)))
        rename_durably(str(self._part(id_)), str(self._directory / id_.file_name))

    def _part(self, id_: SnapshotId) -> Path:
        return self._directory / (id_.file_name + PART_SUFFIX)


async def _batches(id_: SnapshotId, values: Iterable[bytes], now_ms: int) -> AsyncIterator[bytes]:
    offset = 0

    def build(records: Sequence[NewRecord], *, is_control: bool) -> bytes:
        nonlocal offset
        batch = build_batch(
            records, base_offset=offset, leader_epoch=id_.epoch, is_control=is_control
        )
        offset += len(records)
        return batch

    # SnapshotHeaderRecord v0: version int16, last contained log timestamp int64, tags.
    header = struct.pack(">hq", 0, now_ms) + _tagged(id_)
    yield build([_control(HEADER_TYPE, header, now_ms)], is_control=True)
    for chunk in _chunks(values):
        yield build([NewRecord(value=value, timestamp=now_ms) for value in chunk], is_control=False)
        await sleep_ms(0)
    # SnapshotFooterRecord v0: version int16, no tags.
    yield build([_control(FOOTER_TYPE, struct.pack(">hb", 0, 0), now_ms)], is_control=True)


def _tagged(id_: SnapshotId) -> bytes:
    return _OWN_ID + struct.pack(">qi", id_.end_offset, id_.epoch)


def _control(type_: int, value: bytes, now_ms: int) -> NewRecord:
    return NewRecord(key=struct.pack(">hh", 0, type_), value=value, timestamp=now_ms)


def _chunks(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    for value in values:
        chunk.append(value)
        if len(chunk) == BATCH_RECORDS_MAX:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _read(path: Path, id_: SnapshotId) -> tuple[bytes, ...] | None:
    """The values, or None when the file is damaged, has no footer, or is another snapshot."""
    view = memoryview(path.read_bytes())
    if not _is_whole(view, id_):
        return None
    batches = (
        view[position : position + header.size_bytes]
        for header, position in iter_batch_headers(view)
        if not header.is_control
    )
    return tuple(record.value or b"" for batch in batches for record in iter_records(batch))


def _is_whole(view: memoryview, id_: SnapshotId) -> bool:
    """Whether every batch is sound, the first one is not another snapshot's header, and the last
    one is the footer; records are not looked at."""
    first: memoryview | bytes = b""
    last: memoryview | bytes = b""
    try:
        for header, position in iter_batch_headers(view):
            batch = view[position : position + header.size_bytes]
            if not batch_crc_is_valid(batch, header):
                return False
            last = batch if header.is_control else b""
            first = first or batch
        headers = [record.value or b"" for record in iter_records(first)] if first else []
        keys = [record.key for record in iter_records(last)] if last else []
    except ProtocolError:
        return False
    own = headers[0][_OWN_ID_AT:] if headers else b""
    if own.startswith(_OWN_ID) and own != _tagged(id_):
        return False
    return keys[-1:] == [struct.pack(">hh", 0, FOOTER_TYPE)]
