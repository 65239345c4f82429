"""How far each source's clock is off the job's, and samples with their times set right. Pure.

Lag pairs a commit that one broker has read with an end offset that another has read later. When a
clock is 45 s off, what is "later" is decided by the clock and not by what happened. So the job
brings all times to its own clock before it looks at them.

The job knows the skew of a source from two sides. Nothing comes before it was sent: what says that
it was sent 45 s after it was seen comes from a clock at least 45 s ahead. And what was not there
when a batch read the topic to its end was sent after that batch began: a clock by which it was sent
long before is behind.

Both bounds are as good as the quickest of the last rounds. A skew within ``TOLERATED_MS`` is left
alone: to correct it would be no better than not to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from spark_metrics.state.rounds import SourceKey

TOLERATED_MS: Final = 2_000
"""A clock that is off by more is corrected, and reported."""
ADJUSTED_MS: Final = 1_000
"""A correction stands until it is known to be off by more: times must not wobble."""
SETTLED_MS: Final = 250
"""… but once, when as many rounds were seen as count, it is set as well as it can be."""
SEEN_MAX: Final = 8
"""So many of a source's last batches count."""
SEEN_MIN: Final = 3
"""A clock is called behind by so many: one late delivery says nothing."""
SENDING_MS: Final = 500
"""From when a round says that it was sent until it is in the topic, and from when a batch asks for
the end of the topic until it is known to have begun."""
CREDIBLE_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """By how much a source's times are ahead of the job's clock; negative: behind."""

    skew_ms: int
    since_ms: int
    """From this time of its own on; earlier ones are ahead by …"""
    before_ms: int

    def of(self, raw_ms: int) -> int:
        """How far this time of its own is ahead."""
        return self.skew_ms if raw_ms >= self.since_ms else self.before_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceClock:
    """One source's clock as far as it is known; times are its own, raw."""

    cluster: str
    broker: int
    skew_ms: int = 0
    """Its clock less the job's, as it is corrected."""
    since_ms: int = 0
    """From this time on; earlier times are corrected by …"""
    before_ms: int = 0
    newest_ms: int = 0
    """When its newest round was sent."""
    least: tuple[int, ...] = ()
    """Of the last batches: the skew is at least so much …"""
    most: tuple[int, ...] = ()
    """… and at most so much."""

    def observe(self, seen: "Seen", least: int, most: int | None) -> "SourceClock":
        """The clock after a batch; ``most`` is None where nothing bounds it."""
        is_set_back = seen.sent_ms < self.newest_ms - TOLERATED_MS
        held = SEEN_MAX - 1 if not is_set_back else 0
        after = replace(
            self,
            newest_ms=seen.sent_ms,
            least=(*self.least[::-1][:held][::-1], least),
            most=(*self.most[::-1][:held][::-1], *([] if most is None else [most])),
        )
        return after._corrected(seen, has_settled=len(after.least) == SEEN_MAX > len(self.least))

    def _corrected(self, seen: "Seen", *, has_settled: bool) -> "SourceClock":
        """With another correction, where the present one is known to be wrong."""
        least, most = max(self.least), max(self.most[-SEEN_MIN:], default=0)
        room = ADJUSTED_MS if self.skew_ms else TOLERATED_MS
        is_ahead = least > self.skew_ms + room
        is_behind = len(self.most) >= SEEN_MIN and most < self.skew_ms - room
        is_close = bool(self.skew_ms) and has_settled and abs(least - self.skew_ms) > SETTLED_MS
        if not (is_ahead or is_behind or is_close):
            return self
        skew_ms = least if abs(least) > TOLERATED_MS else 0
        return replace(self, skew_ms=skew_ms, since_ms=seen.first_ms, before_ms=self.skew_ms)

    @property
    def shift(self) -> Shift | None:
        """The correction of its times; None: none."""
        if not self.skew_ms and not self.before_ms:
            return None
        return Shift(skew_ms=self.skew_ms, since_ms=self.since_ms, before_ms=self.before_ms)


Clocks = Mapping[SourceKey, SourceClock]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A clock that is found to be behind: times read from it before are too early."""

    source: SourceKey
    until_ms: int
    """Times before this one, as they were corrected so far, …"""
    by_ms: int
    """… are too early by so much."""


def corrections(before: Clocks, after: Clocks) -> list[Correction]:
    """List the clocks that a batch has found to be behind.

    A clock that was set back while the job ran is among them, but its earlier times are right. They
    are not before ``until_ms``, for the clock shows them a second time.
    """
    return [
        Correction(
            source=key,
            until_ms=clock.since_ms - clock.before_ms,
            by_ms=clock.before_ms - clock.skew_ms,
        )
        for key, clock in after.items()
        if (was := before.get(key)) is not None and was.skew_ms - clock.skew_ms > TOLERATED_MS
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One source in a batch."""

    first_ms: int
    """Begin of its first round."""
    sent_ms: int
    """When its last record was sent."""


def observe_clocks(
    clocks: Clocks, found: Mapping[SourceKey, Seen], *, seen_ms: int, reached_ms: int | None
) -> dict[SourceKey, SourceClock]:
    """The clocks after a batch that began at ``seen_ms`` and has found this.

    ``reached_ms``: when the last batch began that had read the topic to its end; None: none has.
    A batch in which all clocks are more than a day off is not looked at: it is the job's own clock
    that is wrong, or a topic that was written long ago.
    """
    known = dict(clocks)
    if all(abs(it.sent_ms - seen_ms) > CREDIBLE_MS for it in found.values()):
        return known
    for key, seen in found.items():
        most = None if reached_ms is None else seen.sent_ms - reached_ms + SENDING_MS
        before = known.get(key, SourceClock(cluster=key.cluster, broker=key.broker))
        known[key] = before.observe(seen, seen.sent_ms - seen_ms, most)
    return known


def encode_clocks(clocks: Clocks) -> list[dict[str, Any]]:
    """As JSON holds them."""
    return [asdict(clock) for clock in clocks.values()]


def decode_clocks(documents: Iterable[Mapping[str, Any]]) -> dict[SourceKey, SourceClock]:
    """Inverse of ``encode_clocks``."""
    found = (
        SourceClock(**{**it, "least": tuple(it["least"]), "most": tuple(it["most"])})
        for it in documents
    )
    return {SourceKey(it.cluster, it.broker): it for it in found}
