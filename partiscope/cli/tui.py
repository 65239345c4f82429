"""``partiscope tui``: the terminal screen."""

import os
import sys
from contextlib import ExitStack
from functools import partial
from threading import Thread
from typing import Annotated, Final

import typer

from control.model.fleet import WatchedCluster
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import Bootstrap, Data, ReadOnly, Store, settings_with
from partiscope.installation import fleet

ESCAPE_MS: Final = 25
"""Within so long after Escape follows what makes it a sequence; ``ESCDELAY`` says otherwise. A
terminal sends a sequence in one piece, over SSH as well."""


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
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(
            "the terminal screen needs a terminal: run it from a shell, over SSH with `ssh -t`. "
            "For scripts there is `partiscope status --json`.",
            Exit.WRONG_USE,
        )
    from control.views.memory import be_quick, be_small

    be_quick()
    from control.views.feed import SnapshotFeed
    from control.views.watch import report_watch
    from spark_metrics.aggregates import AggregatesReader
    from tui.journal_watch import JournalWatch
    from tui.services import Elsewhere, Services

    be_small()
    os.environ.setdefault("ESCDELAY", str(ESCAPE_MS))
    settings = settings_with(data=data, bootstrap=bootstrap, read_only=read_only)
    reader = AggregatesReader(store or settings.store)
    address = bus or settings.bundled_bootstrap
    first, *more = every = fleet(settings)
    parts = ExitStack()

    def services_of(watched: WatchedCluster) -> Services:
        report = report_watch(address, watched.cluster_id)
        feed = SnapshotFeed(
            reader,
            cluster=watched.cluster_id,
            watch=report,
            is_read_only=watched.is_read_only,
        )
        elsewhere = {str(each.bootstrap) for each in every if each != watched}
        journal = JournalWatch(address, elsewhere)
        for part in (feed.stop, journal.stop):
            parts.callback(part)
        return Services(feed=feed, history=reader, watched=watched, bus=address, journal=journal)

    others = [Elsewhere(watched=other, open=partial(services_of, other)) for other in more]
    services = services_of(first)
    Thread(target=services.feed.start, daemon=True).start()  # reads while the screens are loaded
    with parts:
        from tui.app import PartiscopeApp

        PartiscopeApp(services, path=path, others=others).run()
