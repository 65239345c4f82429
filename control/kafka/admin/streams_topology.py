"""The topology of a streams group, and who works on it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from control.model.ids import TopicPartition

_NOT_KNOWN: Final = 2**63 - 1
"""What a member tells of an end that it has not read yet: Kafka's ``Long.MAX_VALUE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoringTask:
    """A task that restores its stores or keeps them up to date, as its member last told."""

    partition: int
    offset: int
    """Sum over its changelogs: so far its stores are restored."""
    end: int | None
    """Sum of its changelogs' ends; None: its member has not read them yet."""


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
    restoring: tuple[RestoringTask, ...]
    """Active tasks that restore, standby and warm-up tasks; none of members before Kafka 4.4."""

    @property
    def read(self) -> tuple[str, ...]:
        """Topics whose offsets the group commits."""
        return (*self.sources, *self.repartitions)

    @property
    def topics(self) -> tuple[str, ...]:
        """All that must exist."""
        return (*self.read, *self.changelogs)

    @property
    def unread_ends(self) -> tuple[TopicPartition, ...]:
        """Changelog partitions of tasks whose members have not read the ends."""
        tasks = [it.partition for it in self.restoring if it.end is None]
        return tuple(TopicPartition(name, it) for it in tasks for name in self.changelogs)

    def restore_lag(self, ends: Mapping[TopicPartition, int]) -> int | None:
        """Records of changelogs that its tasks have not restored.

        :param ends: log end offsets of ``unread_ends``.
        :returns: None if no task tells an offset, or an end is missing.
        """
        if not self.restoring or any(key not in ends for key in self.unread_ends):
            return None
        return sum(max(0, self._end_of(it, ends) - it.offset) for it in self.restoring)

    def _end_of(self, task: RestoringTask, ends: Mapping[TopicPartition, int]) -> int:
        if task.end is not None:
            return task.end
        return sum(ends[TopicPartition(name, task.partition)] for name in self.changelogs)


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
    restoring = _restoring(group.members)
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
                restoring=tuple(restoring[it.subtopology_id]),
            )
            for it in group.topology.subtopologies or ()
        ),
    )


def _counts(tasks: Iterable[Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for it in tasks:
        found[it.subtopology_id] += len(it.partitions)
    return found


def _restoring(members: Iterable[Any]) -> defaultdict[str, list[RestoringTask]]:
    """By subtopology. A member tells ends of tasks that restore, and offsets also of what else lies
    in its state directory."""
    found: defaultdict[str, list[RestoringTask]] = defaultdict(list)
    for member in members:
        offsets = {(it.subtopology_id, it.partition): it.offset for it in member.task_offsets}
        assigned = _tasks_of(member.assignment)
        for it in member.task_end_offsets:
            key = (it.subtopology_id, it.partition)
            if key in offsets and key in assigned:
                end = None if it.offset == _NOT_KNOWN else it.offset
                task = RestoringTask(partition=it.partition, offset=offsets[key], end=end)
                found[it.subtopology_id].append(task)
    return found


def _tasks_of(assignment: Any) -> set[tuple[str, int]]:
    every = (*assignment.active_tasks, *assignment.standby_tasks, *assignment.warmup_tasks)
    return {(it.subtopology_id, partition) for it in every for partition in it.partitions}
