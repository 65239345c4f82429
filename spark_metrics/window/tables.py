"""The tables of "now": what a row is, what each column means, in which unit.

How the figures are computed is told in docs/reference/definitions.md; history is in
``history_points``.
"""

from typing import Final

import pyarrow as pa

_INTS: Final = pa.list_(pa.int32())
_LONGS: Final = pa.list_(pa.int64())

PARTITIONS: Final = pa.schema(
    {
        # One row per partition: what its leader says (the last leader's word while offline).
        "cluster": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "leader": pa.int32(),  # -1: offline
        "leader_epoch": pa.int32(),
        "replicas": _INTS,  # assignment order; the first is the preferred leader
        "isr": _INTS,
        "adding_replicas": _INTS,
        "removing_replicas": _INTS,
        "min_isr": pa.int32(),
        "log_start_offset": pa.int64(),
        "high_watermark": pa.int64(),
        "log_end_offset": pa.int64(),
        "readable_offset": pa.int64(),  # from here on there is nothing for read_committed; or null
        "size_bytes": pa.int64(),  # of the leader's replica
        "segments": pa.int32(),
        "segment_bytes": _LONGS,  # newest segments, oldest first
        "segment_offsets": _LONGS,  # their base offsets
        "in_records_per_s": pa.float64(),
        "in_bytes_per_s": pa.float64(),
        "out_bytes_per_s": pa.float64(),
        "read_ms": pa.int64(),
        "retention_ms": pa.int64(),  # -1: for ever; null: not by age, or not told
        "isr_shrinks": pa.int64(),  # how often the ISR lost and won members, as seen here
        "isr_expands": pa.int64(),
        "is_hot": pa.bool_(),  # traffic above mean + 2 sigma of its topic; null: cannot be said
    }
)

REPLICAS: Final = pa.schema(
    {
        # One row per replica that its own broker reported.
        "cluster": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "broker": pa.int32(),
        "is_leader": pa.bool_(),
        "is_in_sync": pa.bool_(),
        "log_end_offset": pa.int64(),
        "size_bytes": pa.int64(),
        "segments": pa.int32(),
        # Records behind the leader: its earliest end offset read at or after ours, less ours.
        "follower_lag": pa.int64(),
        "read_ms": pa.int64(),
    }
)

COMMITS: Final = pa.schema(
    {
        # One row per group and partition that the group committed, or that a member owns.
        "cluster": pa.string(),
        "group_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "committed_offset": pa.int64(),  # null: owned, and nothing committed there
        "end_offset": pa.int64(),  # earliest high watermark read at or after the commit
        # end_offset - committed_offset, never below 0; null without a commit. Of a share group
        # told_lag where it is known: else it is the most that the lag can be.
        "lag": pa.int64(),
        "told_lag": pa.int64(),  # by the broker, of a share group; null: not told
        "commit_ms": pa.int64(),
        "member_id": pa.string(),  # null when nobody owns the partition
        "consumed_records_per_s": pa.float64(),  # how fast the committed offset moves
        "lag_records_per_s": pa.float64(),  # velocity: above 0 the group falls behind
        "stuck_since_ms": pa.int64(),  # since when it stands still with lag; null: it does not
        "read_ms": pa.int64(),
        "end_read_ms": pa.int64(),
        "lost_records": pa.int64(),  # of the lag: deleted before they were read
        "time_lag_ms": pa.int64(),  # age of the commit's place in the log; null: not known
        "time_lag_error_ms": pa.int64(),  # the truth is no further from it
        "time_to_clear_ms": pa.int64(),  # at this speed; null: not at this speed
        # Until unread records are deleted; 0: they are; 400 days: later, or never at this pace.
        "retention_risk_ms": pa.int64(),
        "status": pa.string(),  # OK, WARN, REWIND, STOP, STALL, BEYOND; null: no verdict
        "history_ms": pa.int64(),  # how much history the status rests on
        "source": pa.int32(),  # the coordinator that told it
    }
)

GROUPS: Final = pa.schema(
    {
        # One row per group, whether or not it ever committed.
        "cluster": pa.string(),
        "group_id": pa.string(),
        "state": pa.string(),
        "protocol": pa.string(),
        "group_type": pa.string(),  # classic, consumer, share, streams; empty: not told
        "group_epoch": pa.int32(),  # null: a classic group, or not told
        "assignment_epoch": pa.int32(),  # below group_epoch: a rebalance is under way
        "members": pa.int32(),
        "read_ms": pa.int64(),
        "partitions": pa.int64(),  # committed ones; 0: no commit
        # Sums over the partitions with a commit within their log; null: of some it is unknown, of
        # rates of more than 1 %.
        "lag": pa.int64(),
        "lost_records": pa.int64(),
        "lag_records_per_s": pa.float64(),
        "consumed_records_per_s": pa.float64(),
        "time_lag_ms": pa.int64(),  # of the partition furthest behind; null: of some unknown
        "time_to_clear_ms": pa.int64(),  # lag over its fall; null: not at this speed
        "retention_risk_ms": pa.int64(),  # of the partition nearest to it
        # The worst of its partitions; null: some are not judged and all others OK.
        "status": pa.string(),
        "history_ms": pa.int64(),  # the shortest of its partitions
        "committed_ms": pa.int64(),  # when it committed anything last
    }
)

LOG_DIRECTORY: Final = pa.struct(
    {
        "path": pa.string(),
        "total_bytes": pa.int64(),  # of its file system, which others may share; null: not told
        "usable_bytes": pa.int64(),
        "size_bytes": pa.int64(),  # of its replicas
        "replicas": pa.int64(),
        "is_cordoned": pa.bool_(),
        "is_failed": pa.bool_(),  # then all but its path is unknown
    }
)
BROKERS: Final = pa.schema(
    {
        # One row per registered broker, empty and dead ones too.
        "cluster": pa.string(),
        "broker": pa.int32(),
        "host": pa.string(),
        "port": pa.int32(),
        "rack": pa.string(),
        "is_fenced": pa.bool_(),
        "is_controller": pa.bool_(),
        "broker_epoch": pa.int64(),
        "replicas": pa.int64(),
        "leaders": pa.int64(),
        "size_bytes": pa.int64(),
        "in_bytes_per_s": pa.float64(),
        "out_bytes_per_s": pa.float64(),
        "disk_total_bytes": pa.int64(),  # of the file systems of live log directories
        "disk_usable_bytes": pa.int64(),
        "directories": pa.list_(LOG_DIRECTORY),  # its log directories; null: not told
        "interval_ms": pa.int64(),  # how often it samples itself
        "sampled_ms": pa.int64(),  # its own newest round; null: never heard of
        "clock_skew_ms": pa.int64(),  # its clock less the job's time, where it is corrected; else 0
        "heard_ms": pa.int64(),  # when the job took that in, by the job's time
        "read_ms": pa.int64(),
    }
)

HEALTH: Final = pa.schema(
    {
        # One row: the job's own health, as of its newest batch.
        "batch_id": pa.int64(),
        "batch_ms": pa.int64(),  # duration of the batch
        "records": pa.int64(),
        "bad_records": pa.int64(),  # in this batch
        "bad_records_total": pa.int64(),
        "bad_rows": pa.list_(pa.string()),  # the newest rows that were left out, and why
        "lost_records_total": pa.int64(),  # gone from the topic before they were read
        "late_rounds_total": pa.int64(),  # rounds that came after a newer one of their source
        "records_per_s": pa.float64(),  # input rate, over this batch and the pause before it
        "delay_ms": pa.int64(),  # from the newest round's begin until it was written
        "catch_up_rate": pa.float64(),  # event time taken in per time, over its last batches
        "state_rows": pa.int64(),  # replicas and commits that are remembered
        "newest_round_ms": pa.int64(),
        "clock_skew_ms": pa.int64(),  # the clock of its host less the job's time, where it is off
        "written_ms": pa.int64(),
    }
)

NOW_TABLES: Final = {
    "partitions": PARTITIONS,
    "replicas": REPLICAS,
    "commits": COMMITS,
    "groups": GROUPS,
    "brokers": BROKERS,
    "health": HEALTH,
}
