"""Files that are on the disk when a call returns, and files that only one writer can put."""

import os
from collections.abc import Iterable
from pathlib import Path

from spark_metrics.store.files import StoreFiles, force


def put_if_absent(files: StoreFiles, path: str, value: bytes) -> bool:
    """Put the file, forced to disk, unless there is one; whether it was put.

    On a local disk of two that try only one does it. An object store is asked first, and two that
    ask within the same moment may both go on.
    """
    target = files.absolute(path)
    if not files.is_local:
        if files.read_bytes(path) is not None:
            return False
        files.replace(path, value)
        return True
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


def make_lasting(files: StoreFiles, paths: Iterable[str]) -> None:
    """Force these files to disk, and their names; an object store has done so already."""
    if not files.is_local:
        return
    whole = [files.absolute(path) for path in paths]
    for path in whole:
        force(path)
    for folder in {str(Path(path).parent) for path in whole}:
        force(folder)
