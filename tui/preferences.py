"""Preferences about the look of the terminal, and that its tour has begun: kept over restarts."""

from pathlib import Path
from typing import Final

from control.messages.state_file import read_state, write_state

FILE: Final = "terminal.json"


class Preferences:
    """One small JSON file; one that lacks, cannot be read or is broken means nothing was chosen."""

    def __init__(self, file: Path | None, *, tour_mark: Path | None = None) -> None:
        """``tour_mark``: the file that is there once the tour has begun by itself."""
        self._file, self._tour_mark = file, tour_mark

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

    def claim_tour(self) -> bool:
        """Whether this is the installation's first terminal, which begins the tour by itself; not
        where that cannot be written down, or it would begin with every start."""
        try:
            if self._tour_mark is not None:
                self._tour_mark.open("x").close()
        except OSError:
            return False
        return self._tour_mark is not None
