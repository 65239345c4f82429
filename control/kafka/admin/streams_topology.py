"""The topology of a streams group, and who works on it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    """A part of a topology whose tasks work independently of other parts."""

    id: str
    sources: tuple[str, ...]
    repartitions: tuple[str, ...]
    """Internal topics that it reads; their lag counts as the sources' does."""
    sinks: tuple[str, ...]
    """Repartition topics that it writes for other subtopologies."""
    changelogs: tuple[str, ...]
    """Internal topics that its stores are restored from."""
    active: int
    """Tasks that work."""
    standby: int
    """Tasks that keep a copy of the stores."""
    warm_up: int
    """Tasks that restore a copy of the stores before they become active."""
    restore_lag: int | None
    """Records of changelogs that its tasks have not restored; None: its members do not tell."""

    @property
    def read(self) -> tuple[str, ...]:
        """Topics whose offsets the group commits."""
        return (*self.sources, *self.repartitions)

    @property
    def topics(self) -> tuple[str, ...]:
        """All that must exist."""
        return (*self.read, *self.changelogs)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTopology:
    """The topology that a streams group's members have told its coordinator."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]


def streams_topology_of(group: Any) -> StreamsTopology | None:
    """That of a group of a StreamsGroupDescribe response; None: no member has told one yet."""
    if group.topology is None:
        return None
    assigned = [member.assignment for member in group.members]
    active, standby, warm_up = (
        _counts(tasks for it in assigned for tasks in getattr(it, f"{kind}_tasks"))
        for kind in ("active", "standby", "warmup")
    )
    lags = _restore_lags(group.members)
    return StreamsTopology(
        epoch=group.topology.epoch,
        subtopologies=tuple(
            Subtopology(
                id=it.subtopology_id,
                sources=tuple(it.source_topics),
                repartitions=tuple(topic.name for topic in it.repartition_source_topics),
                sinks=tuple(it.repartition_sink_topics),
                changelogs=tuple(topic.name for topic in it.state_changelog_topics),
                active=active[it.subtopology_id],
                standby=standby[it.subtopology_id],
                warm_up=warm_up[it.subtopology_id],
                restore_lag=lags.get(it.subtopology_id),
            )
            for it in group.topology.subtopologies or ()
        ),
    )


def _counts(tasks: Iterable[Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for it in tasks:
        found[it.subtopology_id] += len(it.partitions)
    return found


def _restore_lags(members: Iterable[Any]) -> dict[str, int]:
    """By subtopology, over all tasks whose members tell offset and end of their changelogs."""
    lags: dict[str, int] = {}
    for member in members:
        ends = {(it.subtopology_id, it.partition): it.offset for it in member.task_end_offsets}
        for it in member.task_offsets:
            end = ends.get((it.subtopology_id, it.partition))
            if end is not None:
                behind = max(0, end - it.offset)
                lags[it.subtopology_id] = lags.get(it.subtopology_id, 0) + behind
    return lags
