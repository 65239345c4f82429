"""Partitions that no living broker holds, as the controller's metadata has them.

Nobody else can tell that they are there: the brokers of their replicas are fenced, or are not even
registered any more.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from broker.handlers.services import NodeServices
from broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from broker.metrics.samples import Repeats, min_isr_of
from broker.metrics_schema import ReplicaSample, Row, UnchangedReplica

PARTITIONS_PER_SLICE: Final = 5_000
"""So many are looked at in one go; a topic that has not changed is not looked at again."""


class Orphans:
    """Finds the orphans anew only where metadata has changed since the last round."""

    def __init__(self) -> None:
        self._alive: frozenset[int] = frozenset()
        self._known: dict[str, tuple[TopicImage, Sequence[PartitionImage]]] = {}
        self._repeats = Repeats()

    def forget(self) -> None:
        """Tell everything in full again: the last round may not have arrived."""
        self._repeats.forget()

    def slices(self, node: NodeServices) -> Iterator[Sequence[Row]]:
        """A row for each orphan, in slices between which others may be served."""
        image: MetadataImage = node.metadata.image
        alive = frozenset(it.id for it in image.brokers.values() if not it.fenced)
        known = self._known if alive == self._alive else {}
        found: dict[str, tuple[TopicImage, Sequence[PartitionImage]]] = {}
        looked_at = 0
        for name, topic in image.topics.items():
            before = known.get(name)
            if before is not None and before[0] is topic:
                found[name] = before
                continue
            found[name] = topic, _orphans_of(topic, alive)
            looked_at += len(topic.partitions)
            if looked_at >= PARTITIONS_PER_SLICE:
                looked_at = 0
                yield ()
        self._alive, self._known = alive, found
        yield from self._rows(node, image, [it for _, it in found.values() if it])

    def _rows(
        self, node: NodeServices, image: MetadataImage, found: Sequence[Sequence[PartitionImage]]
    ) -> Iterator[Sequence[Row]]:
        for orphans in found:
            min_isr = min_isr_of(node, image, orphans[0].topic)
            read_ms = node.clock.wall_ms()
            yield [_row(it, self._repeats, min_isr=min_isr, read_ms=read_ms) for it in orphans]
        self._repeats.end_round()


def _orphans_of(topic: TopicImage, alive: frozenset[int]) -> Sequence[PartitionImage]:
    return [it for it in topic.partitions.values() if alive.isdisjoint(it.replicas)]


def _row(known: PartitionImage, repeats: Repeats, *, min_isr: int, read_ms: int) -> Row:
    since_ms = repeats.since((known.topic, known.partition), (known, min_isr), read_ms)
    if since_ms is not None:
        return UnchangedReplica(
            topic=known.topic, partition=known.partition, read_ms=read_ms, since_ms=since_ms
        )
    return ReplicaSample(
        topic=known.topic,
        partition=known.partition,
        leader=known.leader,
        leader_epoch=known.leader_epoch,
        replicas=known.replicas,
        isr=known.isr,
        read_ms=read_ms,
        adding_replicas=known.adding_replicas,
        removing_replicas=known.removing_replicas,
        min_isr=min_isr,
    )
