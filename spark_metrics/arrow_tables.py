"""Arrow tables and lists, put together. Pure."""

from typing import Any

import numpy as np
import pyarrow as pa


def conform(table: Any, schema: Any) -> Any:
    """The table with exactly the columns of ``schema``, in its order and types."""
    if table.schema == schema:
        return table
    columns = [
        table[item.name].cast(item.type)
        if item.name in table.column_names
        else pa.nulls(table.num_rows, item.type)
        for item in schema
    ]
    return pa.table(columns, schema=schema)


def with_columns(table: Any, schema: Any) -> Any:
    """The table with each column of ``schema``: those that it lacks are null."""
    for item in schema:
        if item.name not in table.column_names:
            table = table.append_column(item, pa.nulls(table.num_rows, item.type))
    return table


def one_array(column: Any) -> Any:
    """The column as one array that begins at its buffers' begin; what is one is not copied."""
    is_one = column.num_chunks == 1 and not column.chunk(0).offset
    return column.chunk(0) if is_one else column.combine_chunks()


def with_column(table: Any, name: str, column: Any) -> Any:
    """The table with another column of this name."""
    return table.set_column(table.schema.get_field_index(name), name, column)


def lists_of(items: Any, counts: Any, mask: Any = None) -> pa.ListArray:
    """The items cut into lists of so many; null where the ``mask`` is set."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), items, mask=mask)
