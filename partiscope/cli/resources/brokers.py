"""``partiscope brokers``: list and describe, by the figures that the screens show."""

import sys
from typing import Annotated

import typer

from control.operations.catalogue.brokers.clear_throttles import ClearThrottles
from control.operations.catalogue.brokers.cordon import Cordon
from control.operations.catalogue.brokers.uncordon import Uncordon
from control.views.snapshots.snapshot import broker_page
from control.views.tables.brokers import LOG_DIRS, log_dir_rows, several_log_dirs
from control.views.tables.export import cells_of, values_of
from control.views.tables.query import TableQuery
from partiscope.cli.reassignments.drain import Broker, drain
from partiscope.cli.resources.acks_lesson import acks_lesson
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
from partiscope.cli.shared.operations import Reason, run_operations
from partiscope.cli.shared.options import Bootstrap, DryRun, Json, Store, Yes, write_json
from partiscope.cli.shared.tables import write_figures, write_rows
from partiscope.cli.shared.watching import watchable

app = typer.Typer(
    cls=ListByDefault,
    help="List brokers with load, skew and disk (what `partiscope brokers` alone does), describe "
    "one, let one receive no new replicas, or drain it.",
)

LogDirs = Annotated[
    list[str] | None,
    typer.Option("--log-dir", help="Only this log directory; repeatable. All without it."),
]


@app.command("list", epilog="Example: partiscope brokers list --sort -skew --filter 'disk>80'")
@watchable()
def list_brokers(
    *,
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
    """Every broker: status, replicas, leaders, bytes, throughput, skew, disk, age."""
    snapshot = snapshot_for(bootstrap=bootstrap, store=store, at=at)
    wish = Wish(name="brokers", filter=filter_, sort=sort, columns=columns, limit=limit,
                csv=csv, as_json=as_json)  # fmt: skip
    show_list(lambda query: broker_page(snapshot, query), wish)


@app.command("describe", epilog="Example: partiscope brokers describe 101")
def describe(
    broker: Broker,
    at: At = None,
    bootstrap: Bootstrap = None,
    store: Store = None,
    as_json: Json = False,
) -> None:
    """All figures of one broker, and of its log directories where it has several."""
    snapshot = snapshot_for(bootstrap=bootstrap, store=store, at=at)
    page = broker_page(snapshot, TableQuery(filter=f"broker={broker}"))
    if not page.rows:
        known = ", ".join(map(str, snapshot.broker_table["broker"].to_pylist()))
        raise CommandError(f"there is no broker {broker}; there are {known}", Exit.WRONG_USE)
    if as_json:
        told = [cells_of(row) for row in log_dir_rows(snapshot.evidence, broker)]
        write_json({**values_of(page)[0], "log_directories": told})
        return
    write_figures(page.columns, page.rows[0])
    if directories := several_log_dirs(snapshot.evidence, broker):
        sys.stdout.write("\n")
        write_rows(LOG_DIRS.columns, directories)


@app.command("cordon", epilog="Example: partiscope brokers cordon 103 --reason 'disk to replace'")
def cordon(
    broker: Broker,
    *,
    log_dir: LogDirs = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Let a broker receive no new replicas (Kafka 4.3 and later); what it holds stays."""
    asked = Cordon(broker=broker, directories=tuple(log_dir or ()), reason=reason)
    run_operations([asked], {"broker": broker}, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip


@app.command("uncordon", epilog="Example: partiscope brokers uncordon 103")
def uncordon(
    broker: Broker,
    *,
    log_dir: LogDirs = None,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Let a broker receive new replicas again."""
    asked = Uncordon(broker=broker, directories=tuple(log_dir or ()), reason=reason)
    run_operations([asked], {"broker": broker}, bootstrap=bootstrap, dry_run=dry_run,
                   yes=yes, as_json=as_json)  # fmt: skip


@app.command("clear-throttles", epilog="Example: partiscope brokers clear-throttles --dry-run")
def clear_throttles(
    *,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Remove replication throttles that another tool, or a move that died, has left."""
    asked = ClearThrottles(reason=reason)
    run_operations([asked], {}, bootstrap=bootstrap, dry_run=dry_run, yes=yes, as_json=as_json)


app.command("acks-lesson", epilog="Example: partiscope brokers acks-lesson 102")(acks_lesson)
app.command("drain", epilog="Example: partiscope brokers drain 103 --reason 'old disk'")(drain)
