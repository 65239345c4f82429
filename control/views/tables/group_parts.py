"""The small tables of one group as its coordinator describes it: members and committed offsets."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from control.kafka.ports import GroupDescription, GroupMember, ListedGroup, ShareOffset
from control.model.ids import TopicPartition, partition_ranges, path_segment
from control.model.status import BEYOND
from control.views.tables import cells, units
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.commits import COMMITS, LAG_HELP
from control.views.tables.groups import GROUPS
from control.views.tables.partitions import PARTITIONS_HELP, partition_path
from control.views.tables.rows import Cell, Row

Lags = Mapping[TopicPartition, int | None]
"""None: unknown; a partition that is not there has no lag."""
Offsets = Mapping[TopicPartition, int]


def _start_cell(record: Mapping[str, Any]) -> Cell:
    start = record["committed_offset"]
    return cells.NOTHING if start is None else cells.count_cell(start)


LISTED: Final = Table(
    name="listed groups",
    about="The groups that the brokers list, without figures",
    key=GROUPS.key,
    path=GROUPS.path,
    columns=GROUPS.only("group", "state", "type"),
)
_NOTE: Final = name_column("note", "note", cell=worded(lambda it: it["note"]), rank=1)
_NAMES: Final = COMMITS.only("topic", "partition")
_END, _LAG, _READABLE = COMMITS.only("end", "lag", "readable")
OFFSETS: Final = Table(
    name="offsets of a group",
    about="A row per partition that one group committed or owns, read from the cluster",
    named_by=2,
    key=COMMITS.key,
    path=partition_path,
    columns=(
        *_NAMES, *COMMITS.only("committed"), _END, _LAG,
        replace(_READABLE, id="to_read", rank=2),
        _NOTE,
        name_column("client", "client", "Client id of the member that owns the partition", rank=2,
                    cell=worded(lambda it: it["client"])),
    ),
)  # fmt: skip
SHARE_OFFSETS: Final = Table(
    name="offsets of a share group",
    about="A row per partition of one share group, read from the cluster",
    named_by=2,
    key=COMMITS.key,
    path=partition_path,
    columns=(
        *_NAMES,
        column("start", "start offset", units.OFFSET,
               "Every record before it is acknowledged or given up", rank=2,
               source="committed_offset", cell=_start_cell),
        _END, _LAG, _NOTE,
    ),
)  # fmt: skip

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
        column("partitions", "partitions", units.COUNT, f"{PARTITIONS_HELP}; assigned to it",
               rank=2),
        column("lag", "lag", units.COUNT,
               f"{LAG_HELP}; sum over its partitions, ≥ while that of some is unknown", rank=1,
               cell=lambda it: cells.sum_cell(it["lag"], it["known_lag"], cells.count_cell)),
        name_column("worst", "most lag in", rank=2, cell=worded(lambda it: it["worst"])),
        name_column("member", "member id", rank=3),
    ),
)  # fmt: skip


def member_rows(group: GroupDescription, lags: Lags) -> tuple[Row, ...]:
    """The members, most lag first."""
    return MEMBERS.rows(sorted(_records(group.members, lags), key=_by_lag))


def member_words(row: Row) -> str:
    """``app-1 on 10.0.0.7, rack b: orders 0-3; lag 120, most in orders-2``."""
    rack = f", rack {row.rack.text}" if row.rack.value else ""
    worst = f", most in {row.worst.text}" if row.worst.value else ""
    where = f"{row.client.text} on {row.host.text}{rack}"
    return f"{where}: {row.assigned.text}; lag {row.lag.text}{worst}"


def _records(members: Iterable[GroupMember], lags: Lags) -> Iterator[dict[str, Any]]:
    for it in members:
        own = [key for key in it.assignment if key in lags]
        known = {key: lag for key in own if (lag := lags[key]) is not None}
        worst = max(known, key=lambda key: known[key]) if any(known.values()) else None
        is_whole = len(known) == len(own) and bool(own or not it.assignment)
        topic = "" if worst is None else path_segment(worst.topic)
        yield {
            "client": it.client_id,
            "host": it.client_host,
            "rack": it.rack,
            "assigned": partition_ranges(it.assignment),
            "partitions": len(it.assignment),
            "lag": sum(known.values()) if is_whole else None,
            "known_lag": sum(known.values()) if known else None,
            "worst": None if worst is None else str(worst),
            "member": it.member_id,
            "path": "" if worst is None else f"topics/{topic}/partitions/{worst.partition}",
        }


def _by_lag(record: Mapping[str, Any]) -> tuple[int, str, str]:
    return -(record["known_lag"] or 0), record["client"], record["member"]


def listed_rows(groups: Iterable[ListedGroup]) -> tuple[Row, ...]:
    """The groups as the brokers list them."""
    return LISTED.rows(
        {"group_id": it.group_id, "state": it.state, "group_type": it.group_type} for it in groups
    )


def offset_rows(
    committed: Offsets,
    owners: Mapping[TopicPartition, str],
    bounds: Mapping[TopicPartition, tuple[int, int]],
    unread: Mapping[TopicPartition, str] = MappingProxyType({}),
) -> tuple[Row, ...]:
    """Committed offsets and owners of a group: the worst first, then the most lag.

    ``bounds``: first offset and end of each log; ``unread``: why others are not known. Without a
    commit, and of one beyond the end, there is no lag. Records to read are those still there:
    without a commit the whole log.
    """
    records = [
        {
            **_record(key, at=committed.get(key), end=None, lag=None, note=f"not known: {why}"),
            "status": "",
            "readable": None,
            "client": owners.get(key),
        }
        for key, why in unread.items()
    ]
    for key, (first, end) in bounds.items():
        at = committed.get(key)
        is_beyond = at is not None and at > end
        lag = None if at is None or is_beyond else end - at
        record = {
            **_record(key, at=at, end=end, lag=lag, note=_commit_note(at, first, end)),
            "status": BEYOND if is_beyond else "",
            "readable": 0 if is_beyond else end - max(first, at or 0),
            "client": owners.get(key),
        }
        records.append(record)
    return OFFSETS.rows(sorted(records, key=_severity))


def share_offset_rows(
    offsets: Mapping[TopicPartition, ShareOffset],
    ends: Offsets,
    unread: Mapping[TopicPartition, str] = MappingProxyType({}),
) -> tuple[Row, ...]:
    """Where a share group stands, most lag first. A lag that no broker tells stays unknown:
    records beyond the start may be acknowledged already. ``unread``: why an end is not known."""
    records = []
    for key, offset in offsets.items():
        end = ends.get(key)
        most = None if offset.start is None or end is None else max(0, end - offset.start)
        is_bounded = offset.lag is None and most is not None
        note = f"lag unknown, at most {most}" if is_bounded else None
        if key in unread:
            note = f"not known: {unread[key]}"
        records.append(_record(key, at=offset.start, end=end, lag=offset.lag, note=note))
    return SHARE_OFFSETS.rows(sorted(records, key=_by_most_lag))


def lags_of(rows: Iterable[Row]) -> Lags:
    """Lag of each partition that has one."""
    lags = {
        TopicPartition(str(it.topic.value), int(it.partition.text)): it.lag.value
        for it in rows
        if it.lag != cells.NOTHING
    }
    return {key: None if lag is None else int(lag) for key, lag in lags.items()}


def _record(
    key: TopicPartition, *, at: int | None, end: int | None, lag: int | None, note: str | None
) -> dict[str, Any]:
    """A record for the columns of commits, with the names of the store."""
    return {
        "group_id": "",
        "topic": key.topic,
        "partition": key.partition,
        "status": "",
        "committed_offset": at,
        "end_offset": end,
        "lag": lag,
        "is_bound": False,
        "note": note,
    }


def _commit_note(at: int | None, first: int, end: int) -> str | None:
    if at is None:
        return "no commit"
    if at > end:
        return f"committed {at - end} beyond the end; reset it"
    lost = min(first, end) - at
    return f"{lost} lost: deleted before they were read" if lost > 0 else None


def _severity(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Lost and beyond the end, then without a commit but with records, then by lag."""
    is_owned = record["committed_offset"] is None
    is_quiet = record["note"] is None or (is_owned and not record["readable"])
    return 2 if is_quiet else int(is_owned), *_by_most_lag(record)


def _by_most_lag(record: Mapping[str, Any]) -> tuple[int, str, int]:
    return -(record["lag"] or 0), record["topic"], record["partition"]
