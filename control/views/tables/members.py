"""The table of a group's members: who reads from where, what is assigned, how far it is behind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from control.kafka.ports import GroupDescription, GroupMember
from control.model.ids import TopicPartition, path_segment
from control.views.tables import units
from control.views.tables.column import Table, column, counted, name_column, worded
from control.views.tables.rows import Row

Lags = Mapping[TopicPartition, int]

MEMBERS: Final = Table(
    name="members",
    about="The live members of one group, the one with most lag first",
    key=lambda record: record["member"],
    path=lambda record: record["path"],
    columns=(
        name_column("client", "client", "The client's id; Enter opens its worst partition", rank=1),
        name_column("host", "host", rank=1),
        name_column("rack", "rack", "client.rack, where the client tells it", rank=3,
                    cell=worded(lambda it: it["rack"])),
        name_column("assigned", "assigned", rank=1, cell=worded(lambda it: it["assigned"])),
        column("partitions", "partitions", units.COUNT, rank=2),
        column("lag", "lag", units.COUNT, "Sum over its partitions", rank=1,
               cell=counted(lambda it: it["lag"])),
        name_column("worst", "most lag in", rank=2, cell=worded(lambda it: it["worst"])),
        name_column("member", "member id", rank=3),
    ),
)  # fmt: skip


def member_rows(group: GroupDescription, lags: Lags) -> tuple[Row, ...]:
    """The members, most lag first; of a partition without a known lag nothing is counted."""
    return MEMBERS.rows(sorted(_records(group.members, lags), key=_by_lag))


def member_words(row: Row) -> str:
    """``app-1 on 10.0.0.7, rack b: orders 0-3; lag 120, most in orders-2``."""
    rack = f", rack {row.rack.text}" if row.rack.value else ""
    worst = f", most in {row.worst.text}" if row.worst.value else ""
    where = f"{row.client.text} on {row.host.text}{rack}"
    return f"{where}: {row.assigned.text}; lag {row.lag.text}{worst}"


def partition_ranges(keys: Iterable[TopicPartition]) -> str:
    """``orders 0-3, 7; payments 1``."""
    topics = groupby(sorted(keys), key=lambda it: it.topic)
    return "; ".join(f"{topic} {_ranges([it.partition for it in own])}" for topic, own in topics)


def _ranges(numbers: Sequence[int]) -> str:
    runs = groupby(enumerate(numbers), key=lambda it: it[1] - it[0])
    spans = ([number for _, number in run] for _, run in runs)
    return ", ".join(f"{it[0]}-{it[-1]}" if len(it) > 1 else f"{it[0]}" for it in spans)


def _records(members: Iterable[GroupMember], lags: Lags) -> Iterator[dict[str, Any]]:
    for it in members:
        own = {key: lags[key] for key in it.assignment if key in lags}
        worst = max(own, key=lambda key: own[key]) if any(own.values()) else None
        topic = "" if worst is None else path_segment(worst.topic)
        yield {
            "client": it.client_id,
            "host": it.client_host.removeprefix("/"),
            "rack": it.rack,
            "assigned": partition_ranges(it.assignment),
            "partitions": len(it.assignment),
            "lag": sum(own.values()) if own or not it.assignment else None,
            "worst": None if worst is None else str(worst),
            "member": it.member_id,
            "path": "" if worst is None else f"topics/{topic}/partitions/{worst.partition}",
        }


def _by_lag(record: Mapping[str, Any]) -> tuple[int, str, str]:
    return -(record["lag"] or 0), record["client"], record["member"]
