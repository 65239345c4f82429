"""The table of topics, summed up from their partitions, and the small tables of topics read from
the cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from control.kafka.ports import PartitionMetadata, TopicMetadata
from control.model.columns import IntColumn, ints, list_lengths
from control.model.freshness import RATES
from control.model.status import OK, PARTITION_SEVERITIES
from control.views.tables import arrow, cells, units
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.partitions import (
    GROUPS_HELP,
    IN_HELP,
    MAX_LAG_HELP,
    OUT_HELP,
    PARTITIONS,
    PARTITIONS_HELP,
    RECORDS_HELP,
    SIZE_HELP,
    STATUSES,
    max_lag_cell,
    max_lags,
)
from control.views.tables.rows import Cell, Row
from spark_metrics.window.totals import stands_for_all


def _factor_cell(record: Mapping[str, Any]) -> Cell:
    least, most = record["replicas_count_min"], record["replicas_count_max"]
    return Cell(most, str(least) if least == most else f"{least}–{most}")


TOPICS: Final = Table(
    name="topics",
    about="A row per topic, summed up from its partitions",
    key=lambda record: record["topic"],
    path=lambda record: f"topics/{record['topic']}",
    searched="topic",
    example="lag>10000 partitions>=12 status:under-replicated",
    columns=(
        name_column("topic", "topic", rank=1, filter="topic"),
        column("status", "status", units.TEXT,
               "The worst of its partitions", rank=1, sort="judged_rank",
               cell=lambda record: cells.status_cell(record["status"]),
               filter="status", filter_on=STATUSES),
        column("partitions", "partitions", units.COUNT, PARTITIONS_HELP, rank=2,
               source="partition_count",
               filter="partitions"),
        column("replicas", "replication factor", units.COUNT,
               "Replicas of a partition; a range where they differ",
               source="replicas_count_max", cell=_factor_cell),
        column("size_bytes", "bytes", units.BYTES, f"{SIZE_HELP}; of all replicas", rank=1,
               source="all_bytes", filter="size bytes",
               cell=lambda it: cells.sum_cell(it["all_bytes"], it["known_bytes_sum"],
                                              cells.bytes_cell)),
        column("in_records", "records/s", units.RECORD_RATE, RECORDS_HELP, rank=2,
               source="in_records_per_s", filter="rate"),
        column("in_bytes", "in/s", units.BYTE_RATE, IN_HELP, rank=2,
               source="in_bytes_per_s", filter="in"),
        column("out_bytes", "out/s", units.BYTE_RATE, OUT_HELP, source="out_bytes_per_s",
               filter="out"),
        column("max_lag", "max lag", units.COUNT, MAX_LAG_HELP, rank=2,
               filter="lag max_lag", cell=max_lag_cell),
        column("groups", "groups", units.COUNT, GROUPS_HELP,
               source="group_count", filter="groups"),
        name_column("read_by", "read by", "Names of these groups", source="group_names",
                    filter="group reader", cell=worded(lambda record: record["group_names"])),
    ),
)  # fmt: skip
LISTED_TOPICS: Final = Table(
    name="listed topics",
    about="The topics that the brokers list, without figures",
    key=TOPICS.key,
    path=TOPICS.path,
    columns=TOPICS.only("topic", "partitions", "replicas"),
)
TOPIC_PARTITIONS: Final = Table(
    name="partitions of a topic",
    about="A row per partition of one topic, read from the cluster",
    key=lambda record: str(record["partition"]),
    path=PARTITIONS.path,
    columns=PARTITIONS.only("partition", "leader", "replicas", "isr"),
)


def topic_table(partitions: pa.Table, commits: pa.Table) -> pa.Table:
    """One row per topic, summed up from ``partition_table``; ``statuses`` are all words that apply
    to one of its partitions. ``commits`` (the store's) tell the groups that read it."""
    replicas = pa.array(list_lengths(partitions["replicas"]))
    plus = arrow.with_columns(partitions, {"replicas_count": replicas})
    grouped = plus.group_by("topic").aggregate(
        [
            ("partition", "count"),
            ("rank", "min"),
            ("statuses", "distinct"),
            ("replicas_count", "min"),
            ("replicas_count", "max"),
            *((name, how) for name in ("all_bytes", "known_bytes") for how in ("sum", "count")),
            *((name, how) for name in RATES for how in ("sum", "count")),
        ]
    )
    words = list(PARTITION_SEVERITIES)
    statuses = [words[rank] for rank in grouped["rank_min"].to_pylist()]
    told, parts = grouped["statuses_distinct"].to_pylist(), grouped["partition_count"]
    named = arrow.with_columns(
        grouped.drop_columns("statuses_distinct"),
        {
            "status": pa.array(statuses, pa.string()),
            "judged_rank": arrow.judged_ranks(grouped["rank_min"], pa.array(statuses, pa.string())),
            "statuses": pa.array(map(_united, told), pa.string()),
            "all_bytes": arrow.whole(grouped, "all_bytes", "sum", parts),
            **{name: arrow.whole(grouped, name, "sum", parts, stands_for_all) for name in RATES},
            **_readers(grouped["topic"], commits),
            **max_lags(commits, _rows_of(grouped["topic"], commits), grouped.num_rows),
        },
    )
    return arrow.sorted_by(named, [arrow.INTERNAL, "topic"])


def listed_topic_rows(topics: Iterable[TopicMetadata]) -> tuple[Row, ...]:
    """The topics in the order given."""
    return LISTED_TOPICS.rows(_topic_record(it) for it in topics)


def topic_partition_rows(topic: TopicMetadata) -> tuple[Row, ...]:
    """The partitions of a topic in order."""
    return TOPIC_PARTITIONS.rows(map(_partition_record, topic.partitions))


def _readers(topics: pa.ChunkedArray, commits: pa.Table) -> dict[str, pa.Array]:
    """Count and names of the groups with a commit in each topic; null names: there is none."""
    committed = commits.filter(pc.is_valid(commits["committed_offset"]))
    pairs = committed.group_by(["topic", "group_id"]).aggregate([]).sort_by("group_id")
    read = pairs.group_by("topic", use_threads=False).aggregate([("group_id", "list")])
    place = pc.index_in(topics, read["topic"].combine_chunks())
    names = read["group_id_list"].combine_chunks()
    counts = pc.fill_null(pc.list_value_length(names).take(place), 0)
    return {"group_count": counts, "group_names": pc.binary_join(names, ", ").take(place)}


def _rows_of(topics: pa.ChunkedArray, commits: pa.Table) -> IntColumn:
    """The topic that each commit is about, -1: none."""
    return ints(pc.index_in(commits["topic"], topics.combine_chunks()))


def _united(told: Sequence[str]) -> str:
    """The words of some partitions together, as of one; it is ok where all of them are."""
    words = {word: None for each in told for word in each.split()}
    if len(words) > 1:
        words.pop(OK, None)
    return f" {' '.join(words)} "


def _topic_record(topic: TopicMetadata) -> dict[str, object]:
    factors = [len(it.target_replicas) for it in topic.partitions] or [0]
    return {
        "topic": topic.name,
        "partition_count": len(topic.partitions),
        "replicas_count_min": min(factors),
        "replicas_count_max": max(factors),
    }


def _partition_record(it: PartitionMetadata) -> dict[str, object]:
    return {
        "topic": it.topic,
        "partition": it.partition,
        "leader": it.leader,
        "is_preferred": it.replicas[:1] == (it.leader,),
        "replicas": it.replicas,
        "isr": it.isr,
    }
