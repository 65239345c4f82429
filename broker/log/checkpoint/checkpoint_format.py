"""The small text files of a data directory, in Kafka's formats.

Checkpoints: line 1 the version 0, line 2 the number of entries, then one entry per line
(`topic partition offset`, or `epoch startOffset`). Each is written to a .tmp file and takes the
old one's place in one step.
Source: org.apache.kafka.storage.internals.checkpoint (Kafka 4.x).
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from broker.log.disk.durable import replace_file
from broker.log.errors import StorageError, storage_error
from broker.log.names import decode_uuid, encode_uuid, is_number

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
CLEANER_OFFSET_FILE: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
META_PROPERTIES_FILE: Final = "meta.properties"
_VERSION: Final = 0

TopicPartition = tuple[str, int]


def encode_checkpoint(entries: Iterable[Sequence[object]]) -> bytes:
    """The text of a checkpoint."""
    lines = [" ".join(str(field) for field in entry) for entry in entries]
    return "\n".join([str(_VERSION), str(len(lines)), *lines, ""]).encode()


def decode_checkpoint(path: str, content: bytes, fields: int) -> list[list[str]]:
    """The entries of a checkpoint, `fields` words each.

    :raises StorageError: it is not one.
    """
    lines = content.decode(errors="replace").splitlines()
    entries = [line.split() for line in lines[2:] if line]
    if (
        lines[:2] != [str(_VERSION), str(len(entries))]
        or any(len(entry) != fields for entry in entries)
        or any(not _is_number(word) for entry in entries for word in entry[fields - 2 :])
    ):
        raise StorageError(
            f"{path} is not a checkpoint of version {_VERSION}",
            "its lines do not have the form that Kafka writes",
            "Remove the file: what it says is found again from the segments",
        )
    return entries


def _is_number(word: str) -> bool:
    return is_number(word.removeprefix("-"))


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """Offset of each partition; none when there is no file yet, or an empty one as Kafka makes.

    :raises StorageError: the file is not a checkpoint or cannot be read.
    """
    content = read_file(path)
    if not content:
        return {}
    return {
        (topic, int(partition)): int(offset)
        for topic, partition, offset in decode_checkpoint(path, content, 3)
    }


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """A checkpoint of offsets."""
    return encode_checkpoint((*key, offset) for key, offset in offsets.items())


def read_file(path: str) -> bytes | None:
    """A small file, or None when it does not exist.

    :raises StorageError: the disk refused.
    """
    try:
        # Thousands of these are read at start: without Python's file objects, three calls each.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(f"Reading {path} failed", error) from error


def write_file(path: str, content: bytes, *, is_forced: bool) -> None:
    """Replace a small file in one step (`durable.replace_file`).

    :raises StorageError: the disk refused; the old one still stands.
    """
    try:
        replace_file(path, content, is_forced=is_forced)
    except OSError as error:
        raise storage_error(f"Writing {path} failed", error) from error


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """Exactly what PartitionMetadata.encode writes."""
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()


def decode_partition_metadata(path: str, content: bytes) -> UUID:
    """The topic's id.

    :raises StorageError: the file does not have that form.
    """
    lines = (line.partition(":") for line in content.decode(errors="replace").splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    try:
        return decode_uuid(fields["topic_id"])
    except (KeyError, ValueError):
        raise StorageError(
            f"{path} does not name a topic id",
            f"it says {content[:80]!r}",
            "Compare with the same file on another replica of this partition",
        ) from None


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Java properties, sorted as Kafka's PropertiesUtils writes them."""
    return "".join(f"{name}={properties[name]}\n" for name in sorted(properties)).encode()


def decode_properties(content: bytes) -> dict[str, str]:
    """Java properties of simple names and values; comments are skipped."""
    lines = (line.strip() for line in content.decode(errors="replace").splitlines())
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {name.strip(): value.strip() for name, _, value in pairs}


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """Content of the clean shutdown file (CleanShutdownFileHandler): by the epoch a controller
    tells restarts apart."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(content: bytes) -> int:
    """The broker epoch, -1 when the file does not say."""
    try:
        epoch = json.loads(content)["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return -1
    return epoch if isinstance(epoch, int) else -1
