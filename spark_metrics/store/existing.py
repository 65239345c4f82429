"""Judges what lies in a store, before a job writes there or while it does.

A manifest that is gone, cut short or of wrong types names nothing that could be trusted: the job
begins afresh, and all files that lie there are set aside (``SET_ASIDE``), never deleted. One that
cannot be read, or that another version of the job has written, is left as it is: the job stops.
"""

from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from pyarrow import fs

from spark_metrics.store.damage import damage
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import (
    COMMITS,
    MANIFEST,
    SET_ASIDE,
    ForeignFormatError,
    Manifest,
    ManifestError,
    decode_manifest,
)
from spark_metrics.window.errors import StoreUnreadableError

FOLDERS: Final = ("now", "history", COMMITS)
"""Folders whose files a manifest names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingStore:
    """The store as a job finds it, and how the job goes on from there."""

    value: bytes | None = None
    """The manifest as it was read."""
    manifest: Manifest | None = None
    """What the job goes on from; None: it begins afresh."""
    set_aside: tuple[str, ...] = ()
    """Files that are not to be deleted, though no manifest that we understand names them."""
    why: str = ""
    """What is wrong with the store; empty: nothing, or there is none yet."""


def look(files: StoreFiles, store: str) -> ExistingStore:
    """Judge the store that a job finds.

    Raises:
        StoreUnreadableError: there is a manifest, but it cannot be read, or is of another format.
    """
    try:
        value = files.read_bytes(MANIFEST)
        found = [path for folder in FOLDERS for path in files.list_files(folder)]
    except OSError as error:
        raise unreadable(store, error) from error
    if value is None:
        why = "its files have no manifest" if found else ""
        return ExistingStore(set_aside=tuple(found), why=why)
    try:
        manifest = decode_manifest(value)
    except ForeignFormatError as error:
        raise unreadable(store, error) from error
    except ManifestError as error:
        return ExistingStore(value=value, set_aside=(*found, MANIFEST), why=str(error))
    return _understood(files, value, manifest, found)


def _understood(
    files: StoreFiles, value: bytes, manifest: Manifest, there: list[str]
) -> ExistingStore:
    newer = _newer_history(manifest, there)
    state = {path for paths in manifest.now.values() for path in paths}
    spoilt = {path: found for path in sorted(state) if (found := damage(files, path))}
    why = []
    if newer:
        why.append("its manifest is older than some of its history")
    if spoilt and not manifest.is_provisional:
        manifest = replace(manifest, query_id="")
        path, reason = next(iter(spoilt.items()))
        why.append(f"{path}: {reason}, so the state is begun afresh; history is kept")
    return ExistingStore(value=value, manifest=manifest, set_aside=newer, why="; ".join(why))


def _newer_history(manifest: Manifest, found: list[str]) -> tuple[str, ...]:
    """Files of history of versions after the manifest's: it was put back from a copy, say.

    One such version is what a batch left that was killed before it was committed.
    """
    named = manifest.paths()
    versions = {path: _version(path) for path in found if path not in named}
    newer = {path: it for path, it in versions.items() if it > manifest.version}
    is_killed_batch = len(set(newer.values())) == 1
    return () if is_killed_batch else tuple(it for it in newer if it.startswith("history/"))


def _version(path: str) -> int:
    """The version in the name of a file; 0 where there is none."""
    words = PurePosixPath(path).stem.rsplit("-", 2)
    return int(words[1]) if len(words) == 3 and words[1].isdecimal() else 0


def set_aside_folders(store: str) -> list[str]:
    """Where files lie that a job could not go on with, and has kept.

    Raises:
        OSError: the store cannot be read.
    """
    files = StoreFiles(store)
    folders = files.list_files(SET_ASIDE, fs.FileType.Directory)
    return [files.absolute(path) for path in folders]


def unreadable(store: str, error: Exception) -> StoreUnreadableError:
    """The error as an operator is told of it."""
    if isinstance(error, ForeignFormatError):
        what_next = (
            "Nothing was changed. Start the version of Partiscope that wrote it, or move this "
            "folder elsewhere, and the metrics job begins a fresh one"
        )
    elif isinstance(error, ManifestError):
        what_next = (
            "The metrics job sets the old files aside when it starts, and begins a fresh store"
        )
    else:
        what_next = "Nothing was changed. Check its disk and its rights"
    return StoreUnreadableError(
        f"the metrics store {store} cannot be read",
        why=str(error).strip() or type(error).__name__,
        what_next=what_next,
    )
