"""Names in the palette: whatever the cluster has, and what can be seen or done of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from textual.command import Hit, Hits, Provider
from textual.content import Content

from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.context import AppContext

HITS_MAX: Final = 200
"""Of those that hold all words, the first in order of names."""


@dataclass(frozen=True, slots=True)
class Named:
    """A view of one thing: what is typed to find it, and its path."""

    words: str
    path: str


class Names(Provider):
    """Topics, brokers, groups and partitions by name; nothing before something is typed."""

    async def search(self, query: str) -> Hits:
        """All words of the query are parts of the name or of what is seen."""
        app = cast("AppContext", self.app)
        matcher = self.matcher(query)
        wanted = query.lower().split()
        for number, named in enumerate(_matching(app.snapshot, wanted)):
            if number >= HITS_MAX:
                return
            score = max(matcher.match(named.words), 0.01)
            is_plain = "[" not in named.words  # Textual takes brackets for its markup
            yield Hit(
                score,
                matcher.highlight(named.words) if is_plain else Content(named.words),
                partial(app.action_open, named.path),
                help=named.path,
            )


def _matching(snapshot: OperatorSnapshot, wanted: list[str]) -> Iterator[Named]:
    for named in _all(snapshot, wanted):
        words = named.words.lower()
        if all(word in words for word in wanted):
            yield named


def _all(snapshot: OperatorSnapshot, wanted: list[str]) -> Iterator[Named]:
    yield from _partitions(snapshot, wanted)
    for broker in snapshot.cluster.broker_ids:
        yield _named(f"Broker {broker}", "broker", broker=str(broker))
        what_if = ViewPath(view="what-if", query={"broker": str(broker)})
        yield Named(f"What if broker {broker} fails", str(what_if))
    for group in sorted(snapshot.group_table["group_id"].to_pylist()):
        yield _named(f"Group {group}", "group", group=group)
    for topic in snapshot.cluster.topics:
        yield _named(f"Topic {topic}", "topic", topic=topic)
        yield _named(f"Messages of topic {topic}", "browse", topic=topic)
        yield _named(f"Produce to topic {topic}", "produce", topic=topic)


def _partitions(snapshot: OperatorSnapshot, wanted: list[str]) -> Iterator[Named]:
    """``orders-7``, where that is typed: all of them would be too many."""
    for word in wanted:
        name, _, number = word.rpartition("-")
        if not name or not number.isdecimal():
            continue
        table = snapshot.cluster.partitions
        pairs = zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True)
        for topic, partition in pairs:
            if partition == int(number) and topic.lower().endswith(name):
                params = {"topic": topic, "partition": str(partition)}
                yield _named(f"Partition {topic}-{partition}", "partition", **params)
                yield _named(f"Segments of {topic}-{partition}", "segments", **params)


def _named(words: str, view: str, **params: str) -> Named:
    return Named(words, str(ViewPath(view=view, params=params)))
