"""Spark's checkpoint of the query: its identity, whether Spark can go on from it, and its way out.

The layout is Spark's (``StreamExecution``, ``HDFSMetadataLog``): ``metadata`` holds the query's id,
``offsets/N`` says up to where batch N reads, ``commits/N`` that it is done. Each file of the two
logs begins with a line ``v1``; the last line of ``offsets/N`` holds offsets by topic and partition.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyarrow import fs

METADATA: Final = "metadata"
OFFSETS: Final = "offsets"
COMMITS: Final = "commits"


def set_checkpoint_aside(checkpoint: str) -> str:
    """Move the checkpoint out of the way; where it is then.

    Raises:
        OSError: it cannot be moved.
    """
    system, folder = _located(checkpoint)
    aside = f"{folder}.set-aside-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    system.move(folder, aside)
    return aside


def checkpoint_id(checkpoint: str) -> str:
    """Identity of the checkpoint: the id that Spark gave its query when it began."""
    system, folder = _located(checkpoint)
    return _id(_read(system, f"{folder}/{METADATA}"))


def checkpoint_fault(checkpoint: str, topic: str, next_offsets: Mapping[int, int]) -> str:
    """Why the job cannot go on from this checkpoint; empty: it can, or there is none yet.

    ``next_offsets``: of each partition of the topic, what the store has not taken in yet. A
    checkpoint that is further than that would pass over what the store lacks.

    Raises:
        OSError: it cannot be read now.
    """
    system, folder = _located(checkpoint)
    planned, done = (_numbers(system, f"{folder}/{log}") for log in (OFFSETS, COMMITS))
    path = f"{folder}/{METADATA}"
    try:
        if not planned and not done:
            # What a query leaves that never planned a batch is of no use, spoilt or not.
            if system.get_file_info(path).type == fs.FileType.File:
                _id(_read(system, path))
            return ""
        _id(_read(system, path))
        for log, numbers in ((OFFSETS, planned), (COMMITS, done)):
            path = f"{folder}/{log}/{max(numbers, default=0)}"
            if numbers:
                _document(_read(system, path))
        if not done:
            return ""
        path = f"{folder}/{OFFSETS}/{max(done)}"
        reached = _document(_read(system, path))[topic]
        further = {
            int(it): end - next_offsets[int(it)]
            for it, end in reached.items()
            if end > next_offsets.get(int(it), end)
        }
    except FileNotFoundError:
        return f"its file {path} is gone"
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return f"its file {path} is spoilt ({type(error).__name__})"
    if not further:
        return ""
    number, ahead = max(further.items(), key=lambda it: it[1])
    return f"it is {ahead} records of partition {number} further than the store"


def _id(metadata: bytes) -> str:
    return str(json.loads(metadata)["id"])


def _document(value: bytes) -> dict[str, Any]:
    """The last line of a file of Spark's logs.

    Raises:
        ValueError: it is none.
    """
    version, *lines = value.decode().splitlines()
    documents = [json.loads(line) for line in lines]
    if version != "v1" or not documents or not all(isinstance(it, dict) for it in documents):
        raise ValueError(f"version {version!r}")
    last: dict[str, Any] = documents[-1]
    return last


def _numbers(system: Any, folder: str) -> list[int]:
    entries = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return [int(it.base_name) for it in entries if it.base_name.isdecimal()]


def _read(system: Any, path: str) -> bytes:
    with system.open_input_stream(path) as stream:
        return bytes(stream.read())


def _located(checkpoint: str) -> tuple[Any, str]:
    """The file system that it is in, and its folder there."""
    if "://" in checkpoint:
        system, folder = fs.FileSystem.from_uri(checkpoint)
    else:
        system, folder = fs.LocalFileSystem(), str(Path(checkpoint).absolute())
    return system, folder.rstrip("/")
