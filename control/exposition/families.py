"""Everything that is exposed, as declarations; ``scripts/prometheus_reference.py`` writes the list.

Names that users of kafka_exporter and kminion know mean what they mean there. Ours begin with
``partiscope_``. Units are seconds, bytes, ratios and records.
"""

from collections.abc import Callable
from typing import Any, Final

from control.exposition.series import (
    Family,
    Kind,
    SeriesGroup,
    always_one,
    column,
    scaled,
    seconds,
)

KAFKA_EXPORTER: Final = "kafka_exporter"
KMINION: Final = "kminion"
_TOPIC: Final = {"topic": "topic"}
_PARTITION: Final = {**_TOPIC, "partition": "partition"}
_GROUP: Final = {"consumergroup": "group_id"}
_BROKER: Final = {"broker": "broker"}
_BROKER_INFO: Final = {"id": "broker", "address": "address"}
_KMINION_BROKER: Final = {
    **{"broker_id": "broker", "address": "host"},
    **{"port": "port", "rack_id": "rack"},
}


def _family(name: str, help: str, value: Callable[[Any], Any] | str, **more: Any) -> Family:  # noqa: A002
    """``value`` may be the name of a column."""
    return Family(
        name=name, help=help, value=column(value) if isinstance(value, str) else value, **more
    )


def _known(name: str, help: str, value: Callable[[Any], Any] | str) -> Family:  # noqa: A002
    return _family(name, help, value, known_from=KAFKA_EXPORTER)


def _total(name: str, help: str, value: str) -> Family:  # noqa: A002
    return _family(name, help, value, kind=Kind.COUNTER)


_WHOLE: Final = SeriesGroup(
    of="clusters",
    rows=lambda source: source.whole,
    labels={},
    families=(
        _known("kafka_brokers", "Brokers that are not fenced", "brokers"),
        _family("partiscope_figures_stale",
                "1: the figures are too old, and none of them is exposed", "is_stale"),
        _family("partiscope_figures_timestamp_seconds",
                "When the newest figure was read at its source", seconds("sampled_ms")),
        _family("partiscope_topics", "Topics, chosen by the settings or not", "topics"),
        _family("partiscope_partitions", "Partitions, chosen by the settings or not", "partitions"),
        _family("partiscope_collector_partial",
                "1: topics or groups may exist that the collector may not see", "is_partial"),
        _family("partiscope_collector_missing_rights", "Rights that the collector lacks",
                "missing_rights"),
    ),
)  # fmt: skip
_STATUSES: Final = SeriesGroup(
    of="statuses",
    rows=lambda source: source.partition_statuses,
    labels={"status": "status"},
    families=(
        _family("partiscope_status_partitions",
                "Partitions to which the status applies; several may apply to one", "count"),
    ),
)  # fmt: skip
_VERDICTS: Final = SeriesGroup(
    of="verdicts",
    rows=lambda source: source.verdicts,
    labels={"verdict": "verdict"},
    families=(
        _family("partiscope_consumergroups", "Groups with the verdict", "count"),
    ),
)  # fmt: skip
_SEVERITIES: Final = SeriesGroup(
    of="severities",
    rows=lambda source: source.severities,
    labels={"severity": "severity"},
    families=(_family("partiscope_findings", "Findings of the severity", "count"),),
)
_FINDINGS: Final = SeriesGroup(
    of="findings",
    rows=lambda source: source.findings,
    labels={"id": "id", "subject": "subject", "severity": "severity"},
    families=(
        _family("partiscope_finding", "1 while the finding stands", always_one),
        _family("partiscope_finding_since_timestamp_seconds", "Since when it stands",
                seconds("since_ms")),
    ),
)  # fmt: skip
_BROKER_INFOS: Final = SeriesGroup(
    of="brokers",
    rows=lambda source: source.brokers,
    labels=_BROKER_INFO,
    families=(
        _family("kafka_broker_info", "1; its labels are the broker's address", always_one,
                kind=Kind.INFO, known_from=KAFKA_EXPORTER),
    ),
)  # fmt: skip
_BROKERS: Final = SeriesGroup(
    of="brokers",
    rows=lambda source: source.brokers,
    labels=_BROKER,
    families=(
        _family("partiscope_broker_up", "0: fenced by the controller, or silent", "is_up"),
        _family("partiscope_broker_controller", "1: the active controller", "is_controller"),
        _family("partiscope_broker_replicas", "Replicas assigned to it", "replicas"),
        _family("partiscope_broker_leaders", "Partitions that it leads", "leaders"),
        _family("partiscope_broker_size_bytes", "Bytes of its replicas on disk", "size_bytes"),
        _family("partiscope_broker_skew_ratio",
                "Its bytes over an even share, less 1: 0.5 is half as much again",
                scaled("skew_percent", 0.01)),
        _family("partiscope_broker_in_bytes_per_second",
                "Bytes that producers append to partitions it leads", "in_bytes_per_s"),
        _family("partiscope_broker_out_bytes_per_second",
                "Bytes that consumers read from partitions it leads", "out_bytes_per_s"),
        _family("partiscope_broker_disk_used_ratio", "Used share of its fullest disk",
                scaled("disk_percent", 0.01)),
        _family("partiscope_broker_disk_full_seconds",
                "Until its first disk is full, as fast as now and without retention",
                seconds("full_ms")),
        _family("partiscope_broker_figures_timestamp_seconds",
                "When its own figures were read last", seconds("sampled_ms")),
    ),
)  # fmt: skip
_BROKER_STATUSES: Final = SeriesGroup(
    of="brokers",
    rows=lambda source: source.broker_statuses,
    labels={**_BROKER, "status": "status"},
    families=(
        _family("partiscope_broker_status", "State set: 1 for the status it has, 0 for others",
                "is_set"),
    ),
)  # fmt: skip
_KMINION_BROKERS: Final = SeriesGroup(
    of="brokers",
    rows=lambda source: source.brokers,
    labels=_KMINION_BROKER,
    families=(
        _family("kminion_kafka_broker_log_dir_size_total_bytes",
                "Bytes of all log directories of the broker", "size_bytes", known_from=KMINION),
    ),
)  # fmt: skip
_LOG_DIRS: Final = SeriesGroup(
    of="log_dirs",
    rows=lambda source: source.log_dirs,
    labels={**_BROKER, "path": "path"},
    families=(
        _family("partiscope_log_dir_total_bytes", "Size of its file system", "total_bytes"),
        _family("partiscope_log_dir_free_bytes", "Free bytes of its file system", "usable_bytes"),
        _family("partiscope_log_dir_failed", "1: the broker cannot use it", "is_failed"),
        _family("partiscope_log_dir_cordoned", "1: it receives no new replicas", "is_cordoned"),
    ),
)
_TOPICS: Final = SeriesGroup(
    of="topics",
    rows=lambda source: source.topics,
    labels=_TOPIC,
    families=(
        _known("kafka_topic_partitions", "Partitions of the topic", "partition_count"),
        _family("partiscope_topic_size_bytes", "Bytes of all its replicas on disk", "all_bytes"),
        _family("partiscope_topic_in_records_per_second", "Records that producers append",
                "in_records_per_s"),
        _family("partiscope_topic_in_bytes_per_second", "Bytes that producers append",
                "in_bytes_per_s"),
        _family("partiscope_topic_out_bytes_per_second", "Bytes that consumers read",
                "out_bytes_per_s"),
    ),
)  # fmt: skip
_KMINION_TOPICS: Final = SeriesGroup(
    of="topics",
    rows=lambda source: source.topics,
    labels={"topic_name": "topic"},
    families=(
        _family("kminion_kafka_topic_log_dir_size_total_bytes", "Bytes of all replicas of a topic",
                "all_bytes", known_from=KMINION),
    ),
)  # fmt: skip
_PARTITIONS: Final = SeriesGroup(
    of="partitions",
    rows=lambda source: source.partitions,
    labels=_PARTITION,
    families=(
        _known("kafka_topic_partition_current_offset", "High watermark", "high_watermark"),
        _known("kafka_topic_partition_oldest_offset", "Log start offset", "log_start_offset"),
        _known("kafka_topic_partition_leader", "Id of the leader; absent while offline", "leader"),
        _known("kafka_topic_partition_replicas", "Assigned replicas", "replica_count"),
        _known("kafka_topic_partition_in_sync_replica", "Replicas in sync", "isr_count"),
        _known("kafka_topic_partition_leader_is_preferred", "1: the first replica leads",
               "is_preferred"),
        _known("kafka_topic_partition_under_replicated_partition",
               "1: a replica that is not just being added is out of sync", "is_short"),
        _family("partiscope_topic_partition_size_bytes", "Bytes of the leader's replica",
                "size_bytes"),
        _total("partiscope_topic_partition_isr_shrinks_total",
               "How often the ISR has lost a member", "isr_shrinks"),
        _total("partiscope_topic_partition_isr_expands_total",
               "How often the ISR has won a member", "isr_expands"),
    ),
)  # fmt: skip
_GROUPS: Final = SeriesGroup(
    of="groups",
    rows=lambda source: source.groups,
    labels=_GROUP,
    families=(
        _known("kafka_consumergroup_members", "Members of the group", "members"),
        _family("partiscope_consumergroup_known_lag",
                "Lag in records, summed over the partitions whose lag is known", "lag_known"),
        _family("partiscope_consumergroup_unknown_lag_partitions",
                "Committed partitions whose lag is unknown", "lag_unknown"),
        _family("partiscope_consumergroup_lag_seconds",
                "Age of the next unread record, of the partition furthest behind",
                seconds("lag_ms")),
        _family("partiscope_consumergroup_data_loss_seconds",
                "Until retention deletes unread records, of the partitions that tell; 0: it has",
                seconds("loss_ms")),
        _family("partiscope_consumergroup_clear_seconds",
                "Until lag is 0 at its trend; +Inf: not at this one", seconds("clears_ms")),
        _family("partiscope_consumergroup_lag_records_per_second",
                "How fast lag grows; below 0 it shrinks", "trend_per_s"),
        _family("partiscope_consumergroup_consumed_records_per_second",
                "How fast its committed offsets move", "consumed_per_s"),
    ),
)  # fmt: skip
_GROUP_VERDICTS: Final = SeriesGroup(
    of="groups",
    rows=lambda source: source.group_verdicts,
    labels={**_GROUP, "verdict": "verdict"},
    families=(
        _family("partiscope_consumergroup_verdict",
                "State set: 1 for the worst verdict on its partitions; absent without a verdict",
                "is_set"),
    ),
)  # fmt: skip
_GROUP_TOPICS: Final = SeriesGroup(
    of="group_topics",
    rows=lambda source: source.group_topics,
    labels={**_GROUP, **_TOPIC},
    families=(
        _known("kafka_consumergroup_current_offset_sum", "Committed offsets, summed up", "offsets"),
        _known("kafka_consumergroup_lag_sum",
               "Lag in records, summed up; absent while that of a partition is unknown",
               "lag_whole"),
    ),
)  # fmt: skip
_COMMITS: Final = SeriesGroup(
    of="group_partitions",
    rows=lambda source: source.commits,
    labels={**_GROUP, **_PARTITION},
    families=(
        _known("kafka_consumergroup_current_offset", "Committed offset", "committed_offset"),
        _known("kafka_consumergroup_lag", "Lag in records", "lag"),
        _family("partiscope_consumergroup_partition_lag_seconds", "Age of the next unread record",
                seconds("lag_ms")),
        _family("partiscope_consumergroup_partition_data_loss_seconds",
                "Until retention deletes the next unread record; +Inf: not within 400 days",
                seconds("loss_ms")),
    ),
)  # fmt: skip
_REASSIGNMENTS: Final = SeriesGroup(
    of="reassignments",
    rows=lambda source: source.reassignments,
    labels={"reassignment": "id"},
    families=(
        _family("partiscope_reassignment_bytes", "Data to copy", "bytes_total"),
        _family("partiscope_reassignment_copied_bytes", "Data copied so far", "bytes_done"),
        _family("partiscope_reassignment_partitions", "Partitions to move", "partitions_total"),
        _family("partiscope_reassignment_moved_partitions", "Partitions that have arrived",
                "partitions_done"),
        _family("partiscope_reassignment_stalled_partitions", "Partitions that do not get on",
                "stalled"),
        _family("partiscope_reassignment_bytes_per_second", "How fast it copies", "rate"),
        _family("partiscope_reassignment_throttle_bytes_per_second", "Its throttle", "throttle"),
        _family("partiscope_reassignment_remaining_seconds", "Estimated, at the latest", "eta_s"),
        _family("partiscope_reassignment_updated_timestamp_seconds",
                "When the executor told of it last", seconds("updated_ms")),
    ),
)  # fmt: skip
_PHASES: Final = SeriesGroup(
    of="reassignments",
    rows=lambda source: source.reassignment_phases,
    labels={"reassignment": "id", "phase": "phase"},
    families=(
        _family("partiscope_reassignment_phase", "State set: 1 for its phase, 0 for others",
                "is_set"),
    ),
)  # fmt: skip
JOB: Final = SeriesGroup(
    of="job",
    rows=lambda table: table,
    labels={},
    is_of_cluster=False,
    families=(
        _family("partiscope_job_written_timestamp_seconds",
                "When the metrics job wrote its newest batch", seconds("written_ms")),
        _family("partiscope_job_batch_seconds", "Duration of its newest batch",
                seconds("batch_ms")),
        _family("partiscope_job_delay_seconds",
                "From the begin of the newest round until it was in the store",
                seconds("delay_ms")),
        _family("partiscope_job_records_per_second", "Samples that it reads", "records_per_s"),
        _family("partiscope_job_remembered_rows", "Replicas and commits that it remembers",
                "state_rows"),
        _total("partiscope_job_bad_records_total", "Samples that it could not use",
               "bad_records_total"),
        _total("partiscope_job_lost_records_total", "Samples that were gone before it read them",
               "lost_records_total"),
        _total("partiscope_job_late_rounds_total",
               "Rounds that came after a newer one of their source", "late_rounds_total"),
    ),
)  # fmt: skip
LEFT_OUT: Final = SeriesGroup(
    of="left_out",
    rows=lambda table: table,
    labels={"of": "of"},
    families=(
        _family("partiscope_left_out",
                "How many have no series: beyond a limit, or their labels are too long", "count"),
    ),
)  # fmt: skip
GROUPS: Final = (
    _WHOLE, _STATUSES, _VERDICTS, _SEVERITIES, _FINDINGS, _BROKER_INFOS, _BROKERS,
    _BROKER_STATUSES, _KMINION_BROKERS, _LOG_DIRS, _REASSIGNMENTS, _PHASES, _GROUPS,
    _GROUP_VERDICTS, _TOPICS, _KMINION_TOPICS, _GROUP_TOPICS, _PARTITIONS, _COMMITS,
)  # fmt: skip
"""In the order in which they are written: where bytes are short, the last are left out."""
EVERY_GROUP: Final = (*GROUPS, JOB, LEFT_OUT)
