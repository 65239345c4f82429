"""Files that are on the disk when a call returns, and files that only one writer can put."""

import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from spark_metrics.store.files import StoreFiles, force
from spark_metrics.window.errors import StoreUnfitError

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
    """Try whether an object store judges ``If-None-Match``; some take it and overwrite.

    Raises:
        StoreUnfitError: it does not.
        OSError: it does not answer.
    """
    if files.is_local:
        return
    put_if_absent(files, PROBE, uuid.uuid4().bytes)
    if put_if_absent(files, PROBE, uuid.uuid4().bytes):
        raise StoreUnfitError(
            f"the metrics job cannot keep its store in {files.url}",
            why="a file that was to be put only if absent was overwritten there",
            what_next="Two jobs could overwrite each other. Take an object store that honours "
            "conditional writes (If-None-Match), or a folder",
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
