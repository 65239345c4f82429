"""A small JSON file in the user's state directory, for choices that outlive a process."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

BYTES_MAX: Final = 1 << 20


def state_file(name: str) -> Path | None:
    """In the user's state directory (``XDG_STATE_HOME``, else ``~/.local/state``); None: there is
    no home."""
    given = os.environ.get("XDG_STATE_HOME", "")
    try:
        root = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return root / "partiscope" / name


def read_state(file: Path | None) -> dict[str, Any]:
    """Its content; one that lacks, cannot be read or is broken holds nothing."""
    if file is None:
        return {}
    try:
        with file.open("rb") as opened:
            found = json.loads(opened.read(BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_state(file: Path, state: dict[str, Any]) -> None:
    """Replace what it holds.

    :raises OSError: the file cannot be written; the old one stays whole.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as beside:
        beside.write(json.dumps(state))
    os.replace(beside.name, file)
