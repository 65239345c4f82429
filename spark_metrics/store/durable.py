"""Files that are on the disk when a call returns, and files that only one writer can put."""

import errno
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from spark_metrics.store.files import StoreFiles, force
from spark_metrics.window.errors import StoreUnfitError

NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors by which a disk refuses a hard link (FAT, some network disks and containers)."""
PROBE: Final = "put-if-absent"
"""A file that is only there to be put twice."""


def put_if_absent(files: StoreFiles, path: str, value: bytes) -> bool:
    """Put the file, forced to disk, unless there is one; whether it was put.

    Of two that try only one does it: a local disk links it, an object store judges
    ``If-None-Match: *``.
    """
    if not files.is_local:
        return files.put_object(path, value)
    target = files.absolute(path)
    written = f"{target}.new-{os.getpid()}"
    try:
        with files.system.open_output_stream(written) as stream:
            stream.write(value)
        force(written)
        os.link(written, target)
    except FileExistsError:
        return False
    finally:
        Path(written).unlink(missing_ok=True)
    force(str(Path(target).parent))
    return True


def require_put_if_absent(files: StoreFiles) -> None:
    """Try it: some object stores take ``If-None-Match`` and overwrite, some disks know no links.

    Raises:
        StoreUnfitError: two writers could overwrite each other there.
        OSError: it does not answer.
    """
    probe = PROBE
    if files.is_local:
        files.make_folders("")
        probe = f"{PROBE}-{os.getpid()}"
    try:
        put_if_absent(files, probe, uuid.uuid4().bytes)
        is_kept = not put_if_absent(files, probe, uuid.uuid4().bytes)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        raise _unfit(
            files,
            why=f"its disk knows no hard links ({error.strerror})",
            what_next="Take a disk with them (ext4, XFS, APFS), or an object store",
        ) from error
    if files.is_local:
        files.delete(probe)
    if not is_kept:
        raise _unfit(
            files,
            why="a file that was to be put only if absent was overwritten there",
            what_next="Take an object store that honours conditional writes (If-None-Match), or a "
            "folder",
        )


def _unfit(files: StoreFiles, *, why: str, what_next: str) -> StoreUnfitError:
    return StoreUnfitError(
        f"the metrics job cannot keep its store in {files.url}",
        why=why,
        what_next=f"Two jobs could overwrite each other. {what_next}",
    )


def make_lasting(files: StoreFiles, paths: Iterable[str]) -> None:
    """Force these files to disk, and their names; an object store has done so already."""
    if not files.is_local:
        return
    whole = [files.absolute(path) for path in paths]
    for path in whole:
        force(path)
    for folder in {str(Path(path).parent) for path in whole}:
        force(folder)
