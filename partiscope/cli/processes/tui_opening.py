"""Opening of the terminal screen: it needs neither the command line's library nor settings beyond
this."""

import gc
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Self

from control.model.command_line import CommandFlags, cluster_flag, use_flags
from control.model.watched_cluster import WatchedCluster
from control.views.tour import Offer

if TYPE_CHECKING:
    from tui.app import PartiscopeApp
    from tui.terminal_session import Services as ServicesOfScreens

ESCAPE_MS: Final = 25
"""Within so long after Escape follows what makes it a sequence; ``ESCDELAY`` says otherwise. A
terminal sends a sequence in one piece, over SSH as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Words and settings of ``partiscope tui``, as the screen takes them."""

    path: str
    store: str
    bus: str | None
    bus_id: str | None
    flags: CommandFlags
    """What commands must carry that the screen tells."""
    clusters: tuple[WatchedCluster, ...]
    """The chosen one first."""
    is_plain: bool
    """Address and id are all there is to know of the connections, and no users are declared."""
    has_mouse: bool = True
    tour: Offer = Offer.NONE
    tour_mark: str = ""
    """File that is there once the tour has begun by itself."""
    chain_file: str = ""
    """Head of the journal's chain."""
    key_files: tuple[str, ...] = ()
    """Of this installation, then of others that are believed."""

    def encode(self) -> bytes:
        """One JSON document."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, told: bytes) -> Self:
        """Inverse of ``encode``."""
        document: dict[str, Any] = json.loads(told)
        clusters = tuple(WatchedCluster(**each) for each in document.pop("clusters"))
        flags = CommandFlags(**document.pop("flags"))
        tour = Offer(document.pop("tour"))
        key_files = tuple(document.pop("key_files"))
        return cls(clusters=clusters, flags=flags, tour=tour, key_files=key_files, **document)


def load() -> None:
    """Have ready what reads the first figures. Nothing of it is garbage, nor looked through."""
    gc.disable()
    from control.views.snapshots.process_memory import be_quick, be_small

    be_quick()
    _load_undocumented()
    from control.views.snapshots import collector_findings as watch  # noqa: F401
    from spark_metrics.window import aggregates  # noqa: F401

    be_small()


def _load_undocumented() -> None:
    """PyArrow reads the documentation of each of its functions while it is loaded, which takes a
    tenth of all loading, and nobody here asks for it."""
    reader = "pyarrow.vendored.docscrape"
    if "pyarrow.compute" in sys.modules or reader in sys.modules:
        return
    sys.modules[reader] = blank = ModuleType(reader)
    blank.NumpyDocString = lambda text: {"Parameters": ()}  # type: ignore[attr-defined]
    try:
        import_module("pyarrow.compute")
    finally:
        del sys.modules[reader]


def show(opening: Opening) -> None:
    """Open the screen, until it is left."""
    load()
    from control.operations.bus.chain import use_chain
    from control.operations.bus.proof import use_keys
    from control.views.snapshots.feed import feed_of
    from partiscope.journal_chain import ChainFile
    from partiscope.proof_keys import KeyFiles
    from spark_metrics.window.aggregates import AggregatesReader
    from tui.journal_watch import JournalWatch
    from tui.terminal_session import OtherCluster, Services

    os.environ.setdefault("ESCDELAY", str(ESCAPE_MS))
    reader = AggregatesReader(opening.store)
    if opening.is_plain:
        _bind(opening)
    if opening.key_files:
        own, *further = map(Path, opening.key_files)
        use_keys(KeyFiles(own, further))
    if opening.chain_file:
        use_chain(ChainFile(Path(opening.chain_file)))
    first, *more = opening.clusters
    parts = ExitStack()

    def services_of(watched: WatchedCluster) -> Services:
        feed = feed_of(reader, watched, bus=opening.bus)
        journal = JournalWatch(opening.bus, watched)
        for part in (feed.stop, journal.stop):
            parts.callback(part)
        return Services(
            feed=feed,
            history=reader,
            watched=watched,
            bus=opening.bus,
            journal=journal,
            now_ms=reader.now_ms,
        )

    others = [OtherCluster(watched=other, open=partial(services_of, other)) for other in more]
    services = services_of(first)
    Thread(target=partial(_read_first, services), daemon=True).start()
    with parts:
        from control.messages.state_file import state_file
        from tui.app import PartiscopeApp
        from tui.preferences import FILE, Preferences

        kept = Preferences(state_file(FILE), tour_mark=Path(opening.tour_mark))
        app = PartiscopeApp(
            services, path=opening.path, others=others, preferences=kept, tour=opening.tour
        )
        use_flags(partial(_flags_of, app, opening))
        app.run(mouse=opening.has_mouse)


def _flags_of(app: "PartiscopeApp", opening: Opening) -> CommandFlags:
    """Flags that name the shown cluster."""
    name = app.session.watched.name
    if name == opening.clusters[0].name:
        return opening.flags
    return replace(opening.flags, cluster=cluster_flag(name))


def _bind(opening: Opening) -> None:
    """Connections go to the clusters that are meant; whoever read the settings has bound them,
    but that may be another process."""
    from control.kafka.connection.connections import use_connections
    from control.kafka.connection.settings import KafkaSettings

    ids: dict[str | None, str | None] = {it.bootstrap: it.cluster_id for it in opening.clusters}
    ids[opening.bus] = opening.bus_id or ids.get(opening.bus)
    use_connections(
        KafkaSettings(bootstrap=where, cluster_id=cluster_id)
        for where, cluster_id in ids.items()
        if where is not None
    )


def _read_first(services: "ServicesOfScreens") -> None:
    """While the screens are loaded: the first figures, and what the overview makes of them."""
    services.feed.start()
    first = services.feed.current
    _ = first.headline, first.finding_rows, first.broker_table, first.group_table


take: Callable[[Opening], None] = show
"""What becomes of an opening once its words and settings are read."""
