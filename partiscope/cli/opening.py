"""What the terminal screen is opened with, and how it is opened: without a command line's library
and without settings, of which it needs no more than this."""

import gc
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from threading import Thread
from typing import Any, Final, Self

from control.model.fleet import WatchedCluster

ESCAPE_MS: Final = 25
"""Within so long after Escape follows what makes it a sequence; ``ESCDELAY`` says otherwise. A
terminal sends a sequence in one piece, over SSH as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Words and settings of ``partiscope tui``, as the screen takes them."""

    path: str
    store: str
    bus: str
    clusters: tuple[WatchedCluster, ...]
    """The chosen one first."""
    is_plain: bool
    """Addresses are all there is to know of the connections."""

    def encode(self) -> bytes:
        """One JSON document."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, told: bytes) -> Self:
        """Inverse of ``encode``."""
        document: dict[str, Any] = json.loads(told)
        clusters = tuple(WatchedCluster(**each) for each in document.pop("clusters"))
        return cls(clusters=clusters, **document)


def load() -> None:
    """Have ready what reads the first figures. Nothing of it is garbage, nor looked through."""
    gc.disable()
    from control.views.memory import be_quick, be_small

    be_quick()
    from control.views import feed, watch  # noqa: F401
    from spark_metrics import aggregates  # noqa: F401

    be_small()


def show(opening: Opening) -> None:
    """Open the screen, until it is left."""
    load()
    from control.views.feed import SnapshotFeed
    from control.views.watch import report_watch
    from spark_metrics.aggregates import AggregatesReader
    from tui.journal_watch import JournalWatch
    from tui.services import Elsewhere, Services

    os.environ.setdefault("ESCDELAY", str(ESCAPE_MS))
    reader = AggregatesReader(opening.store)
    first, *more = opening.clusters
    parts = ExitStack()

    def services_of(watched: WatchedCluster) -> Services:
        report = report_watch(opening.bus, watched.cluster_id)
        feed = SnapshotFeed(
            reader,
            cluster=watched.cluster_id,
            watch=report,
            is_read_only=watched.is_read_only,
        )
        elsewhere = {str(each.bootstrap) for each in opening.clusters if each != watched}
        journal = JournalWatch(opening.bus, elsewhere)
        for part in (feed.stop, journal.stop):
            parts.callback(part)
        return Services(
            feed=feed, history=reader, watched=watched, bus=opening.bus, journal=journal
        )

    others = [Elsewhere(watched=other, open=partial(services_of, other)) for other in more]
    services = services_of(first)
    Thread(target=services.feed.start, daemon=True).start()  # reads while the screens are loaded
    with parts:
        from tui.app import PartiscopeApp

        PartiscopeApp(services, path=opening.path, others=others).run()


take: Callable[[Opening], None] = show
"""What becomes of an opening once its words and settings are read."""
