"""Preferences about the look of the terminal, kept over restarts."""

from pathlib import Path
from typing import Final

from control.messages.state_file import read_state, write_state

FILE: Final = "terminal.json"


class Preferences:
    """One small JSON file; one that lacks, cannot be read or is broken means nothing was chosen."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @property
    def theme(self) -> str:
        """Its name; empty: the usual one."""
        theme = read_state(self._file).get("theme")
        return theme if isinstance(theme, str) else ""

    def keep_theme(self, name: str) -> None:
        """From now on.

        Raises:
            OSError: the file cannot be written; the old one stays whole.
        """
        if self._file is not None and self.theme != name:
            write_state(self._file, {**read_state(self._file), "theme": name})
