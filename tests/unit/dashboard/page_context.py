"""A page context on a small cluster, without a server."""

import re
from html import unescape
from pathlib import Path
from typing import Any

from control.model.watched_cluster import WatchedCluster
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.store import StoreReader
from dashboard.cluster_actions import ClusterActions
from dashboard.components.markup import MARKUP
from dashboard.context import ClusterContext, PageContext
from dashboard.settings import DashboardSettings
from tests.support.store_builder import StoreBuilder, SyntheticSizes

SIZES = SyntheticSizes(topics=3, partitions=4, groups=3)


def context_on(
    store: Path, *, sizes: SyntheticSizes | None = SIZES, **settings: Any
) -> PageContext:
    """A page context on a synthetic store, empty where ``sizes`` is None.

    ``settings`` are those of the one cluster."""
    if sizes is not None:
        StoreBuilder(store).write_synthetic(sizes, history_s=30)
    reader = StoreReader(str(store))
    feed = SnapshotFeed(reader)
    feed.refresh()
    watched = WatchedCluster(**settings)
    given = DashboardSettings(store=str(store), clusters=[watched])
    chosen = ClusterContext(watched=watched, feed=feed, actions=ClusterActions(watched, bus=None))
    return PageContext(clusters={watched.name: chosen}, reader=reader, settings=given)


def words_of(component: Any) -> str:
    """All text of a component tree, as a reader would see it."""
    if component is None:
        return ""
    if isinstance(component, str | int | float):
        return str(component).replace("\N{NO-BREAK SPACE}", " ")
    if isinstance(component, list | tuple):
        return " ".join(filter(None, map(words_of, component)))
    if drawn := getattr(component, MARKUP, ""):
        return unescape(" ".join(re.sub(r"<[^>]*>", " ", drawn).split()))
    return words_of(getattr(component, "children", None))


def has_nested_lists(component: Any) -> bool:
    """React refuses a list among the children of a component."""
    children = getattr(component, "children", component)
    if not isinstance(children, list | tuple):
        return children is not component and has_nested_lists(children)
    return any(isinstance(item, list | tuple) or has_nested_lists(item) for item in children)
