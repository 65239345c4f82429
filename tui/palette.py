"""The palette: every view, operation and key of what is open; names come with what is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from textual.app import SystemCommand
from textual.command import Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen

from control.views.keymap import PLACES
from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot
from tui.messages import PathChosen
from tui.navigator import Navigator
from tui.screens.base import VIEWS_OF_FORMS, ViewScreen, given_to

HITS_MAX: Final = 200
"""Of those that hold all words, the first in order of names."""
_COMMANDS: Final = (
    ("Reassign from here", "plan moves (R)", "screen.here('plan')"),
    ("Produce messages", "to the topic here (P)", "screen.here('produce')"),
    ("What if the broker here fails", "what would be offline (w)", "screen.here('what-if')"),
    ("Check a plan of any tool", "paste it or name its file", "screen.here('check')"),
    ("Messages of the topic here", "browse them (v)", "screen.here('browse')"),
    ("Configs of what is here", "of the topic or broker, from where (V)", "screen.here('configs')"),
    ("Another time", "tables, findings and charts as of then (@)", "navigate('time')"),
    ("Less of the past in charts", "zoom in (+)", "navigate('zoom', -1)"),
    ("More of the past in charts", "zoom out (-)", "navigate('zoom', 1)"),
    ("Explain the figures of the row", "those without room too (i)", "navigate('explain')"),
    ("Copy the link of this view", "by OSC 52 (y)", "copy_link"),
    ("Another cluster", "switch to it (c)", "navigate('cluster')"),
    ("Pause, resume", "hold the figures still (Space)", "pause"),
    ("Mouse on, off", "off: the terminal selects text by mouse (M)", "mouse"),
    ("Paint the screen anew", "when somebody else wrote on this terminal (ctrl+l)", "repaint"),
    ("Help", "all keys (?)", "navigate('help')"),
)
"""What else can be done: words, what they mean, the action."""


@dataclass(frozen=True, slots=True)
class Named:
    """A view of one thing: what is typed to find it, and its path."""

    words: str
    path: str


class Names(Provider):
    """Topics, brokers, groups and partitions by name; nothing before something is typed."""

    async def search(self, query: str) -> Hits:
        """All words of the query are parts of the name or of what is seen."""
        screen = self.screen
        if not isinstance(screen, ViewScreen):
            return
        matcher = self.matcher(query)
        wanted = query.lower().split()
        for number, named in enumerate(_matching(screen.session.snapshot, wanted)):
            if number >= HITS_MAX:
                return
            score = max(matcher.match(named.words), 0.01)
            is_plain = "[" not in named.words  # Textual takes brackets for its markup
            yield Hit(
                score,
                matcher.highlight(named.words) if is_plain else Content(named.words),
                partial(screen.post_message, PathChosen(named.path)),
                help=named.path,
            )


def commands(screen: Screen[Any], navigator: Navigator) -> Iterable[SystemCommand]:
    """Every view, every operation, and every key of what is open."""
    if not isinstance(screen, ViewScreen):
        return
    for place in PLACES:
        go = partial(navigator.open, place.path)
        yield SystemCommand(f"Go to {place.title}", f"{place.help} (g {place.key})", go)
    by_partitions = partial(navigator.open, "map?by=partitions")
    yield SystemCommand("Go to Map by partitions", "every partition as a cell", by_partitions)
    yield from _operations(screen, navigator)
    for words, help_, action in _COMMANDS:
        yield SystemCommand(words, help_, _doing(action, screen, screen.app))
    for active in screen.active_bindings.values():
        binding = active.binding
        if active.node is screen and active.enabled and binding.description:
            key = screen.app.get_key_display(binding)
            act = _doing(binding.action, screen, screen)
            yield SystemCommand(f"Here: {binding.description}", f"key {key}", act)


def _operations(screen: ViewScreen, navigator: Navigator) -> Iterator[SystemCommand]:
    from control.operations.catalogue import FORMS  # a Kafka client comes with it

    for form in FORMS:
        if form.name not in VIEWS_OF_FORMS:
            words = screen.session.denied_words(form.name) or f"{form.help} ({form.key})"
            given = given_to(form.name, screen)
            act = partial(navigator.open_form, form.name, given, screen.marked_here)
            yield SystemCommand(form.title, words, act)


def _doing(action: str, screen: ViewScreen, namespace: DOMNode) -> Callable[[], object]:
    """Once the palette is closed."""
    return partial(screen.app.call_later, screen.app.run_action, action, namespace)


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
