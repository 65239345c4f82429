"""``partiscope tui``: the terminal screen."""

from typing import Annotated

import typer

from partiscope.cli.options import Bootstrap, Data, ReadOnly, Store, known_bootstrap, settings_with


def tui(
    *,
    path: Annotated[
        str, typer.Argument(help="View to open, e.g. topics/orders/partitions/3.")
    ] = "overview",
    bootstrap: Bootstrap = None,
    store: Store = None,
    bus: Annotated[str | None, typer.Option(help="HOST:PORT,… of the operations bus.")] = None,
    data: Data = None,
    read_only: ReadOnly = False,
) -> None:
    """Open the terminal screen: the same views, words and keys as the page."""
    from control.views.feed import SnapshotFeed
    from control.views.watch import report_watch
    from spark_metrics.aggregates import AggregatesReader
    from tui.app import PartiscopeApp
    from tui.services import Services

    settings = settings_with(data=data, bootstrap=bootstrap, read_only=read_only)
    reader = AggregatesReader(store or settings.store)
    address = bus or settings.bundled_bootstrap
    cluster = settings.shown_cluster
    feed = SnapshotFeed(reader, cluster=cluster, watch=report_watch(address, cluster))
    services = Services(
        feed=feed,
        history=reader,
        bootstrap=known_bootstrap(settings),
        bus=address,
        is_read_only=settings.read_only,
    )
    try:
        PartiscopeApp(services, path=path).run()
    finally:
        feed.stop()
