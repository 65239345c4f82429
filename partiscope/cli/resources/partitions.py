"""``partiscope partitions``: list and describe, by the figures that the screens show."""

from typing import Annotated

import typer

from control.kafka.errors import NoSuchPartitionError
from control.model.ids import TopicPartition, other_names
from control.views.snapshots.snapshot import (
    OperatorSnapshot,
    groups_of_partition,
    partition_page,
    replica_rows,
)
from control.views.tables.commits import GROUPS_OF_PARTITION
from control.views.tables.export import cells_of, values_of
from control.views.tables.partition_parts import REPLICAS
from control.views.tables.query import TableQuery
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.grammar import ListByDefault
from partiscope.cli.shared.listing import (
    At,
    Columns,
    Csv,
    Filter,
    Limit,
    Sort,
    Wish,
    show_list,
    snapshot_for,
)
from partiscope.cli.shared.options import Bootstrap, Json, Store, write_json, write_lines
from partiscope.cli.shared.tables import write_figures, write_rows
from partiscope.cli.shared.watching import watchable

app = typer.Typer(
    cls=ListByDefault,
    help="List partitions with their figures (what `partiscope partitions` alone does), or "
    "describe one with its replicas and groups.",
)
Topic = Annotated[str, typer.Argument(help="Name of the topic.")]
Partition = Annotated[int, typer.Argument(min=0, help="Number of the partition.")]


@app.command("list", epilog="Example: partiscope partitions list --filter 'status:under' --csv")
@watchable()
def list_partitions(
    *,
    topic: Annotated[str | None, typer.Option(help="Only those of this topic.")] = None,
    filter_: Filter = "",
    sort: Sort = "",
    columns: Columns = "",
    limit: Limit = None,
    at: At = None,
    bootstrap: Bootstrap = None,
    store: Store = None,
    csv: Csv = False,
    as_json: Json = False,
) -> None:
    """Every partition: status, leader, replicas, ISR, size, records, throughput, lag."""
    snapshot = snapshot_for(bootstrap=bootstrap, store=store, at=at)
    wish = Wish(name="partitions", filter=filter_, sort=sort, columns=columns, limit=limit,
                csv=csv, as_json=as_json)  # fmt: skip
    if topic is not None and not partition_page(snapshot, topic=topic).total:
        raise _no_topic(snapshot, topic)
    show_list(lambda query: partition_page(snapshot, query, topic=topic), wish)


@app.command("describe", epilog="Example: partiscope partitions describe orders 3")
def describe(
    *,
    topic: Topic,
    partition: Partition,
    at: At = None,
    bootstrap: Bootstrap = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """All figures of one partition, its replicas, and the groups that read it."""
    snapshot = snapshot_for(bootstrap=bootstrap, store=store, at=at)
    page = partition_page(snapshot, TableQuery(filter=f"partition={partition}"), topic=topic)
    if not page.total:
        raise _no_topic(snapshot, topic)
    if not page.rows:
        raise NoSuchPartitionError(topic, partition, count=page.total)
    key = TopicPartition(topic, partition)
    replicas, groups = replica_rows(snapshot, key), groups_of_partition(snapshot, key)
    if as_json:
        of_groups = [cells_of(row) for row in groups]
        told = {"replicas_now": [cells_of(row) for row in replicas], "groups": of_groups}
        write_json({**values_of(page)[0], **told})
        return
    write_figures(page.columns, page.rows[0])
    write_lines("", "REPLICAS")
    write_rows(REPLICAS.columns, replicas)
    write_lines("", "GROUPS")
    write_rows(GROUPS_OF_PARTITION, groups)


def _no_topic(snapshot: OperatorSnapshot, topic: str) -> CommandError:
    known = other_names(topic, sorted(snapshot.cluster.topics))
    return CommandError(f"nothing is known of a topic {topic!r}; {known}", Exit.WRONG_USE)
