"""The application is about one cluster at a time; with several watched, ``c`` switches."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from control.views.paths import PathError, ViewPath, parse_path
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.actions import Navigation
from tui.messages import SnapshotArrived
from tui.screens.base import ViewScreen
from tui.screens.clusters import ClustersScreen
from tui.screens.views import build_screen
from tui.services import Elsewhere, Services

if TYPE_CHECKING:
    from control.operations.session import OperationSession


class ClusterApp(Navigation):
    """Knows the services of the cluster that is shown, and how to open those of the others."""

    def __init__(self, services: Services, others: Sequence[Elsewhere], **options: Any) -> None:
        super().__init__(**options)
        self.services = services
        here = Elsewhere(watched=services.watched, open=lambda: services)
        self._clusters = {each.watched.name: each for each in (here, *others)}
        self._opened = {services.watched.name: services}
        self._session: OperationSession | None = None
        self._switching = Lock()
        self._unsubscribe = self._subscribe()

    @property
    def session(self) -> OperationSession:
        """The session that acts on the cluster; made when first needed, in this loop."""
        if self._session is None:
            from control.operations.session import OperationSession  # a Kafka client comes with it

            services = self.services
            self._session = OperationSession(
                services.watched, bus=services.bus, denied=partial(self._denied_of, services)
            )
        return self._session

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clusters to choose from, the shown one first."""
        here = self.services.watched.name
        return (here, *(name for name in self._clusters if name != here))

    @property
    def every_services(self) -> tuple[Services, ...]:
        """Services of all clusters, in the order in which they are watched."""
        return tuple(self._services_of(name) for name in self._clusters)

    def action_clusters(self) -> None:
        """``c``: another cluster."""
        if len(self.names) == 1:
            self.notify("one cluster is watched: `partiscope up --cluster A --cluster B` for more")
            return
        known = [self._clusters[name].watched for name in self.names]
        self.push_screen(ClustersScreen(known), self._chosen)

    def action_open(self, path: str) -> None:
        """Show a view; one of another cluster's after switching to that."""
        try:
            place = parse_path(path)
        except PathError:
            super().action_open(path)  # it says what is wrong
            return
        name = self.elsewhere(place)
        if name:
            if name not in self.names:
                self.notify(f"no cluster {name} is watched here", severity="warning")
                return
            self.run_worker(self._switch(name, str(_without_cluster(place))))
            return
        super().action_open(str(_without_cluster(place)))

    def elsewhere(self, path: ViewPath) -> str:
        """The name of the other cluster that a path is about; empty: it is about this one."""
        name = path.query.get("cluster", "")
        return name if name != self.services.watched.name else ""

    def link_of(self, path: ViewPath) -> str:
        """The path for others: with the cluster, where more than one is watched."""
        if len(self.names) == 1:
            return str(path)
        return str(replace(path, query={**path.query, "cluster": self.services.watched.name}))

    async def on_unmount(self) -> None:
        """Leave the feeds and the cluster."""
        self._unsubscribe()
        if self._session is not None:
            await self._session.__aexit__()

    def _chosen(self, name: str | None) -> None:
        if name is not None and name != self.services.watched.name:
            here = str(self.screen.path) if isinstance(self.screen, ViewScreen) else ""
            self.run_worker(self._switch(name, here))

    async def _switch(self, name: str, path: str) -> None:
        """Everything from the other cluster, on the same view; one switch after the other."""
        async with self._switching:
            if name != self.services.watched.name:
                await self._go_to_cluster(self._services_of(name))
            if path not in ("", "overview"):
                self.action_open(path)

    async def _go_to_cluster(self, services: Services) -> None:
        self._unsubscribe()
        left, self._session = self._session, None
        self.services = services
        self._left_cluster()  # before anything waits: screens of the old cluster still look here
        services.feed.start()
        self._unsubscribe = self._subscribe()
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        await self.push_screen(build_screen(ViewPath()))
        if left is not None:
            await left.__aexit__()

    def _denied_of(self, services: Services) -> Mapping[str, str]:
        """Operations that are not allowed on the cluster, shown or left."""
        shown = self.snapshot if services is self.services else services.feed.current
        return shown.denied_operations

    def _left_cluster(self) -> None:
        """Hook: what was held of the cluster that was shown is not shown any more."""

    def _services_of(self, name: str) -> Services:
        if name not in self._opened:
            self._opened[name] = self._clusters[name].open()
        return self._opened[name]

    def _subscribe(self) -> Callable[[], None]:
        feed = self.services.feed
        return feed.subscribe(partial(self._take, feed))

    def _take(self, feed: SnapshotFeed, snapshot: OperatorSnapshot) -> None:
        """Called in the feed's thread: hand over to ours."""
        self.post_message(SnapshotArrived(snapshot, feed))


def _without_cluster(path: ViewPath) -> ViewPath:
    return replace(path, query={k: v for k, v in path.query.items() if k != "cluster"})
