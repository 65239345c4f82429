"""Tells which rounds of each source are complete. Pure.

A round is cut into ``parts`` records, and a micro-batch may end between two of them. Only a
round of which every part was seen tells what is *not* there any more: a row that its source
reported in an earlier round, and not in this one, is gone.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

OPEN_ROUNDS_MAX: Final = 8
"""Rounds of one source that are awaited at once; of older ones a part was lost."""
FORGET_MS: Final = 3_600_000
"""A source that was silent for so long, and is not registered any more, is forgotten."""
RETIRED_MS: Final = 7 * 86_400_000
"""A cluster of which nothing was heard for so long, while others were heard of, goes."""


class SourceKey(NamedTuple):
    """A broker of a cluster, as far as it is sampled."""

    cluster: str
    broker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPart:
    """The envelope of one record."""

    cluster: str
    broker: int
    broker_epoch: int
    round_ms: int
    interval_ms: int
    part: int
    parts: int
    has_brokers: bool
    """Whether it carries rows of registered brokers."""
    tells_orphans: bool = False
    """Whether its round tells of all partitions that no living broker holds."""
    of_orphans: bool = False
    """Whether its rows are of those."""
    parts_of: tuple[int, ...] | None = None
    """How many parts there are of each bucket; unknown: all concern every bucket."""
    needed: frozenset[int] | None = None
    """The parts of the round that are looked for; unknown: all."""

    @property
    def source(self) -> SourceKey:
        """The broker that sent it."""
        return SourceKey(self.cluster, self.broker)

    def is_whole(self, seen: Set[int]) -> bool:
        """Whether these are all parts of its round that are looked for."""
        return len(seen) >= self.parts if self.needed is None else self.needed <= seen


def orphans_teller(broker: int) -> int:
    """The id under which a broker tells of orphans, whose replicas are not its own: below -1."""
    return -2 - broker


def source_of(part: RoundPart) -> int:
    """The broker that tells the rows of a record."""
    return orphans_teller(part.broker) if part.of_orphans else part.broker


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRound:
    """A round that still lacks parts."""

    round_ms: int
    seen: tuple[int, ...]
    has_brokers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source's rounds, as far as they are known; 0 stands for never."""

    cluster: str
    broker: int
    broker_epoch: int = -1
    interval_ms: int = 1_000
    newest_ms: int = 0
    heard_ms: int = 0
    """When that came, by the job's clock."""
    complete_ms: int = 0
    """Begin of its newest complete round."""
    registry_ms: int = 0
    """Begin of its newest complete round that listed brokers."""
    orphans_ms: int = 0
    """Begin of its newest complete round that told of all orphans …"""
    orphans_heard_ms: int = 0
    """… and when that came, by the job's clock."""
    open_rounds: tuple[OpenRound, ...] = ()


Sources = Mapping[SourceKey, Source]


def observe_rounds(
    sources: Sources, parts: Iterable[RoundPart], *, at_ms: int
) -> dict[SourceKey, Source]:
    """The sources after these records, which may repeat and may come in any order; they came at
    ``at_ms``."""
    after = dict(sources)
    for part in sorted(parts, key=lambda part: (part.round_ms, part.part)):
        before = after.get(part.source, Source(cluster=part.cluster, broker=part.broker))
        after[part.source] = _observe(before, part, at_ms)
    return after


def not_later(sources: Sources, at_ms: int) -> dict[SourceKey, Source]:
    """The sources as heard of before this time, to which the job's clock was set back perhaps."""
    before_ms = at_ms - 1
    return {
        key: replace(
            it,
            heard_ms=min(it.heard_ms, before_ms),
            orphans_heard_ms=min(it.orphans_heard_ms, before_ms),
        )
        if max(it.heard_ms, it.orphans_heard_ms) > at_ms
        else it
        for key, it in sources.items()
    }


def _observe(source: Source, part: RoundPart, at_ms: int) -> Source:
    if part.round_ms > source.newest_ms:
        source = replace(source, heard_ms=at_ms)
    if part.round_ms >= source.newest_ms:
        source = replace(
            source,
            newest_ms=part.round_ms,
            broker_epoch=part.broker_epoch,
            interval_ms=part.interval_ms,
        )
    if part.round_ms <= source.complete_ms:
        return source
    rounds = {opened.round_ms: opened for opened in source.open_rounds}
    before = rounds.get(
        part.round_ms, OpenRound(round_ms=part.round_ms, seen=(), has_brokers=False)
    )
    seen = {*before.seen, part.part}
    after = OpenRound(
        round_ms=part.round_ms,
        seen=tuple(sorted(seen)),
        has_brokers=before.has_brokers or part.has_brokers,
    )
    if part.is_whole(seen):
        return _complete(source, after, part, at_ms)
    rounds[part.round_ms] = after
    newest = sorted(rounds.values(), key=lambda opened: opened.round_ms)[-OPEN_ROUNDS_MAX:]
    return replace(source, open_rounds=tuple(newest))


def _complete(source: Source, complete: OpenRound, last: RoundPart, at_ms: int) -> Source:
    if last.tells_orphans:
        source = replace(source, orphans_ms=complete.round_ms, orphans_heard_ms=at_ms)
    return replace(
        source,
        complete_ms=complete.round_ms,
        registry_ms=complete.round_ms if complete.has_brokers else source.registry_ms,
        open_rounds=tuple(
            opened for opened in source.open_rounds if opened.round_ms > complete.round_ms
        ),
    )


def newest_by_cluster(sources: Sources) -> dict[str, int]:
    """Begin of each cluster's newest round, whoever reported it."""
    return _latest(sources, lambda source: source.newest_ms)


def registry_by_cluster(sources: Sources) -> dict[str, int]:
    """Begin of each cluster's newest complete round that listed the registered brokers."""
    return _latest(sources, lambda source: source.registry_ms)


def orphans_by_cluster(sources: Sources) -> dict[str, Source]:
    """The source of each cluster that has told of all orphans last; none where nobody does."""
    newest: dict[str, Source] = {}
    for source in sources.values():
        before = newest.get(source.cluster)
        if source.orphans_heard_ms > (before.orphans_heard_ms if before else 0):
            newest[source.cluster] = source
    return newest


def unheard_ms(sources: Sources) -> dict[SourceKey, int]:
    """Milliseconds for which nothing was heard of each source while others of its cluster were.
    Both clocks must tell so: rounds, in case that the job stood still, and the job's own, in case
    that theirs is wrong."""
    newest, heard = newest_by_cluster(sources), heard_by_cluster(sources)
    return {
        key: min(newest[key.cluster] - source.newest_ms, heard[key.cluster] - source.heard_ms)
        for key, source in sources.items()
    }


def heard_by_cluster(sources: Sources) -> dict[str, int]:
    """When anything was heard of each cluster last, by the job's clock."""
    return _latest(sources, lambda source: source.heard_ms)


def _latest(sources: Sources, of: Callable[[Source], int]) -> dict[str, int]:
    """The latest of these times of the sources of each cluster."""
    latest: dict[str, int] = {}
    for source in sources.values():
        latest[source.cluster] = max(latest.get(source.cluster, 0), of(source))
    return latest


def retired_clusters(sources: Sources) -> set[str]:
    """Clusters that were silent for ``RETIRED_MS``, while others were not."""
    heard = heard_by_cluster(sources)
    newest_ms = max(heard.values(), default=0)
    return {cluster for cluster, at_ms in heard.items() if newest_ms - at_ms > RETIRED_MS}


def forget_sources(sources: Sources, registered: set[SourceKey]) -> dict[SourceKey, Source]:
    """Leave out the sources that are neither registered nor heard of for ``FORGET_MS``.

    Of a retired cluster all that it told has gone by then.
    """
    unheard, heard = unheard_ms(sources), heard_by_cluster(sources)
    newest_ms = max(heard.values(), default=0)
    return {
        key: source
        for key, source in sources.items()
        if (key in registered or unheard[key] < FORGET_MS)
        and newest_ms - heard[key.cluster] <= RETIRED_MS + FORGET_MS
    }


def decode_source(document: Mapping[str, Any]) -> Source:
    """Inverse of ``dataclasses.asdict``, after a way through JSON."""
    rounds = tuple(
        OpenRound(**{**opened, "seen": tuple(opened["seen"])}) for opened in document["open_rounds"]
    )
    return Source(**{**document, "open_rounds": rounds})
