"""How a store is laid out: file names and the manifest, pure.

```
STORE/manifest.json                          the newest version, replaced atomically
STORE/commits/<version>.json                 the version that follows this one, put only if absent
STORE/now/<table>-<version>-<part>.parquet   the newest state, large tables in several parts
STORE/history/<table>-<span>-<version>-<part>.parquet    (``spark_metrics.window.history_points``)
STORE/bad/<version>.jsonl                    records that could not be read, bounded
STORE/*/.partiscope                          proves that a folder is the store's own
STORE/put-if-absent                          in an object store: tried at each start
STORE/set-aside/<time>/...                   files that could not be understood; never deleted
```
A version is a time in milliseconds, raised by one where the clock stands still, so that it
grows even when a store is deleted and begun again. Files are never changed, only replaced by
others: a reader that holds an older manifest goes on reading for ``GRACE_MS``. The files of
"now" have columns beside those that readers see: the job's own state (``spark_metrics.schema``).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar, get_origin

from spark_metrics.window.history_points import SPANS_MS

MANIFEST: Final = "manifest.json"
FORMAT: Final = 3
GRACE_MS: Final = 30_000
"""How long a file that no manifest names any more stays readable."""
COMMITS: Final = "commits"
SET_ASIDE: Final = "set-aside"
_T = TypeVar("_T")


class ManifestError(ValueError):
    """Not a manifest, or of a format that this version does not know."""


class ForeignFormatError(ManifestError):
    """A manifest that another version of the job has written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFile:
    """One file of a history table, with the times it spans (both ends included)."""

    path: str
    span: str
    """How much time one of its points stands for (``SPANS_MS``): fine, minute or hour."""
    level: int
    """How often its rows were merged: 0 as they were first written."""
    rows: int
    from_ms: int
    until_ms: int
    is_rolled: bool = False
    """Whether its points are in a file of the next coarser span, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One version of the store: everything that a reader, or a restarted job, may open."""

    version: int
    written_ms: int
    """The time of writing, by the job's time (``spark_metrics.state.job_clock``)."""
    query_id: str
    """Identity of the checkpoint whose batch this is; batch ids only compare within it."""
    batch_id: int
    interval_ms: int
    """The slowest source's sampling interval: what one point of history stands for."""
    now: Mapping[str, Sequence[str]]
    """The files of each table; those of a table in parts are in the order of its buckets."""
    history: Mapping[str, Sequence[HistoryFile]]
    memory: Mapping[str, Any] = field(default_factory=dict)
    """The job's memory of rounds, registered brokers and offsets (``state.job_state``)."""
    bad_records_total: int = 0
    state_rows: int = 0
    """Replicas and commits that are remembered."""
    clock_skew_ms: int = 0
    """The wall clock of the job's host less the job's time, where it is off."""

    @property
    def is_provisional(self) -> bool:
        """Shown before the first batch (``spark_metrics.job.first_snapshot``), and no batch's."""
        return not self.query_id

    def paths(self) -> set[str]:
        """Every file that this version names."""
        merged = {file.path for files in self.history.values() for file in files}
        return merged | {path for paths in self.now.values() for path in paths}


def encode_manifest(manifest: Manifest) -> bytes:
    """One JSON document."""
    return json.dumps({"format": FORMAT, **asdict(manifest)}, separators=(",", ":")).encode()


def decode_manifest(value: bytes) -> Manifest:
    """Inverse of ``encode_manifest``.

    Raises:
        ForeignFormatError: of another format.
        ManifestError: cut short, not ours, or with a field of a wrong type.
    """
    if not value:
        raise ManifestError("its manifest is empty")
    try:
        document = json.loads(value)
        written = document.pop("format")
        if written != FORMAT:
            raise ForeignFormatError(
                f"it is a store of format {written!r}, and this version knows format {FORMAT} alone"
            )
        document["history"] = {
            table: tuple(_typed(HistoryFile(**file)) for file in files)
            for table, files in document["history"].items()
        }
        return _typed(Manifest(**document))
    except ManifestError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ManifestError(f"its manifest is none: {error}") from error


def _typed(made: _T) -> _T:
    """The same, once each field is of its type.

    Raises:
        TypeError: one is not.
    """
    for name, wanted in _TYPES[type(made)]:
        held = getattr(made, name)
        if type(held) is not wanted:
            raise TypeError(f"{name} is {held!r:.60}")
    if isinstance(made, HistoryFile) and made.span not in SPANS_MS:
        raise TypeError(f"span is {made.span!r:.60}")
    if isinstance(made, Manifest):
        for table, paths in made.now.items():
            if type(paths) is not list or not all(type(path) is str for path in paths):
                raise TypeError(f"the files of {table} are {paths!r:.60}")
    return made


_HELD_AS: Final[Mapping[Any, type]] = {int: int, str: str, bool: bool, Mapping: dict}
_TYPES: Final[Mapping[type, tuple[tuple[str, type], ...]]] = {
    of: tuple((it.name, _HELD_AS[get_origin(it.type) or it.type]) for it in fields(of))
    for of in (Manifest, HistoryFile)
}
"""What JSON makes of each field."""


def next_version(previous: int, now_ms: int) -> int:
    """The time, or one more than the version before where the clock stands still."""
    return max(previous + 1, now_ms)


def successor_path(version: int) -> str:
    """File of the version that follows this one: who puts it first has written it."""
    return f"{COMMITS}/{version}.json"


def newest_successor(paths: Iterable[str]) -> int | None:
    """The version that the newest of these files of successors follows."""
    stems = [PurePosixPath(path).stem for path in paths]
    return max((int(stem) for stem in stems if stem.isdecimal()), default=None)


def now_path(table: str, version: int, part: str) -> str:
    """File of a part of a table of "now"."""
    return f"now/{table}-{version}-{part}.parquet"


def history_path(table: str, span: str, version: int, part: str) -> str:
    """File of a part of a history table."""
    return f"history/{table}-{span}-{version}-{part}.parquet"
