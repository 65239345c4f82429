"""Bodies of sample records as Arrow columns, pure; what they mean is ``decode.record_rows``'s.

A body is columns already (``broker.metrics.columns``): those of all records together are read by
Arrow's own reader and laid end to end. What it cannot read goes through Python row by row: rare,
and as tolerant as can be. Columns that are packed are read by ``decode.packed_columns``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from broker.metrics.columns import LISTS, NESTED, NUMBERS, TEXTS, from_columns
from spark_metrics.decode.checks import (
    RECORD_ITEMS_MAX,
    RECORD_ROWS_MAX,
    UNREADABLE,
    holds_too_much,
    json_object,
    text,
)
from spark_metrics.decode.packed_columns import read_packed
from spark_metrics.schema import TEXT

BLOCK_BYTES_MIN: Final = 1 << 20
_LIST: Final = {**dict.fromkeys(LISTS, pa.int32()), **dict.fromkeys(NESTED, pa.int64())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The rows of one kind in one record, as its head announces them."""

    number: int
    """The record's number in its batch."""
    round_ms: int
    is_packed: bool
    text: bytes | memoryview
    """One line of JSON; where columns are packed their bytes follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of several records, and which record each is of (a place in the list of bodies)."""

    table: pa.Table
    place: Any
    """NumPy array, one entry per row."""
    unreadable: tuple[int, ...] = ()
    """Places of records without a row that could be read."""


@lru_cache
def raw_schema(kind: str) -> pa.Schema:
    """Columns of ``read_bodies``: everything that a row of this kind may tell."""
    lists = {name: pa.list_(of) for name, of in _LIST.items()} if kind == "replicas" else {}
    return pa.schema(
        {
            **dict.fromkeys(TEXTS[kind], TEXT),
            **dict.fromkeys(NUMBERS[kind], pa.int64()),
            **lists,
        }
    )


@lru_cache
def _body_schema(kind: str) -> pa.Schema:
    fields: dict[str, Any] = {}
    for name, dictionary in TEXTS[kind].items():
        fields |= {dictionary: pa.list_(pa.string()), name: pa.list_(pa.int64())}
    if kind == "replicas":
        fields["lists"] = pa.list_(pa.list_(pa.int32()))
        fields |= dict.fromkeys(LISTS, pa.list_(pa.int64()))
        fields |= dict.fromkeys(NESTED, pa.list_(pa.list_(pa.int64())))
    fields |= dict.fromkeys(NUMBERS[kind], pa.list_(pa.int64()))
    struct = pa.struct([pa.field(name, of) for name, of in fields.items()])
    return pa.schema({f"{kind}_columns": struct})


def read_bodies(kind: str, bodies: Sequence[Body]) -> Rows:
    """All rows of these bodies, packed ones first; times of reading are wall clock."""
    packed = [place for place, body in enumerate(bodies) if body.is_packed]
    plain = [place for place, body in enumerate(bodies) if not body.is_packed]
    of_plain = [bodies[place] for place in plain]
    read = [
        _at(packed, _read_packed(kind, [bodies[place] for place in packed])),
        _at(plain, _read_fast(kind, of_plain) or _read_slowly(kind, of_plain)),
    ]
    return Rows(
        table=pa.concat_tables([it.table for it in read]),
        place=np.concatenate([it.place for it in read]),
        unreadable=tuple(place for it in read for place in it.unreadable),
    )


def _read_packed(kind: str, bodies: Sequence[Body]) -> Rows:
    schema = raw_schema(kind)
    found, place, unreadable = read_packed(kind, [(body.text, body.round_ms) for body in bodies])
    columns = [found[name] for name in schema.names] if found else schema.empty_table().columns
    return Rows(table=pa.table(columns, schema=schema), place=place, unreadable=unreadable)


def _at(places: Sequence[int], found: Rows) -> Rows:
    """The rows of some of the bodies, which stand at these places of all."""
    return Rows(
        table=found.table,
        place=np.array(places, np.int64)[found.place],
        unreadable=tuple(places[it] for it in found.unreadable),
    )


def _read_fast(kind: str, bodies: Sequence[Body]) -> Rows | None:
    """The rows of bodies of columns; None when one of them is not as it should be."""
    if not bodies:
        return Rows(table=raw_schema(kind).empty_table(), place=np.empty(0, np.int64))
    longest = max(len(body.text) for body in bodies)
    try:
        read = pj.read_json(
            pa.BufferReader(b"\n".join(body.text for body in bodies)),
            read_options=pj.ReadOptions(block_size=max(BLOCK_BYTES_MIN, 2 * longest + 64)),
            parse_options=pj.ParseOptions(
                explicit_schema=_body_schema(kind), unexpected_field_behavior="ignore"
            ),
        )
        body = read.column(0).combine_chunks()
        return _Laid(kind, bodies, body).rows() if len(body) == len(bodies) else None
    except (pa.ArrowException, _UnevenError):
        return None


class _UnevenError(ValueError):
    """Columns of one record that do not fit together."""


class _Laid:
    """The columns of all records, laid end to end."""

    def __init__(self, kind: str, bodies: Sequence[Body], body: pa.StructArray) -> None:
        self._kind = kind
        self._body = body
        self._round_ms = np.array([it.round_ms for it in bodies], np.int64)
        self._lengths = _lengths(body.field("partition"))
        if not self._lengths.all() or self._lengths.max() > RECORD_ROWS_MAX:
            raise _UnevenError("a record without rows, or with too many")
        self._place = np.repeat(np.arange(len(bodies)), self._lengths)

    def rows(self) -> Rows:
        columns = []
        for name in raw_schema(self._kind).names:
            column = self._flat(name)
            if name in TEXTS[self._kind]:
                column = self._named(column, TEXTS[self._kind][name])
            elif name in LISTS:
                column = self._named(column, "lists")
            elif name in ("read_ms", "since_ms"):
                column = pc.add(column, pa.array(self._round_ms[self._place]))
            columns.append(column)
        return Rows(
            table=pa.table(columns, schema=raw_schema(self._kind)),
            place=self._place,
        )

    def _flat(self, name: str) -> pa.Array:
        """A column of all rows; null where a record does not have it."""
        whole = self._body.field(name)
        lengths = _lengths(whole)
        has = lengths > 0
        if (lengths[has] != self._lengths[has]).any():
            raise _UnevenError(name)
        flat = whole.flatten()
        if has.all():
            return flat
        if not len(flat):
            return pa.nulls(len(self._place), flat.type)
        is_there = has[self._place]
        return flat.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))

    def _named(self, places: pa.Array, dictionary: str) -> pa.Array:
        """The texts at these places of the dictionary of the row's record."""
        whole = self._body.field(dictionary)
        known = whole.flatten()
        sizes = _lengths(whole)
        starts = np.cumsum(sizes) - sizes
        inside = pc.and_(pc.greater_equal(places, 0), pc.less(places, pa.array(sizes[self._place])))
        if not pc.all(inside, min_count=0).as_py():
            raise _UnevenError(dictionary)
        texts = known.dictionary_encode() if known.type == pa.string() else known
        wanted = pc.add(places, pa.array(starts[self._place]))
        if dictionary == "lists" and holds_too_much(pc.drop_null(wanted).to_numpy(), known):
            raise _UnevenError("lists of more than a record")
        return texts.take(wanted)


def _lengths(lists: pa.ListArray) -> Any:
    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)


def _read_slowly(kind: str, bodies: Sequence[Body]) -> Rows:
    rows: list[Mapping[str, Any]] = []
    owners: list[int] = []
    unreadable = []
    for place, body in enumerate(bodies):
        found = _rows_of(kind, body)
        rows += found
        owners += [place] * len(found)
        if not found:
            unreadable.append(place)
    columns = []
    for item in raw_schema(kind):
        keep = _keeper(item.type)
        columns.append(pa.array([keep(row.get(item.name)) for row in rows], item.type))
    return Rows(
        table=pa.table(columns, schema=raw_schema(kind)),
        place=np.array(owners, np.int64),
        unreadable=tuple(unreadable),
    )


def _rows_of(kind: str, body: Body) -> list[dict[str, Any]]:
    """The rows of one body as mappings; none when it cannot be read."""
    try:
        document = json_object(body.text)
        rows = from_columns(kind, document[f"{kind}_columns"], body.round_ms)
        return rows if _fits_a_record(rows) else []
    except UNREADABLE:
        return []


def _fits_a_record(rows: Sequence[Mapping[str, Any]]) -> bool:
    items = sum(len(it) for row in rows for it in row.values() if isinstance(it, list))
    return len(rows) <= RECORD_ROWS_MAX and items <= RECORD_ITEMS_MAX


def _keeper(of: pa.DataType) -> Callable[[Any], Any]:
    """Values of another type than the column's count as unknown."""
    if pa.types.is_list(of):
        item = _keeper(of.value_type)
        return lambda value: [item(it) for it in value] if isinstance(value, list) else None
    if of == TEXT:
        return _text_or_none
    least = -1 << (of.bit_width - 1)
    return lambda value: _whole_or_none(value, least)


def _whole_or_none(value: Any, least: int) -> int | None:
    """The number; one that needs more bits is the least, which is out of every range."""
    if type(value) is not int:
        return None
    return value if least <= value < -least else least


def _text_or_none(value: Any) -> str | None:
    try:
        return text(value)
    except ValueError:
        return None
