"""How far each source's clock is off the job's, and samples with their times set right. Pure.

Lag pairs a commit that one broker has read with an end offset that another has read later. When a
clock is 45 s off, what is "later" is decided by the clock and not by what happened. So the job
brings all times to its own (``state.job_clock``) before it looks at them.

The job knows the skew of a source from two sides. Nothing comes before it was sent: what says that
it was sent 45 s after it was seen comes from a clock at least 45 s ahead. And what was not there
when a batch read the topic to its end was sent after that batch began: a clock by which it was sent
long before is behind.

Both bounds are as good as the quickest of the last rounds. A skew within ``TOLERATED_MS`` is left
alone: to correct it would be no better than not to. A clock that is set back by more than any
delivery is late, or to what it was before, is believed at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from spark_metrics.state.job_clock import JobClock
from spark_metrics.state.rounds import SourceKey

TOLERATED_MS: Final = 2_000
"""A clock that is off by more is corrected, and reported."""
ADJUSTED_MS: Final = 1_000
"""A correction stands until it is known to be off by more: times must not wobble."""
SETTLED_MS: Final = 250
"""… but once, when as many rounds were seen as count, it is set as well as it can be."""
SEEN_MAX: Final = 8
"""Last batches of a source that count."""
SEEN_MIN: Final = 3
"""A clock is called behind by so many: one late delivery says nothing."""
SENDING_MS: Final = 500
"""The longest time from when a round says that it was sent until it is in the topic, and from when
a batch asks for the end of the topic until it is known to have begun."""
DELIVERY_MS_MAX: Final = 300_000
"""No round is delivered later than this."""
LIVE_MS: Final = 10_000
"""A source is known to within so much while the topic is read as it is written."""
CREDIBLE_MS: Final = 86_400_000
"""A single source that is further off a job that has just begun is right: that topic was written
long ago, or the clock of the job's host is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Milliseconds by which a source's times are ahead of the job's clock; negative: behind."""

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
    """The source's clock less the job's, as it is corrected."""
    since_ms: int = 0
    """From this time on; earlier times are corrected by …"""
    before_ms: int = 0
    newest_ms: int = 0
    """When its newest round was sent."""
    least: tuple[int, ...] = ()
    """The least skew that each of the last batches allows …"""
    most: tuple[int, ...] = ()
    """… and the greatest."""

    def observe(
        self, seen: "Seen", least: int, most: int | None, *, may_be_behind: bool = True
    ) -> "SourceClock":
        """The clock after a batch; ``most`` is None where nothing bounds it."""
        back_ms = self.newest_ms - seen.sent_ms
        is_set_back = back_ms > TOLERATED_MS
        held = SEEN_MAX - 1 if not is_set_back else 0
        after = replace(
            self,
            newest_ms=seen.sent_ms,
            least=(*self.least[::-1][:held][::-1], least),
            most=(*self.most[::-1][:held][::-1], *([] if most is None else [most])),
        )
        if is_set_back and may_be_behind:
            is_live = most is not None and most - least <= LIVE_MS
            now_ms = least if is_live else self.skew_ms - back_ms
            if abs(now_ms - self.before_ms) <= TOLERATED_MS:
                return after._with(self.before_ms, seen)
            if back_ms > DELIVERY_MS_MAX:
                return after._with(now_ms, seen)
        has_settled = len(after.least) == SEEN_MAX > len(self.least)
        return after._corrected(seen, has_settled=has_settled, may_be_behind=may_be_behind)

    def _corrected(self, seen: "Seen", *, has_settled: bool, may_be_behind: bool) -> "SourceClock":
        """Correct the clock anew where its correction is known to be wrong."""
        least, most = max(self.least), max(self.most[-SEEN_MIN:], default=0)
        room = ADJUSTED_MS if self.skew_ms else TOLERATED_MS
        is_ahead = least > self.skew_ms + room
        is_behind = len(self.most) >= SEEN_MIN and most < self.skew_ms - room and may_be_behind
        is_close = bool(self.skew_ms) and has_settled and abs(least - self.skew_ms) > SETTLED_MS
        if not (is_ahead or is_behind or is_close):
            return self
        return self._with(max(self.least[-SEEN_MIN:]) if is_behind else least, seen)

    def _with(self, skew_ms: int, seen: "Seen") -> "SourceClock":
        """Correct the clock by so much, from what was seen on."""
        skew_ms = skew_ms if abs(skew_ms) > TOLERATED_MS else 0
        return replace(self, skew_ms=skew_ms, since_ms=seen.first_ms, before_ms=self.skew_ms)

    def moved(self, by_ms: int) -> "SourceClock":
        """The same beside a clock of the job that was set by so much: a skew that was the job's own
        is none."""
        is_jobs = abs(self.skew_ms - by_ms) <= TOLERATED_MS
        return replace(
            self,
            skew_ms=self.before_ms if is_jobs else self.skew_ms,
            least=tuple(it - by_ms for it in self.least),
            most=tuple(it - by_ms for it in self.most),
        )

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
    clocks: Clocks,
    found: Mapping[SourceKey, Seen],
    *,
    seen_ms: int,
    reached_ms: int | None,
    may_be_behind: bool = True,
) -> dict[SourceKey, SourceClock]:
    """The clocks after a batch that began at ``seen_ms``, by the job's time, and has found this.

    ``reached_ms``: when the last batch began that had read the topic to its end; None: none has.
    """
    after = dict(clocks)
    for key, seen in found.items():
        most = None if reached_ms is None else seen.sent_ms - reached_ms + SENDING_MS
        before = after.get(key, SourceClock(cluster=key.cluster, broker=key.broker))
        least = seen.sent_ms - seen_ms
        after[key] = before.observe(seen, least, most, may_be_behind=may_be_behind)
    return after


def compare_clocks(
    clock: JobClock, clocks: Clocks, found: Mapping[SourceKey, Seen], *, reached_ms: int | None
) -> tuple[JobClock, dict[SourceKey, SourceClock]]:
    """The job's own clock and those of sources after a batch that began at ``clock.now_ms``.

    While the job's is not settled, it is set to what most sources agree on. None of them counts as
    behind before most of them were seen often enough to tell who is.
    """

    def observed(known: Clocks, by_ms: int, *, may_be_behind: bool) -> dict[SourceKey, SourceClock]:
        return observe_clocks(
            known,
            found,
            seen_ms=clock.now_ms + by_ms,
            reached_ms=None if reached_ms is None else reached_ms + by_ms,
            may_be_behind=may_be_behind,
        )

    if clock.is_settled:
        return clock, observed(clocks, 0, may_be_behind=True)
    after = observed(clocks, 0, may_be_behind=False)
    bounded = sum(len(it.most) >= SEEN_MIN for it in after.values())
    if is_enough := 2 * bounded > len(after):
        after = observed(clocks, 0, may_be_behind=True)
    by_ms = _most_differ_by(after)
    if by_ms:
        right = {key: it.moved(by_ms) for key, it in clocks.items()}
        after = observed(right, by_ms, may_be_behind=is_enough)
    settled = replace(clock, now_ms=clock.now_ms + by_ms, is_settled=is_enough or by_ms != 0)
    return settled, after


def _most_differ_by(clocks: Clocks) -> int:
    """Milliseconds by which most sources are off the job's time, all alike; 0: they are not."""
    skews = sorted(it.skew_ms for it in clocks.values() if it.skew_ms)
    alike = max(
        ([it for it in skews if 0 <= it - first <= TOLERATED_MS] for first in skews),
        key=len,
        default=[],
    )
    if 2 * len(alike) <= len(clocks):
        return 0
    by_ms = alike[len(alike) // 2]
    return by_ms if len(alike) > 1 or abs(by_ms) > CREDIBLE_MS else 0


def unproven(clocks: Clocks) -> dict[SourceKey, SourceClock]:
    """The clocks without what was measured by a time of the job that may not be right any more."""
    return {key: replace(it, least=(), most=()) for key, it in clocks.items()}


def encode_clocks(clocks: Clocks) -> list[dict[str, Any]]:
    """Encode the clocks as JSON holds them."""
    return [asdict(clock) for clock in clocks.values()]


def decode_clocks(documents: Iterable[Mapping[str, Any]]) -> dict[SourceKey, SourceClock]:
    """Inverse of ``encode_clocks``."""
    decoded = (
        SourceClock(**{**it, "least": tuple(it["least"]), "most": tuple(it["most"])})
        for it in documents
    )
    return {SourceKey(it.cluster, it.broker): it for it in decoded}
