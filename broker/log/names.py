"""How Kafka names what lies in a data directory.

`<topic>-<partition>/` holds `%020d.log|.index|.timeindex|.txnindex|.snapshot`, named by base
offset, `leader-epoch-checkpoint` and `partition.metadata`. A deleted partition waits as
`<topic>-<partition>.<uuid>-delete`, a deleted file with the suffix `.deleted`. What compaction
writes is `.cleaned` until it is whole, and `.swap` while it takes its segments' place.
"""

import base64
from typing import Final
from uuid import UUID, uuid4

from broker.log.errors import ForbiddenLogError
from broker.metadata.topic_names import METADATA_TOPIC, problem_of_topic_name

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
CUT_MARK: Final = ".cut-"
"""`<base offset>.log.cut-<position>` holds the bytes that recovery cut off from there on; see
`load.loader.CUT_KEPT_MS`."""
DELETE_DIRECTORY_SUFFIX: Final = "-delete"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE: Final = "partition.metadata"
METADATA_TOPIC_ID: Final = UUID(int=1)
"""Kafka's Uuid.METADATA_TOPIC_ID."""
_OFFSET_DIGITS: Final = 20
_NAME_LENGTH_MAX: Final = 255


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """The path of a segment's file; names are 20 digits so that they sort."""
    return f"{directory}/{base_offset:020d}{suffix}"


def base_offset_of(name: str, suffix: str) -> int | None:
    """The offset in a file's name, or None when it is not a segment's file of this kind."""
    stem = name.removesuffix(suffix)
    is_ours = name.endswith(suffix) and len(stem) == _OFFSET_DIGITS and is_number(stem)
    return int(stem) if is_ours else None


def partition_directory_name(topic: str, partition: int) -> str:
    """`orders-3`."""
    return f"{topic}-{partition}"


def is_number(text: str) -> bool:
    """Whether it is digits alone, none of them a `²` or of another script."""
    return text.isascii() and text.isdigit()


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """Topic and partition of a directory's name, or None when it is not a partition's."""
    topic, dash, partition = name.rpartition("-")
    if not (topic and dash and is_number(partition)):
        return None
    return topic, int(partition)


def check_topic_partition(topic: str, partition: int) -> None:
    """Keeps the metadata log, and all outside the data directory, out of the reach of records.

    :raises ForbiddenLogError: a topic has no log of that name.
    """
    problem = problem_of_topic_name(topic)
    if topic == METADATA_TOPIC:
        problem = "it is the metadata log of this node"
    elif partition < 0:
        problem = "partitions are numbered from 0"
    if problem:
        raise ForbiddenLogError(f"{topic!r}-{partition} is no log of a topic: {problem}")


def deleted_directory_name(topic: str, partition: int) -> str:
    """`orders-3.<uuid>-delete`, the topic cut so that the name stays a file name."""
    tail = f"-{partition}.{uuid4().hex}{DELETE_DIRECTORY_SUFFIX}"
    return topic[: _NAME_LENGTH_MAX - len(tail)] + tail


def encode_uuid(uuid: UUID) -> str:
    """Kafka's text form of an id: 22 characters of URL-safe base 64."""
    return base64.urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()


def decode_uuid(text: str) -> UUID:
    """The id of Kafka's text form.

    :raises ValueError: it is not 16 bytes in base 64.
    """
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def new_directory_id() -> UUID:
    """A random id whose text does not start with a dash (Kafka avoids these as arguments)."""
    while encode_uuid(uuid := uuid4()).startswith("-"):
        pass
    return uuid
