"""One declaration per metric family, and how its lines are written.

Lines are made column by column: prometheus-client works sample by sample, and takes two seconds of
CPU for 200,000 of them (docs/decisions/0022-prometheus.md). Both text formats share the
lines and differ in the heads of families only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.views.printable import printable
from control.views.tables import arrow

LABELS_BYTES_MAX: Final = 1_024
"""Rows whose labels together are longer have no series: a group's name may have 32 KiB."""
LINE_BYTES: Final = 32
"""What a line has beside name and labels, at most: its number, blank and line break."""
CLUSTER: Final = "cluster"
"""Label of every family that is about one cluster."""


class Format(StrEnum):
    """Text formats that Prometheus reads."""

    PLAIN = "text/plain"
    OPENMETRICS = "application/openmetrics-text"


class Kind(StrEnum):
    """Types of families."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"


_SUFFIXES: Final = {Kind.COUNTER: "_total", Kind.INFO: "_info"}
"""OpenMetrics leaves them out of a family's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric: its name as queries have it, and where its value comes from."""

    name: str
    help: str
    value: Callable[[pa.Table], Any]
    """A value per row of its group's table; null: no series."""
    kind: Kind = Kind.GAUGE
    known_from: str = ""
    """The exporter whose name it bears; empty: it is ours."""

    def head(self, format: Format) -> bytes:  # noqa: A002
        """``# HELP`` and ``# TYPE``."""
        name, kind = self.name, str(self.kind)
        if format is Format.OPENMETRICS:
            name = name.removesuffix(_SUFFIXES.get(self.kind, ""))
        elif self.kind is Kind.INFO:
            kind = str(Kind.GAUGE)
        return f"# HELP {name} {self.help}\n# TYPE {name} {kind}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesGroup:
    """Families with a series per row of one table. ``Source`` is ``control.exposition.source``."""

    of: str
    """What a row is, as ``partiscope_left_out_series`` names it."""
    rows: Callable[[Any], pa.Table]
    """The table of a ``ClusterSource``."""
    families: tuple[Family, ...]
    labels: Mapping[str, str]
    """Names of labels, and the columns that they are taken from."""
    is_of_cluster: bool = True

    @property
    def label_names(self) -> tuple[str, ...]:
        """All labels, that of the cluster first."""
        return (CLUSTER, *self.labels) if self.is_of_cluster else tuple(self.labels)


def column(name: str) -> Callable[[pa.Table], Any]:
    """The value of a family that is a column as it stands."""
    return lambda table: table[name]


def scaled(name: str, by: float) -> Callable[[pa.Table], Any]:
    """A column in another unit."""
    return lambda table: pc.multiply(pc.cast(table[name], pa.float64(), safe=False), by)


def seconds(name: str) -> Callable[[pa.Table], Any]:
    """A column of milliseconds in seconds."""
    return scaled(name, 0.001)


def always_one(table: pa.Table) -> Any:
    """The value of families whose labels are the news."""
    return pa.array(np.ones(table.num_rows, np.int64))


def label_texts(table: pa.Table, labels: Mapping[str, str], cluster: str | None) -> pa.Array:
    """``{cluster="prod",topic="orders"}`` of each row; null where it is too long."""
    if cluster is None:
        return pa.array([""] * table.num_rows, pa.string())
    first = pa.array([f"{{{CLUSTER}={quoted(cluster)}"] * table.num_rows, pa.string())
    parts: list[Any] = [first]
    for label, name in labels.items():
        parts += [f",{label}=", _quoted_column(table[name])]
    texts = _flat(pc.binary_join_element_wise(*parts, "}", ""))
    is_short = pc.less_equal(pc.binary_length(texts), LABELS_BYTES_MAX)
    return pc.if_else(is_short, texts, None)


def quoted(text: str | None) -> str:
    r"""A label's value. What a terminal obeys is written as an escape; two names stay two.

    >>> quoted('a"b')
    '"a\\"b"'
    """
    safe = printable(text or "").replace("\\", r"\\").replace('"', r"\"")
    return f'"{safe}"'


def _quoted_column(values: Any) -> pa.Array:
    """Names repeat: each is quoted once."""
    if pa.types.is_integer(values.type):
        return pc.binary_join_element_wise('"', pc.cast(values, pa.string()), '"', "")
    flat = _flat(pc.cast(values, pa.string())).dictionary_encode(null_encoding="encode")
    names = pa.array([quoted(it) for it in flat.dictionary.to_pylist()], pa.string())
    return names.take(flat.indices)


def lines(family: Family, labels: pa.Array, table: pa.Table) -> bytes:
    """The family's series, a line each; rows without a value have none."""
    numbers = _numbers(family.value(table))
    texts = pc.binary_join_element_wise(f"{family.name}", labels, " ", numbers, "\n", "")
    told = _flat(texts).drop_null()
    if not len(told):
        return b""
    first, last = told.offset, told.offset + len(told)
    offsets = np.frombuffer(told.buffers()[1], np.int32)
    return memoryview(told.buffers()[2])[offsets[first] : offsets[last]].tobytes()


def bytes_needed(family: Family, labels: pa.Array) -> int:
    """At most so many bytes its lines take."""
    each = len(family.name) + LINE_BYTES
    return int(pc.sum(pc.binary_length(labels)).as_py() or 0) + each * len(labels)


def _numbers(values: Any) -> pa.Array:
    """Values as both formats write them; what is not a number is not known."""
    found = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    found = _flat(found)
    if pa.types.is_boolean(found.type):
        found = pc.cast(found, pa.int8())
    if not pa.types.is_floating(found.type):
        return pc.cast(found, pa.string())
    known = arrow.nullable(found.to_numpy(zero_copy_only=False))
    texts = pc.cast(known, pa.string())
    return pc.if_else(pc.is_inf(known), pc.if_else(pc.greater(known, 0), "+Inf", "-Inf"), texts)


def _flat(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
