"""Preferences about the look of the terminal, kept over restarts."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

FILE: Final = "terminal.json"
BYTES_MAX: Final = 65_536


def state_file() -> Path | None:
    """In the user's state directory (``XDG_STATE_HOME``, else ``~/.local/state``); None: there is
    no home."""
    given = os.environ.get("XDG_STATE_HOME", "")
    try:
        root = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return root / "partiscope" / FILE


class Preferences:
    """One small JSON file; one that lacks, cannot be read or is broken means nothing was chosen."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @property
    def theme(self) -> str:
        """Its name; empty: the usual one."""
        theme = self._read().get("theme")
        return theme if isinstance(theme, str) else ""

    def keep_theme(self, name: str) -> None:
        """From now on.

        Raises:
            OSError: the file cannot be written; the old one stays whole.
        """
        if self._file is None or self.theme == name:
            return
        words = json.dumps({**self._read(), "theme": name})
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self._file.parent, delete=False) as beside:
            beside.write(words)
        os.replace(beside.name, self._file)

    def _read(self) -> dict[str, Any]:
        if self._file is None:
            return {}
        try:
            with self._file.open("rb") as opened:
                found = json.loads(opened.read(BYTES_MAX))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}
