"""Tables of the screens on the command line: the same columns, filters, order and export."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from control.collector.report_writer import WatchReport
from control.model.watched_cluster import WatchedCluster
from control.views.plan_costs import NO_COSTS, PlanCosts
from control.views.snapshots.collector_findings import read_report
from control.views.snapshots.operation_findings import operations_now
from control.views.snapshots.past import NothingKeptError, look_back
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot_asking
from control.views.tables.export import export, values_of
from control.views.tables.query import LIMIT_MAX, Page, TableQuery
from partiscope.cli.shared.arguments import TIME_HELP, moment_of
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import now_ms, target_with, write_json
from partiscope.cli.shared.tables import write_page
from partiscope.identity import Target
from spark_metrics.window.aggregates import AggregatesReader, StoreUnreadableError

Filter = Annotated[
    str, typer.Option("--filter", "-q", help="As on the screens: 'lag>10k broker:102 -status:ok'.")
]
Sort = Annotated[str, typer.Option(metavar="COLUMN", help="-COLUMN: the largest first.")]
Columns = Annotated[
    str,
    typer.Option(metavar="NAME,…", help="Columns to show, or `all`.  [default: those that fit]"),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, max=LIMIT_MAX, help=f"Rows to show at most; a table has {LIMIT_MAX:,}."),
]
Csv = Annotated[bool, typer.Option("--csv", help="CSV of all rows on stdout.")]
At = Annotated[
    str | None, typer.Option(metavar="TIME", help="Show the state at this time: " + TIME_HELP)
]
ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a table is wanted."""

    name: str
    """Of the rows, in JSON."""
    filter: str = ""
    sort: str = ""
    columns: str = ""
    limit: int | None = None
    """None: as many as a table shows at most."""
    csv: bool = False
    as_json: bool = False
    hides_internal: bool = False

    @property
    def needs_figures(self) -> bool:
        """Whether it asks for more than the brokers' own list of names."""
        return bool(self.filter or self.sort or self.columns or self.csv or self.limit)

    @property
    def query(self) -> TableQuery:
        """For ``control.views.tables.query``."""
        columns = "" if self.columns == ALL else self.columns
        return TableQuery(
            filter=self.filter, sort=self.sort, columns=columns, limit=self.limit or LIMIT_MAX,
            hides_internal=self.hides_internal,
        )  # fmt: skip


def snapshot_for(
    *, bootstrap: str | None, store: str | None, at: str | None = None
) -> OperatorSnapshot:
    """The figures of a cluster, now or at a moment.

    Raises:
        CommandError: status 4; there are none. Status 2: nothing is kept of that moment.
    """
    target, now = target_with(bootstrap=bootstrap, store=store), now_ms()
    newest = snapshot_of(target, now)
    if at is None:
        return newest
    cluster = newest.cluster.cluster
    try:
        reader = AggregatesReader(target.store)
        return look_back(reader, cluster=cluster, at_ms=moment_of(at, "--at"), now_ms=now)
    except NothingKeptError as error:
        raise CommandError(f"--at {at}: {error}", Exit.WRONG_USE) from error
    except StoreUnreadableError as error:
        raise CommandError(str(error), Exit.UNREACHABLE) from error


def show_list(page_of: Callable[[TableQuery], Page], wish: Wish) -> None:
    """A table, on stdout, as text, JSON or CSV.

    Raises:
        CommandError: status 2; filter, sort or columns that cannot be followed.
    """
    page = page_of(wish.query)
    if page.problem:
        raise CommandError(page.problem, Exit.WRONG_USE)
    if wish.csv:
        sys.stdout.writelines(export(page_of, wish.query, format="csv"))
    elif wish.as_json:
        write_json({wish.name: values_of(page), "total": page.total, "matching": page.matching})
    else:
        write_page(page, is_chosen=bool(wish.columns), more="--columns, --csv, --json")


def snapshot_of(target: Target, now_ms: int, *, with_operations: bool = False) -> OperatorSnapshot:
    """The newest figures of this cluster and no other; `with_operations`: and the findings about
    operations, for which the cluster is asked.

    Raises:
        CommandError: status 4; the store cannot be read, or has none of it.
    """
    watched, store = target.watched, target.store
    try:
        reader = AggregatesReader(store)
        aggregates = reader.now()
    except StoreUnreadableError as error:
        raise CommandError(str(error), Exit.UNREACHABLE) from error
    if aggregates is None:
        how = watched.unwatched or "start `partiscope up` (the first ones take some seconds)"
        raise CommandError(
            f"there are no figures in {store} yet: {how}, or name another store with --store.",
            Exit.UNREACHABLE,
        )
    snapshot = build_snapshot_asking(
        aggregates.tables,
        bootstrap=watched.bootstrap,
        version=aggregates.version,
        now_ms=now_ms - aggregates.clock_skew_ms,
        cluster=watched.cluster_id,
        watch=_report_of(target),
        operations=operations_now(watched, target.bus) if with_operations else (),
        history=reader,
        plan_costs=PlanCosts(watched, target.bus)
        if with_operations and watched.bootstrap
        else NO_COSTS,
    )
    if snapshot.is_empty and watched.cluster_id is not None:
        raise _none_of(watched, store)
    return snapshot


def _report_of(target: Target) -> WatchReport | None:
    cluster_id = target.watched.cluster_id
    if cluster_id is None or target.bus is None or not target.watched.is_collected:
        return None
    return read_report(target.bus, cluster_id)


def _none_of(watched: WatchedCluster, store: str) -> CommandError:
    how = watched.unwatched or "the first ones take some seconds; `partiscope doctor` says more"
    name = watched.name or watched.bootstrap
    return CommandError(
        f"{store} has no figures of cluster {watched.cluster_id} ({name}): {how}.",
        Exit.UNREACHABLE,
    )
