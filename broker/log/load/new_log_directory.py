"""Directories of logs that are about to be created, made ahead by a thread."""

import os
from collections.abc import Collection
from uuid import UUID

from broker.log.checkpoint.checkpoint_format import encode_partition_metadata, write_file
from broker.log.errors import storage_error
from broker.log.names import LOG_SUFFIX, PARTITION_METADATA_FILE, segment_path


def prepare_directory(directory: str, topic_id: UUID) -> None:
    """Makes the files of an empty log; an older directory stays as it is.

    :raises StorageError: the disk refused.
    """
    if os.path.isdir(directory):
        return
    try:
        os.makedirs(directory)
        content = encode_partition_metadata(topic_id)
        write_file(f"{directory}/{PARTITION_METADATA_FILE}", content, is_forced=False)
        with open(_segment_of(directory), "xb"):
            pass
    except OSError as error:
        raise storage_error(f"Creating {directory} failed", error) from error


def discard_directory(directory: str) -> None:
    """Nobody wants what was prepared any more; one that was written to stays as it is.

    :raises StorageError: the disk refused.
    """
    try:
        if os.path.isdir(directory) and is_untouched(directory, os.listdir(directory)):
            os.unlink(f"{directory}/{PARTITION_METADATA_FILE}")
            os.unlink(_segment_of(directory))
            os.rmdir(directory)
    except OSError as error:
        raise storage_error(f"Deleting {directory} failed", error) from error


def is_untouched(directory: str, names: Collection[str]) -> bool:
    """Whether a directory with these files is as it was prepared.

    :raises OSError: it cannot be read.
    """
    segment = _segment_of(directory)
    is_bare = set(names) == {PARTITION_METADATA_FILE, os.path.basename(segment)}
    return is_bare and os.path.getsize(segment) == 0


def _segment_of(directory: str) -> str:
    return segment_path(directory, 0, LOG_SUFFIX)
