"""Elections of leaders, when brokers come and go and on request (ElectLeaders, KIP-460)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Final

from broker.controller.decision import Accepted, Decision, Rejected, Verdict
from broker.controller.errors import (
    ControllerError,
    ElectionNotNeededError,
    EligibleLeadersNotAvailableError,
    PreferredLeaderNotAvailableError,
    UnknownTopicError,
)
from broker.controller.partition_change import (
    Election,
    IsActive,
    PartitionChange,
    build_change,
    changed_partition,
)
from broker.metadata.image import NO_LEADER, MetadataImage, PartitionImage
from broker.metadata.records import MetadataRecord

ELECTIONS_MAX: Final = 1_000
CHANGES_MAX: Final = 200
"""Partitions that one decision about a broker changes; each node replays them in some 5 ms."""

IsUncleanEnabled = Callable[[str], bool]
TopicPartition = tuple[str, int]


def active_in(image: MetadataImage) -> IsActive:
    """Whether a broker may lead, as the image says."""
    return {broker.id for broker in image.brokers.values() if broker.is_active}.__contains__


def all_partitions(image: MetadataImage) -> Iterable[PartitionImage]:
    """Every partition of the cluster."""
    for topic in image.topics.values():
        yield from topic.partitions.values()


def has_leaderships(image: MetadataImage, broker_id: int) -> bool:
    """Whether a broker leads anything."""
    return any(partition.leader == broker_id for partition in all_partitions(image))


def build_broker_gone(
    image: MetadataImage,
    broker_id: int,
    is_unclean_enabled: IsUncleanEnabled,
    *,
    changes_max: int | None = None,
) -> list[MetadataRecord]:
    """A broker is fenced or about to stop: out of every ISR that has others, leads nothing."""
    is_active, is_unclean = active_in(image), cache(is_unclean_enabled)

    def is_left(replica: int) -> bool:
        return replica != broker_id and is_active(replica)

    def changes() -> Iterator[MetadataRecord]:
        for partition in all_partitions(image):
            if broker_id not in partition.isr and partition.leader != broker_id:
                continue
            isr = tuple(replica for replica in partition.isr if replica != broker_id)
            if not isr and partition.leader == NO_LEADER and not is_unclean(partition.topic):
                continue
            change = PartitionChange(
                isr=isr or partition.isr, election=_election(partition.topic, is_unclean)
            )
            record = build_change(partition, change, is_left)
            if record is not None:
                yield record

    return list(islice(changes(), changes_max))


def build_broker_back(
    image: MetadataImage,
    broker_ids: Iterable[int],
    is_unclean_enabled: IsUncleanEnabled,
    *,
    changes_max: int | None = None,
) -> list[MetadataRecord]:
    """Brokers are unfenced: they may lead partitions that have no leader."""
    is_active, is_unclean = active_in(image), cache(is_unclean_enabled)
    back = frozenset(broker_ids)

    def is_here(replica: int) -> bool:
        return replica in back or is_active(replica)

    leaderless = (
        partition
        for partition in all_partitions(image)
        if partition.leader == NO_LEADER
        and (any(map(is_here, partition.isr)) or is_unclean(partition.topic))
    )
    return list(islice(_elect_each(leaderless, is_here, is_unclean), changes_max))


def decide_online_elections(
    image: MetadataImage, is_unclean_enabled: IsUncleanEnabled
) -> Decision[bool]:
    """Leaders for partitions without one, CHANGES_MAX at most; whether that many were elected."""
    records = build_broker_back(image, (), is_unclean_enabled, changes_max=CHANGES_MAX)
    return Decision(tuple(records), len(records) == CHANGES_MAX)


def decide_lead_away(
    broker_id: int, image: MetadataImage, is_unclean_enabled: IsUncleanEnabled
) -> Decision[bool]:
    """CHANGES_MAX partitions leave a broker if that leaves others; whether it did."""
    records = build_broker_gone(image, broker_id, is_unclean_enabled, changes_max=CHANGES_MAX + 1)
    if len(records) <= CHANGES_MAX:
        return Decision((), False)
    return Decision(tuple(records[:CHANGES_MAX]), True)


def build_unclean_elections(
    image: MetadataImage,
    topics: Iterable[str],
    is_unclean_enabled: IsUncleanEnabled,
    *,
    elections_max: int | None = None,
) -> list[MetadataRecord]:
    """Leaders for leaderless partitions of topics that now allow an unclean election."""
    leaderless = (
        partition
        for name in topics
        if name in image.topics
        for partition in image.topics[name].partitions.values()
        if partition.leader == NO_LEADER
    )
    elected = _elect_each(leaderless, active_in(image), is_unclean_enabled)
    return list(islice(elected, elections_max))


def build_preferred_elections(
    image: MetadataImage, *, imbalance_percentage_max: int = 0
) -> list[MetadataRecord]:
    """Back to the preferred leaders that are live and in sync; some of them at a time.

    A broker gets its partitions back once more than `imbalance_percentage_max` of those that
    prefer it are led by others (leader.imbalance.per.broker.percentage).
    """
    is_active = active_in(image)
    imbalanced = _imbalanced_brokers(image, imbalance_percentage_max)
    records: list[MetadataRecord] = []
    for partition in all_partitions(image):
        if partition.leader == partition.preferred_leader:
            continue
        if partition.preferred_leader not in imbalanced:
            continue
        if partition.preferred_leader not in partition.isr:
            continue
        record = build_change(partition, PartitionChange(election=Election.PREFERRED), is_active)
        if record is not None:
            records.append(record)
        if len(records) >= ELECTIONS_MAX:
            break
    return records


def _imbalanced_brokers(image: MetadataImage, percentage_max: int) -> set[int]:
    preferring: Counter[int] = Counter()
    elsewhere: Counter[int] = Counter()
    for partition in all_partitions(image):
        preferring[partition.preferred_leader] += 1
        elsewhere[partition.preferred_leader] += partition.leader != partition.preferred_leader
    return {
        broker_id
        for broker_id, count in elsewhere.items()
        if 100 * count > percentage_max * preferring[broker_id]
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeaders:
    """Elect on request."""

    is_unclean: bool
    partitions: Sequence[TopicPartition]
    is_named: bool = True
    """Whether these were asked for, or all: then only changes and failures are answered."""


def decide_elect_leaders(
    command: ElectLeaders, image: MetadataImage
) -> Decision[dict[TopicPartition, Verdict[int]]]:
    """The new leader, or why there is none, for each partition."""
    is_active = active_in(image)
    records: list[MetadataRecord] = []
    verdicts: dict[TopicPartition, Verdict[int]] = {}
    for wanted in dict.fromkeys(command.partitions):
        verdict = _elect_one(command, image, wanted, is_active, records)
        is_needless = isinstance(verdict, Rejected) and isinstance(
            verdict.error, ElectionNotNeededError
        )
        if command.is_named or not is_needless:
            verdicts[wanted] = verdict
    return Decision(tuple(records), verdicts)


def _elect_one(
    command: ElectLeaders,
    image: MetadataImage,
    wanted: TopicPartition,
    is_active: IsActive,
    records: list[MetadataRecord],
) -> Verdict[int]:
    partition = image.partition(*wanted)
    if partition is None:
        return Rejected(UnknownTopicError(f"No such topic or partition as {wanted}"))
    error = _election_not_needed(command, partition)
    if error is not None:
        return Rejected(error)
    election = Election.UNCLEAN if command.is_unclean else Election.PREFERRED
    record = build_change(partition, PartitionChange(election=election), is_active)
    leader = changed_partition(partition, record).leader
    if command.is_unclean and leader == NO_LEADER:
        return Rejected(
            EligibleLeadersNotAvailableError("Eligible topic partition leaders are not available.")
        )
    if not command.is_unclean and leader != partition.preferred_leader:
        return Rejected(PreferredLeaderNotAvailableError("The preferred leader was not available."))
    if record is not None:
        records.append(record)
    return Accepted(leader)


def _election_not_needed(
    command: ElectLeaders, partition: PartitionImage
) -> ControllerError | None:
    if command.is_unclean:
        is_needless = partition.leader != NO_LEADER
    else:
        is_needless = partition.leader == partition.preferred_leader
    if is_needless:
        return ElectionNotNeededError("Leader election not needed for topic partition.")
    return None


def _election(topic: str, is_unclean_enabled: IsUncleanEnabled) -> Election:
    return Election.UNCLEAN if is_unclean_enabled(topic) else Election.ONLINE


def _elect_each(
    partitions: Iterable[PartitionImage],
    is_active: IsActive,
    is_unclean_enabled: IsUncleanEnabled,
) -> Iterator[MetadataRecord]:
    for partition in partitions:
        change = PartitionChange(election=_election(partition.topic, is_unclean_enabled))
        record = build_change(partition, change, is_active)
        if record is not None:
            yield record
