"""Removes the files of a store that no version names any more, after a grace."""

from collections.abc import Callable, Set
from typing import Final

from spark_metrics.store.existing import FOLDERS
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import COMMITS, GRACE_MS, newest_successor, successor_path

SWEEP_MS: Final = 10_000


class Sweep:
    """Remembers since when each file is unnamed, by a clock that nobody sets."""

    def __init__(
        self,
        files: StoreFiles,
        *,
        steady_ms: Callable[[], int],
        on_notice: Callable[[str], None],
    ) -> None:
        self._files = files
        self._steady_ms = steady_ms
        self._on_notice = on_notice
        self._unnamed_since_ms: dict[str, int] = {}
        self._swept_ms: int | None = None

    def maybe_sweep(self, kept: Set[str]) -> None:
        """Delete what was not among the kept files for ``GRACE_MS``; looks each ``SWEEP_MS``."""
        now_ms = self._steady_ms()
        if self._swept_ms is not None and now_ms - self._swept_ms < SWEEP_MS:
            return
        self._swept_ms = now_ms
        try:
            self._sweep(kept, now_ms)
        except OSError as error:
            self._on_notice(f"old files of the store could not be removed, tried again: {error}")

    def _sweep(self, kept: Set[str], now_ms: int) -> None:
        paths = [path for folder in FOLDERS for path in self._files.list_files(folder)]
        # The newest one tells a writer that was paused for however long that it was overtaken.
        newest = newest_successor(path for path in paths if path.startswith(f"{COMMITS}/"))
        kept = kept | (set() if newest is None else {successor_path(newest)})
        since_ms = self._unnamed_since_ms
        unnamed = {path: since_ms.get(path, now_ms) for path in paths if path not in kept}
        self._unnamed_since_ms = dict(unnamed)
        for path in [path for path, at_ms in unnamed.items() if now_ms - at_ms >= GRACE_MS]:
            self._files.delete(path)
            del self._unnamed_since_ms[path]
