"""Judges what lies in a store, before a job writes there or while it does.

Versions lie in two places: the manifest, and the successors in ``commits/``. Either may come from a
copy that is older than the other, or be spoilt. The newest whole version is what the job goes on
from, wherever it lies. Where no version is left that could be trusted, the job begins afresh. What
no surviving version of the same job names is set aside then (``SET_ASIDE``), never deleted. A
manifest that cannot be read, or that another version of the job has written, is left as it is: the
job stops.
"""

from collections.abc import Mapping, Sequence, Set
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
    newest_successor,
)
from spark_metrics.window.errors import StoreAwayError, StoreUnreadableError

FOLDERS: Final = ("now", "history", COMMITS)
"""Folders whose files a manifest names."""
HISTORY: Final = "history/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingStore:
    """The store as a job finds it, and how the job goes on from there."""

    value: bytes | None = None
    """The manifest as it was read."""
    manifest: Manifest | None = None
    """What the job goes on from; None: it begins afresh."""
    encoded: bytes | None = None
    """The version that the job goes on from, as it was read."""
    set_aside: tuple[str, ...] = ()
    """Files that are not to be deleted, though the job does not go on with them."""
    why: str = ""
    """What is wrong with the store; empty: nothing, or there is none yet."""


@dataclass(frozen=True, slots=True)
class _Version:
    """A version that can be read, wherever it lies."""

    manifest: Manifest
    encoded: bytes
    follows: int | None
    """The version before it; the manifest does not tell."""

    def is_whole(self, there: Set[str]) -> bool:
        """Whether all of its history is there; the state of now can be begun afresh."""
        return {path for path in self.manifest.paths() if path.startswith(HISTORY)} <= there


def look(files: StoreFiles, store: str, own_versions: Set[int] = frozenset()) -> ExistingStore:
    """Judge the store that a job finds; files of ``own_versions`` are what its own batches left
    that failed.

    Raises:
        StoreUnreadableError: there is a manifest, but it cannot be read, or is of another format.
    """
    try:
        value = files.read_bytes(MANIFEST)
        places = files.list_files(COMMITS)
        encoded = {MANIFEST: value, **{path: files.read_bytes(path) for path in places}}
        # After the versions: whatever another job has just put names files that are there by now.
        paths = [path for folder in FOLDERS for path in files.list_files(folder)]
    except OSError as error:
        raise unreadable(store, error) from error
    versions, spoilt = list[_Version](), dict[str, str]()
    for place, each in encoded.items():
        try:
            if each is not None:
                follows = None if place == MANIFEST else newest_successor([place])
                versions.append(_Version(decode_manifest(each), each, follows))
        except ForeignFormatError as error:
            raise unreadable(store, error) from error
        except ManifestError as error:
            spoilt[place] = str(error)
    if versions:
        return _gone_on_from(files, value, versions, paths, own_versions)
    if value is None:
        why = "its files have no manifest" if paths else ""
        return ExistingStore(set_aside=tuple(paths), why=why)
    return ExistingStore(value=value, set_aside=(*paths, MANIFEST), why=spoilt[MANIFEST])


def _gone_on_from(
    files: StoreFiles,
    value: bytes | None,
    versions: Sequence[_Version],
    found: list[str],
    own_versions: Set[int],
) -> ExistingStore:
    there = frozenset(found)
    chosen = max(
        versions, key=lambda it: (it.is_whole(there), it.manifest.version, it.follows is None)
    )
    manifest, why = chosen.manifest, list[str]()
    before = {it.manifest.version: it.follows for it in versions if it.follows is not None}
    pointed_at = {it.manifest.version for it in versions if it.encoded == value}
    # A job that was killed before it replaced the manifest leaves that of the version before.
    if not pointed_at & {manifest.version, before.get(manifest.version)}:
        why.append(f"it goes on from version {manifest.version}, the newest whole one")
    line = _line_of(manifest, versions, before)
    aside = _lost_history([it.manifest for it in versions], manifest, line, found, own_versions)
    if aside:
        why.append("some of its history is named by no version that it can go on from")
    state = {path for paths in manifest.now.values() for path in paths}
    spoilt = {path: words for path in sorted(state) if (words := damage(files, path))}
    if spoilt and not manifest.is_provisional:
        manifest = replace(manifest, query_id="")
        path, reason = next(iter(spoilt.items()))
        why.append(f"{path}: {reason}, so the state is begun afresh; history is kept")
    return ExistingStore(
        value=value,
        manifest=manifest,
        encoded=chosen.encoded,
        set_aside=(*_left_versions(manifest, found), *aside),
        why="; ".join(why),
    )


def _left_versions(chosen: Manifest, found: Sequence[str]) -> list[str]:
    """Successors of the chosen version: they are not whole, and another one is to follow it."""
    commits = [path for path in found if path.startswith(f"{COMMITS}/")]
    return [path for path in commits if (newest_successor([path]) or 0) >= chosen.version]


def _lost_history(
    versions: Sequence[Manifest],
    chosen: Manifest,
    line: Set[int],
    found: Sequence[str],
    own_versions: Set[int],
) -> tuple[str, ...]:
    """Files of history that the job does not go on with, and that no merge of its own replaced.

    One version that nothing names is what a batch left that was killed before it was committed.
    """
    named = chosen.paths()
    unnamed = [path for path in found if path.startswith(HISTORY) and path not in named]
    others = {path for it in versions if it.version not in line for path in it.paths()}
    newer = {path: at for path in unnamed if (at := _version(path)) > chosen.version}
    unknown = {at for path, at in newer.items() if path not in others and at not in own_versions}
    lost = unknown if len(unknown) > 1 else set[int]()
    return tuple(it for it in unnamed if it in others or newer.get(it) in lost)


def _line_of(chosen: Manifest, versions: Sequence[_Version], before: Mapping[int, int]) -> set[int]:
    """The version and those that led to it: what they name alone was merged."""
    line = {
        it.manifest.version
        for it in versions
        if it.manifest.query_id == chosen.query_id and it.manifest.version <= chosen.version
    }
    at: int | None = chosen.version
    while at is not None:
        line.add(at)
        at = before.get(at)
    return line


def _version(path: str) -> int:
    """The version in the name of a file; 0 where there is none."""
    parts = PurePosixPath(path).stem.rsplit("-", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else 0


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


def away(store: str, folder: str, files: int) -> StoreAwayError:
    """A folder of the store is not there, or another one stands in its place."""
    return StoreAwayError(
        f"the folder {folder}/ of the metrics store {store} is away",
        why=f"a version names {files} of its files, and none is there",
        what_next="Nothing was changed. Mount or move it back, and the metrics job goes on. If it "
        "is lost, move the whole store elsewhere, and the job begins a fresh one",
    )
