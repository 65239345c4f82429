"""Things that a view's path names and that do not exist, in words, with the next step.

A view of something that does not exist offers nothing that could be done to it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

import pyarrow.compute as pc

from control.views.paths import ViewPath
from control.views.snapshots.snapshot import OperatorSnapshot

METADATA_TOPIC: Final = "__cluster_metadata"
_ALIKE: Final = 0.6
"""How like a name must be to be meant, 1 being the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Something that is not there."""

    title: str
    steps: tuple[str, ...]
    crumbs: tuple[tuple[str, str], ...]
    """Words and paths of what is above it, and itself."""
    up: ViewPath
    """Where to look for what there is."""
    up_words: str


def missing(snapshot: OperatorSnapshot, path: ViewPath) -> Missing | None:
    """The thing that the path names and the snapshot lacks; None: nothing lacks, or nothing is
    known yet."""
    if snapshot.is_empty:
        return None
    params = path.params
    if "broker" in params:
        return _broker(snapshot, int(params["broker"]))
    if "group" in params:
        return _group(snapshot, params["group"])
    if "topic" not in params:
        return None
    topic = params["topic"]
    if topic not in snapshot.cluster.topics:
        return _topic(snapshot, topic)
    return _partition(snapshot, topic, int(params["partition"])) if "partition" in params else None


def _broker(snapshot: OperatorSnapshot, broker: int) -> Missing | None:
    known: list[int] = sorted(snapshot.cluster.brokers["broker"].to_pylist())
    if broker in known:
        return None
    there = f"Registered are {', '.join(map(str, known[:8]))}{' …' if len(known) > 8 else ''}"
    soon = "If it is starting, this page fills by itself"
    return Missing(
        title=_title(snapshot, f"No broker {broker} is registered"),
        steps=(there, *_now_or_then(snapshot, soon)),
        crumbs=(("Brokers", "brokers"), (f"broker {broker}", "")),
        up=ViewPath(view="brokers"),
        up_words="All brokers",
    )


def _group(snapshot: OperatorSnapshot, group: str) -> Missing | None:
    known: list[str] = snapshot.group_table["group_id"].to_pylist()
    if group in known:
        return None
    soon = "If it is new, this page fills with its first commit"
    gone = "Its offsets may have expired, or it was deleted"
    return Missing(
        title=_title(snapshot, f"There is no group {group}"),
        steps=(*_meant(group, known), *_now_or_then(snapshot, soon, gone)),
        crumbs=(("Groups", "groups"), (group, "")),
        up=ViewPath(view="groups"),
        up_words="All groups",
    )


def _topic(snapshot: OperatorSnapshot, topic: str) -> Missing:
    soon = "If it is new, this page fills with its first sample"
    gone = "If it was deleted, the journal may say by whom"
    steps = (*_meant(topic, snapshot.cluster.topics), *_now_or_then(snapshot, soon, gone))
    if topic == METADATA_TOPIC:
        steps = ("Only controllers replicate the metadata log: Kafka lets no client consume it",)
    return Missing(
        title=_title(snapshot, f"There is no topic {topic}"),
        steps=steps,
        crumbs=(("Topics", "topics"), (topic, "")),
        up=ViewPath(view="topics"),
        up_words="All topics",
    )


def _partition(snapshot: OperatorSnapshot, topic: str, partition: int) -> Missing | None:
    rows = snapshot.cluster.partitions
    numbers = rows["partition"].filter(pc.equal(rows["topic"], topic))
    if pc.index(numbers, partition).as_py() >= 0:
        return None
    last = pc.max(numbers).as_py()
    soon = "If partitions were just added, this page fills with its first sample"
    above = str(ViewPath(view="topic", params={"topic": topic}))
    return Missing(
        title=_title(snapshot, f"{topic} has no partition {partition}"),
        steps=(f"It has 0{f' to {last}' if last else ' alone'}", *_now_or_then(snapshot, soon)),
        crumbs=(("Topics", "topics"), (topic, above), (f"{topic}-{partition}", "")),
        up=ViewPath(view="topic", params={"topic": topic}),
        up_words=f"All partitions of {topic}",
    )


def _title(snapshot: OperatorSnapshot, words: str) -> str:
    return f"{words} at that time" if snapshot.is_past else words


def _now_or_then(snapshot: OperatorSnapshot, *steps: str) -> tuple[str, ...]:
    """Steps that help now; of the past nothing comes any more."""
    return ("It may be there now: look at the present",) if snapshot.is_past else steps


def _meant(name: str, known: Iterable[str]) -> tuple[str, ...]:
    found = get_close_matches(name, [*known], n=3, cutoff=_ALIKE)
    return (f"Did you mean {' or '.join(found)}?",) if found else ()
