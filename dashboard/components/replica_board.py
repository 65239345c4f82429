"""A plan's partitions by brokers: a replica is dragged to another broker of its row, and the plan
is judged anew. By keyboard the same is typed as an entry; both end in the same field."""

from collections.abc import Sequence
from typing import Any, Final

from dash import html

from dashboard.components.parts import attributes, folded
from planner.proposal import PartitionChange

ROWS_MAX: Final = 30


def replica_board(
    changes: Sequence[PartitionChange], brokers: Sequence[int], *, is_open: bool = False
) -> html.Details:
    """The first ``ROWS_MAX`` changed partitions as they are planned."""
    head = html.Tr([html.Th("partition"), *(html.Th(str(broker)) for broker in brokers)])
    table = html.Table(
        [html.Thead(head), html.Tbody([_row(change, brokers) for change in changes[:ROWS_MAX]])],
        className="rows replica-board",
    )
    words = "★ leads. Drag a replica to another broker, or type its partition in the field above."
    if len(changes) > ROWS_MAX:
        words += f" The first {ROWS_MAX} of {len(changes):,} partitions."
    return folded(
        "Where replicas go",
        html.P(words, className="note"),
        html.Div(table, className="rows-frame short", tabIndex=0),
        is_open=is_open,
    )


def _row(change: PartitionChange, brokers: Sequence[int]) -> html.Tr:
    replicas = ",".join(map(str, change.after))
    return html.Tr(
        [html.Th(str(change.key)), *(_place(change, broker) for broker in brokers)],
        **attributes({"data-partition": str(change.key), "data-replicas": replicas}),
    )


def _place(change: PartitionChange, broker: int) -> html.Td:
    named = attributes({"data-broker": str(broker)})
    if broker in change.after:
        return html.Td(_chip(change, broker), className="replica-place", **named)
    words = "−" if broker in change.before else ""
    return html.Td(words, className="replica-place", **named)


def _chip(change: PartitionChange, broker: int) -> Any:
    leads, is_new = change.after[0] == broker, broker not in change.before
    return html.Span(
        ("★" if leads else "●") + (" new" if is_new else ""),
        className="replica-chip new" if is_new else "replica-chip",
        draggable="true",
        title=f"{change.key} on {broker}{', leader' if leads else ''}",
    )
