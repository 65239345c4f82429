"""State that the job keeps from batch to batch besides its tables, pure.

A handful of figures per broker, kept in the manifest: rounds, the registered brokers, and how
far each partition of the metrics topic was read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from broker.metrics_schema import LogDirSample
from spark_metrics.state.job_clock import JobClock, Tick, decode_job_clock, encode_job_clock
from spark_metrics.state.known_groups import SILENT_MS_MAX
from spark_metrics.state.rounds import (
    RoundPart,
    Source,
    SourceKey,
    Sources,
    decode_source,
    forget_sources,
    heard_by_cluster,
    newest_by_cluster,
    not_later,
    observe_rounds,
    orphans_by_cluster,
    orphans_teller,
    registry_by_cluster,
    retired_clusters,
    unheard_ms,
)
from spark_metrics.state.source_clocks import (
    Clocks,
    decode_clocks,
    encode_clocks,
    unproven,
)

LATE_MS: Final = 1_500
"""A round may come so much later than an interval after the one before."""
NEVER_BACK_MS: Final = 1 << 62
"""The begin of a complete round of a source that is gone, with everything that it reported."""
ALIVE_MS: Final = 1 << 62
"""When a broker was lost that is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBroker:
    """A broker as the newest row of any source tells."""

    cluster: str
    broker: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool
    is_controller: bool
    broker_epoch: int | None
    disk_total_bytes: int | None
    disk_usable_bytes: int | None
    read_ms: int
    directories: tuple[LogDirSample, ...] | None = None
    """The broker's log directories; None: not told yet."""
    own_ms: int = 0
    """When it told its disks and directories itself; 0: never."""


Registry = Mapping[SourceKey, RegisteredBroker]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBroker:
    """A broker as far as it is known beside its rows; times in milliseconds."""

    cluster: str
    broker: int
    complete_ms: int
    """Begin of its newest complete round."""
    fenced_ms: int | None
    """When it was last seen fenced; None when it is not."""
    silent_ms: int
    """What it reported before, as a coordinator, has been silent for too long."""
    patience_ms: int = 0
    """The broker is silent when its newest round is older."""
    lost_ms: int = ALIVE_MS
    """When it was fenced or unregistered, by the job's clock; ``ALIVE_MS``: neither."""
    orphans_heard_ms: int = 0
    """When all orphans of its cluster were told last, by the job's clock; 0: nobody tells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The part of a batch that the driver itself looks at: all but the large tables."""

    parts: tuple[RoundPart, ...]
    brokers: tuple[RegisteredBroker, ...]
    offsets: Mapping[int, tuple[int, int]]
    """First and last offset read of each partition of the metrics topic."""
    at_ms: int
    """When the job looked at it, by its own clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Everything remembered."""

    sources: Mapping[SourceKey, Source] = field(default_factory=dict)
    registry: Registry = field(default_factory=dict)
    lost: Mapping[SourceKey, int] = field(default_factory=dict)
    """Brokers that are fenced, or were sampled and are not registered any more, and since when, by
    the job's clock."""
    clock: JobClock | None = None
    """The job's own; None: no batch has begun yet."""
    clocks: Clocks = field(default_factory=dict)
    reached_ms: int | None = None
    """When the last batch began that has read the topic to its end."""
    next_offsets: Mapping[int, int] = field(default_factory=dict)
    lost_records_total: int = 0
    """Records that retention, or a topic begun anew, took away before they were read."""
    late_rounds_total: int = 0
    """Rounds that came after a newer one of their source; the newer one counts."""

    def observe(self, observed: Observed) -> "JobState":
        """The memory after a batch."""
        sources = observe_rounds(
            not_later(self.sources, observed.at_ms), observed.parts, at_ms=observed.at_ms
        )
        registry = merge_registry(self.registry, observed.brokers, registry_by_cluster(sources))
        retired = retired_clusters(sources)
        registry = {key: row for key, row in registry.items() if key.cluster not in retired}
        sources = forget_sources(sources, set(registry))
        last = {partition: ends[1] + 1 for partition, ends in observed.offsets.items()}
        return replace(
            self,
            sources=sources,
            registry=registry,
            lost={
                key: min(self.lost.get(key, observed.at_ms), observed.at_ms)
                for key in _lost_brokers(registry, sources)
            },
            next_offsets={**self.next_offsets, **last},
            lost_records_total=self.lost_records_total + self._lost(observed.offsets),
            late_rounds_total=self.late_rounds_total + self._late(observed.parts),
        )

    def begun(self, tick: Tick) -> "JobState":
        """The memory when a batch begins: the job's time goes on. Where the host was booted anew,
        nothing that was measured by it counts any more."""
        if self.clock is None:
            return replace(self, clock=JobClock.begun(tick))
        clock = self.clock.at(tick)
        if tick.boot == self.clock.tick.boot:
            return replace(self, clock=clock)
        return replace(self, clock=clock, clocks=unproven(self.clocks), reached_ms=None)

    def with_watermark(self) -> "JobState":
        """The memory once all of a batch was seen."""
        assert self.clock is not None, "the batch has begun"
        sources = self.sources.values()
        newest_ms = max((it.heard_ms for it in sources), default=0)
        newest = (it.newest_ms for it in sources if newest_ms - it.heard_ms <= SILENT_MS_MAX)
        return replace(self, clock=self.clock.with_watermark(newest))

    def of_the_topic(self) -> "JobState":
        """The memory of the topic and of clocks, without what was read there."""
        return JobState(
            sources=self.sources,
            clock=self.clock,
            clocks=self.clocks,
            reached_ms=self.reached_ms,
            next_offsets=self.next_offsets,
            lost_records_total=self.lost_records_total,
            late_rounds_total=self.late_rounds_total,
        )

    def _late(self, parts: Iterable[RoundPart]) -> int:
        late = set()
        for part in parts:
            source = self.sources.get(part.source)
            if source is None or part.round_ms >= source.newest_ms:
                continue
            if part.round_ms not in {opened.round_ms for opened in source.open_rounds}:
                late.add((part.source, part.round_ms))
        return len(late)

    def _lost(self, offsets: Mapping[int, tuple[int, int]]) -> int:
        return sum(
            max(0, first - self.next_offsets[partition])
            for partition, (first, _) in offsets.items()
            if partition in self.next_offsets
        )

    @property
    def interval_ms(self) -> int:
        """The slowest source's interval, of those that are not silent."""
        heard = heard_by_cluster(self.sources)
        newest_ms = max(heard.values(), default=0)
        return max(
            (
                self.sources[key].interval_ms
                for key, unheard in unheard_ms(self.sources).items()
                if unheard <= SILENT_MS_MAX >= newest_ms - heard[key.cluster]
            ),
            default=1_000,
        )

    @property
    def newest_round_ms(self) -> int | None:
        return max((source.newest_ms for source in self.sources.values()), default=None)

    def complete_rounds(self) -> dict[tuple[str, int], int]:
        """Begin of the newest complete round by cluster and broker.

        A broker that is registered no more is ``NEVER_BACK_MS``, and so are those of a cluster
        that is retired.
        """
        retired, gone = retired_clusters(self.sources), _unregistered(self.registry, self.sources)
        return {
            (key.cluster, key.broker): (
                NEVER_BACK_MS if key.cluster in retired or key in gone else source.complete_ms
            )
            for key, source in self.sources.items()
        }

    def known_brokers(self) -> list[KnownBroker]:
        """Every source and every registered broker, as the fold looks them up."""
        complete, silent = self.complete_rounds(), self.silent_sources()
        listed, tellers = registry_by_cluster(self.sources), orphans_by_cluster(self.sources)
        heard_ms = {name: it.orphans_heard_ms for name, it in tellers.items() if listed.get(name)}
        of_brokers = [
            KnownBroker(
                cluster=cluster,
                broker=broker,
                complete_ms=complete.get((cluster, broker), 0),
                fenced_ms=row.read_ms if row is not None and row.is_fenced else None,
                silent_ms=NEVER_BACK_MS if (cluster, broker) in silent else 0,
                patience_ms=2 * source.interval_ms + LATE_MS if source is not None else 0,
                lost_ms=self.lost.get(SourceKey(cluster, broker), ALIVE_MS),
                orphans_heard_ms=heard_ms.get(cluster, 0),
            )
            for cluster, broker in sorted(
                {*complete, *((it.cluster, it.broker) for it in self.registry)}
            )
            for key in (SourceKey(cluster, broker),)
            for row, source in ((self.registry.get(key), self.sources.get(key)),)
        ]
        return [*self._orphans_tellers(tellers), *of_brokers]

    def _orphans_tellers(self, newest: Mapping[str, Source]) -> list[KnownBroker]:
        """The sources that told of orphans; only the newest one of each cluster counts."""
        return sorted(
            (
                KnownBroker(
                    cluster=key.cluster,
                    broker=orphans_teller(key.broker),
                    complete_ms=source.orphans_ms
                    if source is newest[key.cluster]
                    else NEVER_BACK_MS,
                    fenced_ms=None,
                    silent_ms=0,
                    orphans_heard_ms=newest[key.cluster].orphans_heard_ms,
                )
                for key, source in self.sources.items()
                if source.orphans_ms
            ),
            key=lambda it: (it.cluster, it.broker),
        )

    def newest_rounds(self) -> dict[str, int]:
        return newest_by_cluster(self.sources)

    def silent_sources(self) -> set[SourceKey]:
        """Coordinators that fell silent too long ago."""
        return {key for key, it in unheard_ms(self.sources).items() if it > SILENT_MS_MAX}


def _lost_brokers(registry: Registry, sources: Sources) -> list[SourceKey]:
    """Brokers that are fenced, or were sampled and are not registered any more."""
    fenced = [key for key, row in registry.items() if row.is_fenced]
    return [*fenced, *_unregistered(registry, sources)]


def _unregistered(registry: Registry, sources: Sources) -> dict[SourceKey, Source]:
    """Sources that a later complete listing of their cluster's brokers has left out."""
    listed_ms = registry_by_cluster(sources)
    return {
        key: source
        for key, source in sources.items()
        if key not in registry and listed_ms[key.cluster] > source.newest_ms
    }


def merge_registry(
    known: Registry, rows: Iterable[RegisteredBroker], listed_ms: Mapping[str, int]
) -> dict[SourceKey, RegisteredBroker]:
    """Newest row of each broker; without those that a later complete listing left out.

    Disks and log directories come on the broker's own rows only and stay until it tells others,
    whether or not another broker, whose clock is a little ahead, has told of it later.
    """
    merged = dict(known)
    in_order = sorted(rows, key=lambda row: row.read_ms)
    newest_rows = {SourceKey(row.cluster, row.broker): row for row in in_order}
    for row in in_order:
        key = SourceKey(row.cluster, row.broker)
        before = merged.get(key)
        if row.disk_total_bytes is not None or row.directories is not None:
            row = replace(row, own_ms=row.read_ms)
        elif row is not newest_rows[key]:
            continue
        if before is not None:
            newest, older = (row, before) if row.read_ms >= before.read_ms else (before, row)
            row = replace(newest, **_own_figures(*sorted((older, newest), key=_own_ms)))
        merged[key] = row
    return {key: row for key, row in merged.items() if row.read_ms >= listed_ms.get(row.cluster, 0)}


def _own_ms(row: RegisteredBroker) -> int:
    return row.own_ms


def _own_figures(older: RegisteredBroker, newer: RegisteredBroker) -> dict[str, Any]:
    """The figures that a broker tells of itself alone: each the newest that it has told."""
    of_disks = older if newer.disk_total_bytes is None else newer
    return {
        "own_ms": newer.own_ms,
        "disk_total_bytes": of_disks.disk_total_bytes,
        "disk_usable_bytes": of_disks.disk_usable_bytes,
        "directories": older.directories if newer.directories is None else newer.directories,
    }


def encode_job_state(memory: JobState) -> dict[str, Any]:
    """Encode the state as JSON holds it."""
    return {
        "sources": [asdict(source) for source in memory.sources.values()],
        "registry": [asdict(row) for row in memory.registry.values()],
        "lost": [[*key, since_ms] for key, since_ms in memory.lost.items()],
        "clock": None if memory.clock is None else encode_job_clock(memory.clock),
        "clocks": encode_clocks(memory.clocks),
        "reached_ms": memory.reached_ms,
        "next_offsets": {str(key): value for key, value in memory.next_offsets.items()},
        "lost_records_total": memory.lost_records_total,
        "late_rounds_total": memory.late_rounds_total,
    }


def _decode_broker(document: Mapping[str, Any]) -> RegisteredBroker:
    encoded = document.get("directories")
    directories = None if encoded is None else tuple(LogDirSample(**it) for it in encoded)
    return RegisteredBroker(**{**document, "directories": directories})


def decode_job_state(document: Mapping[str, Any]) -> JobState:
    """Inverse of ``encode_job_state``; of an empty document, an empty memory.

    What an older version did not write takes its default. Of a document that still does not fit,
    what was read and counted stays; the rest is learned anew within a few rounds.
    """
    try:
        return _decode_all(document) if document else JobState()
    except (KeyError, TypeError, ValueError):
        return JobState(
            next_offsets=_decode_offsets(document.get("next_offsets", {})),
            lost_records_total=document.get("lost_records_total", 0),
            late_rounds_total=document.get("late_rounds_total", 0),
        )


def _decode_offsets(document: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in document.items()}


def _decode_all(document: Mapping[str, Any]) -> JobState:
    sources = [decode_source(source) for source in document["sources"]]
    registry = [_decode_broker(row) for row in document["registry"]]
    clock = document.get("clock")
    return JobState(
        sources={SourceKey(it.cluster, it.broker): it for it in sources},
        registry={SourceKey(it.cluster, it.broker): it for it in registry},
        lost={
            SourceKey(cluster, broker): since_ms for cluster, broker, since_ms in document["lost"]
        },
        clock=None if clock is None else decode_job_clock(clock),
        clocks=decode_clocks(document["clocks"]),
        reached_ms=document["reached_ms"],
        next_offsets=_decode_offsets(document["next_offsets"]),
        lost_records_total=document["lost_records_total"],
        late_rounds_total=document["late_rounds_total"],
    )
