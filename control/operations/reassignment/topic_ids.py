"""Topics by their ids: one that was deleted and created anew under its name is another topic.

An operation keeps the ids of its topics from its start on, and so does its rollback. What stands
under such a name by now is left alone: neither moved, nor taken back, nor put in order. Pure.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from control.kafka.ports import PartitionMetadata
from control.move.commands import ReassignCommand, TopicIds
from control.operations.reassignment.facts import ClusterFacts
from control.operations.reassignment.placements import Placements

ANEW: Final = "was deleted and created anew: it is another topic now"


def ids_of(partitions: Iterable[PartitionMetadata]) -> dict[str, str]:
    """The ids of their topics."""
    return {p.topic: str(p.topic_id) for p in partitions if p.topic_id is not None}


def ids_of_command(command: ReassignCommand, facts: ClusterFacts) -> dict[str, str]:
    """Ids of the topics that it moves: for a rollback those of the operation, else those of now."""
    topics = {change.topic for change in command.changes}
    now = ids_of(p for p in facts.partitions.values() if p.topic in topics)
    return {**now, **command.topic_ids}


def created_anew(ids: TopicIds, partitions: Iterable[PartitionMetadata]) -> frozenset[str]:
    """Topics that are others by now."""
    now = ids_of(partitions)
    return frozenset(name for name, known in ids.items() if now.get(name, known) != known)


def places_of(ids: TopicIds, places: Placements) -> Placements:
    """Without what is of other topics."""
    anew = created_anew(ids, places.placed.values())
    if not anew:
        return places
    return replace(
        places,
        placed={key: found for key, found in places.placed.items() if key.topic not in anew},
        moving={key: found for key, found in places.moving.items() if key.topic not in anew},
    )


def facts_of(ids: TopicIds, facts: ClusterFacts) -> ClusterFacts:
    """Without what is of other topics, which are named."""
    anew = created_anew(ids, facts.partitions.values())
    if not anew:
        return facts
    places = places_of(ids, facts.places)
    return replace(facts, partitions=places.placed, reassigning=places.moving, created_anew=anew)
