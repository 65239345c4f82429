"""The columns of every table: name, title, explanation, and what stays on a narrow screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


class ColumnError(ValueError):
    """A choice of columns that cannot be; its text names the wrong word and what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; ``id`` is the field of the row. ``rank`` 1 is shown on the narrowest screen."""

    id: str
    title: str
    why: str = ""
    is_number: bool = True
    rank: int = 3
    is_long: bool = False
    """A text that others chose, of any length: it is shortened where room lacks."""


def chosen(columns: Sequence[Column], text: str) -> tuple[Column, ...]:
    """The columns that ``topic,lag,size_bytes`` names, in that order; all for an empty text.

    The first column is the row's name and always shown first.

    Raises:
        ColumnError: a word that is no column's id.
    """
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    known = {column.id: column for column in columns}
    for word in wanted:
        if word not in known:
            raise ColumnError(f"no column {word!r}; there are {', '.join(known)}")
    names = dict.fromkeys([columns[0].id, *wanted]) if wanted else known
    return tuple(known[name] for name in names)


def _text(id: str, title: str, why: str = "", *, rank: int = 3) -> Column:  # noqa: A002
    return Column(id=id, title=title, why=why, is_number=False, rank=rank)


def _number(id: str, title: str, why: str = "", *, rank: int = 3) -> Column:  # noqa: A002
    return Column(id=id, title=title, why=why, rank=rank)


def _name(id: str, title: str, why: str = "", *, rank: int = 3) -> Column:  # noqa: A002
    return Column(id=id, title=title, why=why, is_number=False, rank=rank, is_long=True)


_SIZE: Final = "Bytes of the .log files on disk"
_LAG: Final = "High watermark less committed offset; the worst group's"
_IN: Final = "Bytes per second that producers append"
_OUT: Final = "Bytes per second that consumers read"
_LAG_TIME: Final = "How old the next unread record is: lag over the produce rate, an estimate"
_VELOCITY: Final = "How fast lag grows (+) or shrinks (−)"
_VELOCITY_OF_GROUP: Final = f"{_VELOCITY}; of the partitions that its status is about"
_CLEARS: Final = "When lag reaches 0 at this pace"
_LOSES: Final = "When retention deletes the next unread record, at this pace; – none waits"

BROKER_COLUMNS: Final = (
    _text("broker", "broker", "★ the active controller", rank=1),
    _text("status", "status", rank=1),
    _name("rack", "rack"),
    _number("replicas", "replicas", "Assigned replicas, in sync or not", rank=2),
    _number("leaders", "leaders", "Partitions that it leads", rank=2),
    _number("size_bytes", "bytes", _SIZE, rank=1),
    _number("in_bytes", "in/s", _IN, rank=2),
    _number("out_bytes", "out/s", _OUT),
    _number("skew", "skew", "Bytes against the mean of all registered brokers", rank=2),
    _number("disk", "disk", "Used share of its log directory's disk"),
    _number("full_in", "full in", "At the earliest, as fast as now and without retention", rank=2),
    _number("age", "age", "Since it last sampled itself"),
)
TOPIC_COLUMNS: Final = (
    _name("topic", "topic", rank=1),
    _text("status", "status", "The worst of its partitions", rank=1),
    _number("partitions", "partitions", rank=2),
    _number("replicas", "replicas", "Replication factor; a range when it differs"),
    _number("size_bytes", "bytes", f"{_SIZE}, all replicas", rank=1),
    _number("in_records", "records/s", "Records per second that producers append", rank=2),
    _number("in_bytes", "in/s", _IN, rank=2),
    _number("out_bytes", "out/s", _OUT),
    _number("lag", "lag", _LAG, rank=2),
)
PARTITION_COLUMNS: Final = (
    _name("topic", "topic", rank=1),
    _number("partition", "partition", rank=1),
    _text("status", "status", "The worst that applies", rank=1),
    _number("leader", "leader", "★ the preferred one", rank=2),
    _text("replicas", "replicas", "In assignment order: the first is preferred", rank=2),
    _text("isr", "ISR", "Replicas in sync"),
    _number("size_bytes", "bytes", f"{_SIZE}, the leader's replica", rank=2),
    _number("records", "records", "High watermark less log start offset"),
    _number("segments", "segments", "Log segments of the leader's replica"),
    _number("in_records", "records/s", "Records per second that producers append", rank=2),
    _number("in_bytes", "in/s", _IN),
    _number("out_bytes", "out/s", _OUT),
    _number("lag", "lag", _LAG, rank=1),
    _number("log_start_offset", "start", "Log start offset"),
    _number("high_watermark", "high watermark", "Consumers read below it"),
    _number("age", "age", "Since its leader's figures were read; of one offline the last known"),
)
REPLICA_COLUMNS: Final = (
    _text("broker", "broker", rank=1),
    _name("rack", "rack"),
    _text("role", "role", "Leader or follower; ★ preferred leader", rank=1),
    _text("in_sync", "in sync", rank=1),
    _number("follower_lag", "behind", "Records behind the leader", rank=2),
    _number("log_end_offset", "end offset"),
    _number("size_bytes", "bytes", _SIZE, rank=1),
    _number("segments", "segments", rank=2),
    _number("age", "age"),
)
GROUP_COLUMNS: Final = (
    _name("group", "group", rank=1),
    _text("status", "status", "The worst of its partitions", rank=1),
    _number(
        "lag",
        "lag",
        "Sum over its partitions; at most so many in a share group",
        rank=1,
    ),
    _number("lag_time", "time lag", _LAG_TIME, rank=2),
    _number("velocity", "lag trend", _VELOCITY_OF_GROUP, rank=2),
    _number("clears", "clears in", f"{_CLEARS}; of the same partitions", rank=2),
    _number("loses", "data loss in", f"{_LOSES}; the partition nearest to it", rank=2),
    _number("consumed", "consumes", "Records per second by its commits"),
    _number("members", "members", rank=2),
    _number("partitions", "partitions", "Partitions that it committed or owns"),
    _name("topics", "topics"),
    _text("type", "type", "Classic, consumer, share or streams"),
    _text("state", "state", "As its coordinator says"),
    _text("epoch", "epoch", "Group epoch; an older assignment epoch while it rebalances"),
    _text("assignor", "assignor", "Chosen by the members or the coordinator"),
    _text("rests_on", "rests on", "Partitions with a known verdict"),
    _name("status_unknown_because", "no verdict because", "For the first partition without one"),
)
GROUP_PARTITION_COLUMNS: Final = (
    _name("topic", "topic", rank=1),
    _number("partition", "partition", rank=1),
    _text("status", "status", rank=1),
    _number("lag", "lag", "High watermark less committed offset; – without a commit", rank=1),
    _number("readable", "to read", "Lag less what is deleted; without a commit, the whole log"),
    _number("lag_time", "time lag", _LAG_TIME, rank=2),
    _number("velocity", "lag trend", _VELOCITY, rank=2),
    _number("clears", "clears in", _CLEARS),
    _number("loses", "data loss in", _LOSES, rank=2),
    _number("committed", "committed", "Committed offset", rank=2),
    _number("end", "end", "Earliest high watermark read at or after the commit"),
    _number("consumed", "consumes", "Records per second by its commits"),
    _number("stuck", "stuck for", "How long its offset has stood still, with lag"),
    _number("leader", "leader"),
    _name("member", "member", "Member that owns the partition", rank=2),
    _name("status_unknown_because", "no verdict because", "Why there is no verdict", rank=2),
)
GROUP_OF_PARTITION_COLUMNS: Final = (
    _name("group", "group", rank=1),
    *(item for item in GROUP_PARTITION_COLUMNS if item.id not in {"topic", "partition", "leader"}),
)
SEGMENT_COLUMNS: Final = (
    _number("number", "segment", "Oldest first", rank=1),
    _number("base_offset", "base offset", rank=1),
    _number("size_bytes", "bytes", _SIZE, rank=1),
    _text("state", "state", "The newest is active: it is written to", rank=1),
)
FINDING_COLUMNS: Final = (
    _text("severity", "severity", rank=1),
    _text("label", "subject", rank=1),
    _text("title", "finding", rank=1),
    _text("reason", "reason", rank=2),
    _text("since", "since", rank=2),
    _text("next_step", "next step", rank=2),
)
